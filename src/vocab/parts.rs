//! What a GGUF file says of its tokenizer: read, and checked against the limits of a vocabulary.

use super::error::Error;
use crate::gguf::Gguf;

/// Tokens of a vocabulary: four times the largest published ones (262,144).
const TOKENS_MAX: usize = 1 << 20;
/// Merges: published vocabularies have at most two or three a token.
const MERGES_MAX: usize = 4 * TOKENS_MAX;
/// Bytes of a token: published ones are shorter than 300.
const TOKEN_BYTES_MAX: usize = 4096;
/// Bytes of all control and user-defined tokens: published vocabularies have fewer than 100 kB.
/// The automaton that finds them takes a small multiple of this.
const SPECIAL_BYTES_MAX: usize = 4 << 20;

/// What a GGUF file says of its tokenizer, unchecked. [`Vocab::new`](super::Vocab::new) checks it.
#[derive(Clone, Debug, Default)]
pub struct VocabParts {
    /// `tokenizer.ggml.model`; only `gpt2` (byte-level BPE) is supported.
    pub model: String,
    /// `tokenizer.ggml.pre`: the rule that splits text into words; empty or `default` is as none.
    pub pre: Option<String>,
    /// `general.architecture`: chooses the chat template of a file without one.
    pub architecture: String,
    /// `tokenizer.ggml.tokens`: bytes as stored; the position is the id.
    pub tokens: Vec<Vec<u8>>,
    /// `tokenizer.ggml.token_type`: one per token, or empty when the file has none.
    pub token_types: Vec<i32>,
    /// `tokenizer.ggml.merges`: `left right`, most preferred first.
    pub merges: Vec<Vec<u8>>,
    /// `tokenizer.ggml.bos_token_id`.
    pub bos_id: Option<u32>,
    /// `tokenizer.ggml.eos_token_id`.
    pub eos_id: Option<u32>,
    /// `tokenizer.ggml.eot_token_id`.
    pub eot_id: Option<u32>,
    /// `tokenizer.ggml.mask_token_id`.
    pub mask_id: Option<u32>,
    /// `tokenizer.ggml.padding_token_id`.
    pub pad_id: Option<u32>,
    /// `tokenizer.ggml.add_bos_token`.
    pub add_bos: Option<bool>,
    /// `tokenizer.chat_template`: Jinja source; an empty one is as none.
    pub chat_template: Option<String>,
}

/// The tokenizer's keys of a file, copied and not yet checked against each other.
///
/// # Errors
/// `tokenizer.ggml.model`, `.tokens`, `.merges` or `general.architecture` missing; a key of
/// another type than it must have.
pub fn parts_from_gguf(gguf: &Gguf) -> Result<VocabParts, Error> {
    let model = gguf.str("tokenizer.ggml.model")?.to_owned();
    if model != "gpt2" {
        // Other tokenizers have other keys: say this before one of ours is missed.
        return Err(Error::Model { found: model });
    }
    let tokens = gguf.byte_strings("tokenizer.ggml.tokens")?;
    let merges = gguf.byte_strings("tokenizer.ggml.merges")?;
    let types_key = "tokenizer.ggml.token_type";
    let types = if gguf.contains(types_key) { Some(gguf.i32s(types_key)?) } else { None };
    check_lengths(tokens.len(), merges.len(), types.as_ref().map_or(0, |types| types.len()))?;
    Ok(VocabParts {
        model,
        pre: gguf.opt_str("tokenizer.ggml.pre")?.map(str::to_owned),
        architecture: gguf.str("general.architecture")?.to_owned(),
        tokens: tokens.map(<[u8]>::to_vec).collect(),
        token_types: types.into_iter().flatten().collect(),
        merges: merges.map(<[u8]>::to_vec).collect(),
        bos_id: gguf.opt_u32("tokenizer.ggml.bos_token_id")?,
        eos_id: gguf.opt_u32("tokenizer.ggml.eos_token_id")?,
        eot_id: gguf.opt_u32("tokenizer.ggml.eot_token_id")?,
        mask_id: gguf.opt_u32("tokenizer.ggml.mask_token_id")?,
        pad_id: gguf.opt_u32("tokenizer.ggml.padding_token_id")?,
        add_bos: gguf.opt_bool("tokenizer.ggml.add_bos_token")?,
        chat_template: gguf.opt_str("tokenizer.chat_template")?.map(str::to_owned),
    })
}

/// Refuses another tokenizer model, lengths out of their limits and ids out of range. Takes out a
/// padding token out of range, which only a template could use, and says so.
pub(super) fn check(parts: &mut VocabParts, warnings: &mut Vec<String>) -> Result<(), Error> {
    if parts.model != "gpt2" {
        return Err(Error::Model { found: parts.model.clone() });
    }
    let count = parts.tokens.len();
    check_lengths(count, parts.merges.len(), parts.token_types.len())?;
    for (id, token) in parts.tokens.iter().enumerate() {
        if token.len() > TOKEN_BYTES_MAX {
            let (bytes, bytes_max) = (token.len(), TOKEN_BYTES_MAX);
            return Err(Error::TokenTooLong { id, bytes, bytes_max });
        }
    }
    let ids = [
        ("tokenizer.ggml.bos_token_id", parts.bos_id),
        ("tokenizer.ggml.eos_token_id", parts.eos_id),
        ("tokenizer.ggml.eot_token_id", parts.eot_id),
        ("tokenizer.ggml.mask_token_id", parts.mask_id),
    ];
    for (key, id) in ids {
        if let Some(id) = id.filter(|&id| id as usize >= count) {
            return Err(Error::IdRange { key, id, count });
        }
    }
    if let Some(id) = parts.pad_id.take_if(|id| *id as usize >= count) {
        let fact = format!("is {id}, but the vocabulary has {count} tokens");
        warnings.push(format!("tokenizer.ggml.padding_token_id {fact}: it is left out"));
    }
    Ok(())
}

/// Refuses more entries than a vocabulary may have; before any is copied.
pub(super) fn check_lengths(tokens: usize, merges: usize, types: usize) -> Result<(), Error> {
    let length = |key, found, limit: String| Err(Error::Length { key, found, limit });
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
) -> Result<(), Error> {
    let found: usize = special.map(|(_, text)| text.len()).sum();
    if found > SPECIAL_BYTES_MAX {
        let limit = format!("at most {SPECIAL_BYTES_MAX} bytes of control and user-defined tokens");
        return Err(Error::Length { key: "tokenizer.ggml.tokens", found, limit });
    }
    Ok(())
}
