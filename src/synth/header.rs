//! Keys and tensor table as bytes, after `docs/gguf.md` in ggml-org/ggml.

use super::error::Error;
use super::recipe::Recipe;
use super::tensors::{Content, Tensor};
use super::tokens::{MERGES, tokens};
use crate::model::Architecture;
use dllm_cpu::dtype::Dtype;

/// Bytes that the data of tensors is aligned to: the format's default.
pub(super) const ALIGNMENT: usize = 32;

const VERSION: u32 = 3;
/// Numbers of the value types.
const U32: u32 = 4;
const I32: u32 = 5;
const F32: u32 = 6;
const BOOL: u32 = 7;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// Everything before the data, padded, and the bytes of the data.
pub(super) fn header(recipe: &Recipe, tensors: &[Tensor]) -> Result<(Vec<u8>, u64), Error> {
    let mut keys = Keys::default();
    general(&mut keys, recipe);
    sizes(&mut keys, recipe);
    vocabulary(&mut keys, recipe);
    let mut header = Vec::with_capacity(keys.bytes.len() + 96 * tensors.len());
    header.extend(b"GGUF");
    header.extend(VERSION.to_le_bytes());
    header.extend((tensors.len() as u64).to_le_bytes());
    header.extend(keys.count.to_le_bytes());
    header.append(&mut keys.bytes);
    let data_bytes = tensor_table(tensors, &mut header)?;
    header.resize(header.len().next_multiple_of(ALIGNMENT), 0);
    Ok((header, data_bytes))
}

fn general(keys: &mut Keys, recipe: &Recipe) {
    let Recipe { architecture, types, seed, .. } = recipe;
    keys.str("general.architecture", architecture.name());
    keys.str("general.name", &format!("random weights, {types}, seed {seed}"));
    keys.u32("general.file_type", types.file_type());
    keys.u32("general.quantization_version", 2);
}

/// Constants are those of the published models.
fn sizes(keys: &mut Keys, recipe: &Recipe) {
    let Recipe { architecture, shape, .. } = recipe;
    let (theta, epsilon) = match architecture {
        Architecture::Llada | Architecture::Llama => (5e5, 1e-5),
        Architecture::Dream => (1e6, 1e-6),
    };
    let key = |name: &str| format!("{}.{name}", architecture.name());
    for (name, value) in [
        ("vocab_size", shape.vocab),
        ("context_length", shape.context),
        ("embedding_length", shape.width),
        ("block_count", shape.layers),
        ("feed_forward_length", shape.ff_width),
        ("attention.head_count", shape.heads),
        ("attention.head_count_kv", shape.kv_heads),
        ("rope.dimension_count", shape.head_width()),
    ] {
        // Checked to be at most 2^30.
        keys.u32(&key(name), value as u32);
    }
    keys.f32(&key("rope.freq_base"), theta);
    keys.f32(&key("attention.layer_norm_rms_epsilon"), epsilon);
    if *architecture != Architecture::Llama {
        keys.bool("diffusion.shift_logits", *architecture == Architecture::Dream);
    }
}

fn vocabulary(keys: &mut Keys, recipe: &Recipe) {
    let tokens = tokens(recipe.architecture, recipe.shape.vocab);
    keys.str("tokenizer.ggml.model", "gpt2");
    keys.str("tokenizer.ggml.pre", tokens.pre);
    keys.strs("tokenizer.ggml.tokens", tokens.texts.iter().map(String::as_str));
    keys.i32s("tokenizer.ggml.token_type", &tokens.types);
    keys.strs("tokenizer.ggml.merges", MERGES.into_iter());
    keys.u32("tokenizer.ggml.bos_token_id", tokens.bos);
    keys.u32("tokenizer.ggml.eos_token_id", tokens.eos);
    keys.u32("tokenizer.ggml.eot_token_id", tokens.eot);
    if let Some(mask) = tokens.mask {
        keys.u32("tokenizer.ggml.mask_token_id", mask);
    }
    keys.bool("tokenizer.ggml.add_bos_token", false);
}

/// Appends the table; returns the bytes of all data.
fn tensor_table(tensors: &[Tensor], header: &mut Vec<u8>) -> Result<u64, Error> {
    let mut offset = 0u64;
    for tensor in tensors {
        string(header, &tensor.name);
        let dims = match tensor.content {
            Content::Weights => vec![tensor.cols as u64, tensor.rows as u64],
            Content::Norm | Content::Bias => vec![tensor.cols as u64],
        };
        header.extend((dims.len() as u32).to_le_bytes());
        header.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
        header.extend(number(tensor.dtype).to_le_bytes());
        header.extend(offset.to_le_bytes());
        let end = tensor.bytes().and_then(|bytes| offset.checked_add(bytes));
        let end = end.and_then(|end| end.checked_next_multiple_of(ALIGNMENT as u64));
        offset = end.ok_or(Error::TooLarge)?;
    }
    Ok(offset)
}

/// ggml's number of a type.
fn number(dtype: Dtype) -> u32 {
    // Every type has a number, and all are small.
    (0..u8::MAX.into()).find(|number| Dtype::from_ggml(*number) == Some(dtype)).unwrap_or(0)
}

/// Keys and values in the order that they were added in.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    count: u64,
}

impl Keys {
    fn key(&mut self, key: &str, value_type: u32) {
        self.count += 1;
        string(&mut self.bytes, key);
        self.bytes.extend(value_type.to_le_bytes());
    }

    fn u32(&mut self, key: &str, value: u32) {
        self.key(key, U32);
        self.bytes.extend(value.to_le_bytes());
    }

    fn f32(&mut self, key: &str, value: f32) {
        self.key(key, F32);
        self.bytes.extend(value.to_le_bytes());
    }

    fn bool(&mut self, key: &str, value: bool) {
        self.key(key, BOOL);
        self.bytes.push(u8::from(value));
    }

    fn str(&mut self, key: &str, value: &str) {
        self.key(key, STRING);
        string(&mut self.bytes, value);
    }

    fn strs<'a>(&mut self, key: &str, values: impl ExactSizeIterator<Item = &'a str>) {
        self.array(key, STRING, values.len());
        values.for_each(|value| string(&mut self.bytes, value));
    }

    fn i32s(&mut self, key: &str, values: &[i32]) {
        self.array(key, I32, values.len());
        self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }

    fn array(&mut self, key: &str, item_type: u32, len: usize) {
        self.key(key, ARRAY);
        self.bytes.extend(item_type.to_le_bytes());
        self.bytes.extend((len as u64).to_le_bytes());
    }
}

fn string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}
