//! The limits of a vocabulary, and what its parts must be for each other.

use super::{Fault, VocabParts};

/// Tokens of a vocabulary: four times the largest published ones (262,144).
const TOKENS_MAX: usize = 1 << 20;
/// Merges: published vocabularies have at most two or three a token.
const MERGES_MAX: usize = 4 * TOKENS_MAX;
/// Bytes of a token: published ones are shorter than 300.
const TOKEN_BYTES_MAX: usize = 4096;
/// Bytes of all control and user-defined tokens: published vocabularies have fewer than 100 kB.
/// The automaton that finds them takes a small multiple of this.
const SPECIAL_BYTES_MAX: usize = 4 << 20;

/// Refuses another tokenizer model, lengths out of their limits and ids out of range.
pub(super) fn check(parts: &VocabParts) -> Result<(), Fault> {
    if parts.model != "gpt2" {
        return Err(Fault::Model { found: parts.model.clone() });
    }
    let count = parts.tokens.len();
    check_lengths(count, parts.merges.len(), parts.token_types.len())?;
    for (id, token) in parts.tokens.iter().enumerate() {
        if token.len() > TOKEN_BYTES_MAX {
            let (bytes, bytes_max) = (token.len(), TOKEN_BYTES_MAX);
            return Err(Fault::TokenTooLong { id, bytes, bytes_max });
        }
    }
    let ids = [
        ("tokenizer.ggml.bos_token_id", parts.bos_id),
        ("tokenizer.ggml.eos_token_id", parts.eos_id),
        ("tokenizer.ggml.eot_token_id", parts.eot_id),
        ("tokenizer.ggml.mask_token_id", parts.mask_id),
        ("tokenizer.ggml.padding_token_id", parts.pad_id),
    ];
    for (key, id) in ids {
        if let Some(id) = id.filter(|&id| id as usize >= count) {
            return Err(Fault::IdRange { key, id, count });
        }
    }
    Ok(())
}

/// Refuses more entries than a vocabulary may have; before any is copied.
pub(super) fn check_lengths(tokens: usize, merges: usize, types: usize) -> Result<(), Fault> {
    let length = |key, found, limit: String| Err(Fault::Length { key, found, limit });
    if tokens == 0 || tokens > TOKENS_MAX {
        return length("tokenizer.ggml.tokens", tokens, format!("1 to {TOKENS_MAX}"));
    }
    if merges > MERGES_MAX {
        return length("tokenizer.ggml.merges", merges, format!("at most {MERGES_MAX}"));
    }
    if types != 0 && types != tokens {
        return length("tokenizer.ggml.token_type", types, format!("{tokens}, one per token"));
    }
    Ok(())
}

/// Refuses more text of special tokens than an automaton should be built of.
pub(super) fn check_special_bytes<'a>(
    special: impl Iterator<Item = (u32, &'a str)>,
) -> Result<(), Fault> {
    let found: usize = special.map(|(_, text)| text.len()).sum();
    if found > SPECIAL_BYTES_MAX {
        let limit = format!("at most {SPECIAL_BYTES_MAX} bytes of control and user-defined tokens");
        return Err(Fault::Length { key: "tokenizer.ggml.tokens", found, limit });
    }
    Ok(())
}
