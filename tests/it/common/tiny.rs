//! The smallest models that are complete: one layer, 64 wide, a byte-level vocabulary.

#![allow(dead_code, reason = "every test that includes this uses another part of it")]

use super::gguf_writer::{GgufWriter, tensor_type};

/// Width of the residual stream; two heads of 32.
pub const WIDTH: u64 = 64;
/// Width of the feed-forward.
pub const FF: u64 = 96;
/// 256 bytes, two merges, fourteen control tokens.
pub const VOCAB: u64 = 272;
/// The mask token.
pub const MASK: u32 = 258;

/// A complete model of architecture `llada`: F32 weights, output tied to the embedding.
pub fn llada() -> GgufWriter {
    let mut file = vocabulary("llada", "bailingmoe");
    file.u32("llada.context_length", 256)
        .u32("llada.embedding_length", WIDTH as u32)
        .u32("llada.block_count", 1)
        .u32("llada.feed_forward_length", FF as u32)
        .u32("llada.attention.head_count", 2)
        .u32("llada.attention.head_count_kv", 2)
        .f32("llada.attention.layer_norm_rms_epsilon", 1e-5)
        .f32("llada.rope.freq_base", 5e5)
        .u32("llada.vocab_size", VOCAB as u32);
    weights(&mut file);
    file
}

/// The smallest complete model of architecture `llada` or `dream`, with a vocabulary of its own:
/// for `llada` every tensor F16 and the output tied, for `dream` matrices of Q8_0, grouped heads,
/// biases and an output of its own.
pub fn smallest(architecture: &str) -> GgufWriter {
    let is_dream = architecture == "dream";
    let tokens = ["a", "b", "c", "1", "ab", "abc", "<|mask|>", "<|eos|>"];
    // Q8_0 has blocks of 32.
    let (width, heads, kv_heads) = if is_dream { (32, 4, 2) } else { (16, 2, 2) };
    let head_width = width / heads;
    let key = |name: &str| format!("{architecture}.{name}");
    let mut file = GgufWriter::new();
    file.str("general.architecture", architecture)
        .u32(&key("context_length"), 64)
        .u32(&key("embedding_length"), width as u32)
        .u32(&key("block_count"), 1)
        .u32(&key("feed_forward_length"), width as u32)
        .u32(&key("attention.head_count"), heads as u32)
        .u32(&key("attention.head_count_kv"), kv_heads as u32)
        .f32(&key("attention.layer_norm_rms_epsilon"), 1e-6)
        .f32(&key("rope.freq_base"), 1e4)
        .u32(&key("rope.dimension_count"), head_width as u32)
        .bool("diffusion.shift_logits", is_dream)
        .str("tokenizer.ggml.model", "gpt2")
        .strs("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &[1, 1, 1, 1, 1, 1, 3, 3])
        .strs("tokenizer.ggml.merges", &["a b", "ab c"])
        .u32("tokenizer.ggml.mask_token_id", 6)
        .u32("tokenizer.ggml.eos_token_id", 7);
    let kv_cols = kv_heads * head_width;
    let mut matrix = |name: &str, rows: u64, cols: u64| {
        let (ty, row_bytes) = if is_dream {
            (tensor_type::Q8_0, cols / 32 * 34)
        } else {
            (tensor_type::F16, 2 * cols)
        };
        let data = vec![0x2a; (rows * row_bytes) as usize];
        file.tensor(&format!("{name}.weight"), &[cols, rows], ty, data);
    };
    matrix("token_embd", tokens.len() as u64, width);
    if is_dream {
        matrix("output", tokens.len() as u64, width);
    }
    let qkv = [("blk.0.attn_q", width), ("blk.0.attn_k", kv_cols), ("blk.0.attn_v", kv_cols)];
    qkv.iter().for_each(|(name, rows)| matrix(name, *rows, width));
    for name in ["attn_output", "ffn_gate", "ffn_up", "ffn_down"] {
        matrix(&format!("blk.0.{name}"), width, width);
    }
    for name in ["blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"] {
        vector(&mut file, &format!("{name}.weight"), width);
    }
    if is_dream {
        qkv.iter().for_each(|(name, rows)| vector(&mut file, &format!("{name}.bias"), *rows));
    }
    file
}

/// A file that holds only a vocabulary: what `tokenize` needs.
pub fn vocabulary(architecture: &str, pre: &str) -> GgufWriter {
    let mut tokens: Vec<String> = (0..=255u8).map(|byte| byte_char(byte).to_string()).collect();
    tokens.extend(["ab".to_owned(), "abc".to_owned()]);
    let controls = ["<|mask|>", "<|bos|>", "<|eos|>", "<|eot|>"];
    tokens.extend(controls.map(str::to_owned));
    let missing = VOCAB as usize - tokens.len();
    tokens.extend((0..missing).map(|index| format!("<|reserved_{index}|>")));
    let control_type = 3;
    let types: Vec<i32> =
        (0..tokens.len()).map(|id| if id < MASK as usize { 1 } else { control_type }).collect();
    let mut file = GgufWriter::new();
    file.str("general.architecture", architecture)
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", pre)
        .strs("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &types)
        .strs("tokenizer.ggml.merges", &["a b", "ab c"])
        .u32("tokenizer.ggml.mask_token_id", MASK)
        .u32("tokenizer.ggml.bos_token_id", MASK + 1)
        .u32("tokenizer.ggml.eos_token_id", MASK + 2)
        .u32("tokenizer.ggml.eot_token_id", MASK + 3)
        .bool("tokenizer.ggml.add_bos_token", false)
        .str("tokenizer.chat_template", "{% for m in messages %}{{ m.content }}{% endfor %}");
    file
}

fn weights(file: &mut GgufWriter) {
    matrix(file, "token_embd.weight", WIDTH, VOCAB);
    vector(file, "output_norm.weight", WIDTH);
    vector(file, "blk.0.attn_norm.weight", WIDTH);
    for name in ["attn_q", "attn_k", "attn_v", "attn_output"] {
        matrix(file, &format!("blk.0.{name}.weight"), WIDTH, WIDTH);
    }
    vector(file, "blk.0.ffn_norm.weight", WIDTH);
    matrix(file, "blk.0.ffn_gate.weight", WIDTH, FF);
    matrix(file, "blk.0.ffn_up.weight", WIDTH, FF);
    matrix(file, "blk.0.ffn_down.weight", FF, WIDTH);
}

/// `[rows][cols]` of small numbers that differ from row to row.
fn matrix(file: &mut GgufWriter, name: &str, cols: u64, rows: u64) {
    let value = |index: u64| ((index * 2_654_435_761) % 1_000) as f32 / 8_000.0 - 0.0625;
    let values: Vec<f32> = (0..rows * cols).map(value).collect();
    file.f32_tensor(name, &[cols, rows], &values);
}

fn vector(file: &mut GgufWriter, name: &str, len: u64) {
    file.f32_tensor(name, &[len], &vec![1.0; len as usize]);
}

/// The character that stands for a byte in a byte-level vocabulary: itself if it prints, else the
/// next free one from U+0100 on.
fn byte_char(byte: u8) -> char {
    let prints = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if prints(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !prints(other)).count() as u32;
    char::from_u32(0x100 + before).unwrap_or('?')
}
