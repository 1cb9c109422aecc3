//! Files whose GGUF layer is sound but which hold no model that can be run.

use crate::case::Case;
use crate::common::gguf_writer::{Field, GgufWriter, tensor_type, value_type as ty};
use crate::common::tiny::{self, FF, VOCAB, WIDTH};

pub fn cases() -> Vec<Case> {
    let mut cases = keys();
    cases.extend(values());
    cases.extend(tensors());
    cases.extend(shapes());
    cases.extend(types());
    cases.extend(numbers());
    cases
}

fn changed(change: impl Fn(&mut GgufWriter)) -> Vec<u8> {
    let mut file = tiny::llada();
    change(&mut file);
    file.bytes()
}

/// Every key that a model needs, missing and of a wrong type.
fn keys() -> Vec<Case> {
    let needed = [
        "general.architecture",
        "llada.context_length",
        "llada.embedding_length",
        "llada.block_count",
        "llada.feed_forward_length",
        "llada.attention.head_count",
        "llada.attention.layer_norm_rms_epsilon",
    ];
    let mut cases = Vec::new();
    for key in needed {
        let missing = changed(|file| {
            file.remove(key);
        });
        cases.push(Case::logits(&format!("{key} is missing"), missing, key));
        let typed = changed(|file| {
            file.bool(key, true);
        });
        cases.push(Case::logits(&format!("{key} is a boolean"), typed, key));
    }
    cases
}

fn values() -> Vec<Case> {
    let u32 = |key: &str, value: u32| {
        let (key, bytes) = (
            format!("llada.{key}"),
            changed(|file| {
                file.u32(&format!("llada.{key}"), value);
            }),
        );
        Case::logits(&format!("{key} is {value}"), bytes, &key)
    };
    let f32 = |key: &str, value: f32| {
        let (key, bytes) = (
            format!("llada.{key}"),
            changed(|file| {
                file.f32(&format!("llada.{key}"), value);
            }),
        );
        Case::logits(&format!("{key} is {value}"), bytes, &key)
    };
    let mut cases = Vec::new();
    for key in ["embedding_length", "block_count", "feed_forward_length", "attention.head_count"] {
        cases.extend([u32(key, 0), u32(key, u32::MAX), u32(key, 3)]);
    }
    // A layer that the file does not have is named by its first tensor.
    cases[5].expected = "blk.1.attn_norm.weight".to_owned();
    cases.extend([u32("context_length", 0), u32("attention.head_count_kv", 3)]);
    cases.extend([u32("vocab_size", 271), u32("attention.key_length", 31)]);
    cases.extend([u32("rope.dimension_count", 33), u32("rope.dimension_count", 66)]);
    for value in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        cases.push(f32("attention.layer_norm_rms_epsilon", value));
        cases.push(f32("rope.freq_base", value));
    }
    let text = |name: &str, key: &'static str, value: &'static str, expected: &str| {
        let bytes = changed(|file| {
            file.str(key, value);
        });
        Case::logits(name, bytes, expected)
    };
    cases.extend([
        text("another architecture", "general.architecture", "gpt2", "gpt2"),
        text("an empty architecture", "general.architecture", "", "llada"),
        text("control in the architecture", "general.architecture", "\x1b[2J", "\\u{1b}[2J"),
        text("scaled rope", "llada.rope.scaling.type", "yarn", "llada.rope.scaling.type"),
    ]);
    let negative = Field { ty: ty::I32, bytes: (-64i32).to_le_bytes().to_vec() };
    let bytes = changed(|file| {
        file.set("llada.embedding_length", negative.clone());
    });
    cases.push(Case::logits("embedding_length below zero", bytes, "llada.embedding_length"));
    let invalid = Field { ty: ty::STRING, bytes: crate::common::gguf_writer::string(b"\xff") };
    let bytes = changed(|file| {
        file.set("general.architecture", invalid.clone());
    });
    cases.push(Case::logits("architecture not UTF-8", bytes, "general.architecture"));
    cases
}

/// Every tensor that a model needs, missing.
fn tensors() -> Vec<Case> {
    let whole = tiny::llada();
    let mut cases = Vec::new();
    for tensor in &whole.tensors {
        let name = String::from_utf8_lossy(&tensor.name).into_owned();
        let bytes = changed(|file| file.tensors.retain(|other| other.name != tensor.name));
        cases.push(Case::logits(&format!("{name} is missing"), bytes, &name));
    }
    let none = changed(|file| file.tensors.clear());
    cases.push(Case::logits("no tensors", none, "token_embd.weight"));
    cases
}

