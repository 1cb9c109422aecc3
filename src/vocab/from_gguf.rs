//! Reads a tokenizer's metadata from a GGUF file.

use crate::gguf::Gguf;

use super::check::check_lengths;
use super::{Fault, VocabParts};

/// The tokenizer's keys of a file, copied and not yet checked against each other.
///
/// # Errors
/// `tokenizer.ggml.model`, `.tokens`, `.merges` or `general.architecture` missing; a key of
/// another type than it must have.
pub fn parts_from_gguf(gguf: &Gguf) -> Result<VocabParts, Fault> {
    let model = gguf.str("tokenizer.ggml.model")?.to_owned();
    if model != "gpt2" {
        // Other tokenizers have other keys: say this before one of ours is missed.
        return Err(Fault::Model { found: model });
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