fn shapes() -> Vec<Case> {
    let shaped = |name: &'static str, shape: &[u64]| {
        let bytes = changed(|file| {
            file.f32_tensor(name, shape, &vec![1.0; shape.iter().product::<u64>() as usize]);
        });
        Case::logits(&format!("{name} of shape {shape:?}"), bytes, name)
    };
    vec![
        shaped("token_embd.weight", &[VOCAB, WIDTH]),
        shaped("token_embd.weight", &[WIDTH, VOCAB, 2]),
        shaped("output_norm.weight", &[WIDTH + 1]),
        shaped("output_norm.weight", &[WIDTH, 2]),
        shaped("blk.0.attn_norm.weight", &[WIDTH / 2]),
        shaped("blk.0.attn_q.weight", &[WIDTH, WIDTH / 2]),
        shaped("blk.0.attn_k.weight", &[WIDTH / 2, WIDTH]),
        shaped("blk.0.attn_v.weight", &[WIDTH, WIDTH * 2]),
        shaped("blk.0.attn_output.weight", &[WIDTH * WIDTH]),
        shaped("blk.0.ffn_gate.weight", &[FF, WIDTH]),
        shaped("blk.0.ffn_up.weight", &[WIDTH, FF, 1, 2]),
        shaped("blk.0.ffn_down.weight", &[WIDTH, FF]),
        shaped("output.weight", &[WIDTH, VOCAB - 1]),
        shaped("blk.0.attn_q.bias", &[WIDTH - 1]),
    ]
}

fn types() -> Vec<Case> {
    let (i32_type, f64_type, iq1_m, withdrawn) = (26, 28, 29, 31);
    let elements = WIDTH * WIDTH;
    let typed = |what: &str, name: &'static str, ty: u32, shape: &[u64], bytes: u64| {
        let bytes = changed(|file| {
            file.tensor(name, shape, ty, vec![0; bytes as usize]);
        });
        Case::logits(&format!("{name} in {what}"), bytes, name)
    };
    let square = [WIDTH, WIDTH];
    vec![
        typed("I32", "blk.0.attn_q.weight", i32_type, &square, 4 * elements),
        typed("F64", "blk.0.attn_k.weight", f64_type, &square, 8 * elements),
        typed("Q4_0_4_4", "blk.0.attn_v.weight", withdrawn, &square, elements / 32 * 18),
        typed("IQ1_M", "token_embd.weight", iq1_m, &[256, 68], 68 * 56),
        typed("Q8_0", "output_norm.weight", tensor_type::Q8_0, &[WIDTH], WIDTH / 32 * 34),
        typed("I32", "blk.0.ffn_norm.weight", i32_type, &[WIDTH], 4 * WIDTH),
    ]
}

/// NaN and infinities, each of which names tensor and row.
fn numbers() -> Vec<Case> {
    let valued = |name: &'static str, shape: &[u64], at: usize, value: f32| {
        let mut values = vec![0.5; shape.iter().product::<u64>() as usize];
        values[at] = value;
        let bytes = changed(|file| {
            file.f32_tensor(name, shape, &values);
        });
        Case::logits(&format!("{value} in {name}"), bytes, name)
    };
    let infinite_scale = changed(|file| {
        let mut data = vec![0; (WIDTH * WIDTH / 32 * 34) as usize];
        // The f16 scale of the second row's first block.
        data[68..70].copy_from_slice(&0x7c00u16.to_le_bytes());
        file.tensor("blk.0.attn_q.weight", &[WIDTH, WIDTH], tensor_type::Q8_0, data);
    });
    let nan_half = changed(|file| {
        let mut data = vec![0; (2 * WIDTH * VOCAB) as usize];
        data[2..4].copy_from_slice(&0x7e00u16.to_le_bytes());
        file.tensor("token_embd.weight", &[WIDTH, VOCAB], tensor_type::F16, data);
    });
    vec![
        valued("output_norm.weight", &[WIDTH], 5, f32::NAN),
        valued("blk.0.attn_norm.weight", &[WIDTH], 0, f32::INFINITY),
        valued("blk.0.ffn_norm.weight", &[WIDTH], 63, f32::NEG_INFINITY),
        valued("blk.0.attn_q.bias", &[WIDTH], 1, f32::NAN),
        valued("blk.0.attn_k.weight", &[WIDTH, WIDTH], 64, f32::NAN),
        Case::logits("an infinite scale", infinite_scale, "blk.0.attn_q.weight"),
        Case::logits("NaN as f16", nan_half, "token_embd.weight"),
    ]
}
