//! Seeds of the `gguf` target.

use super::gguf_file::Reached;
use crate::common::gguf_writer::{Field, GgufWriter, array, string, tensor_type, value_type};
use crate::common::tiny;

/// A seed and how far it gets.
pub struct File {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    pub reached: Reached,
}

pub fn all() -> Vec<File> {
    let file = |name, writer: GgufWriter, plan: bool, vocab: bool| File {
        name,
        bytes: writer.bytes(),
        reached: Reached { file: true, plan, vocab },
    };
    let (llada, dream) = (tiny::smallest("llada"), tiny::smallest("dream"));
    let mut lone_part = tiny::smallest("llada");
    lone_part.u32("split.no", 0).u32("split.count", 1);
    let mut version_2 = tiny::smallest("llada");
    version_2.version = 2;
    vec![
        file("vocabulary", tiny::vocabulary("llada", "bailingmoe"), false, true),
        file("llada", llada, true, true),
        file("dream", dream, true, true),
        file("lone_part", lone_part, true, true),
        file("version_2", version_2, true, true),
        file("rope", rope(), true, true),
        file("super_blocks", super_blocks(), true, true),
        file("values", values(), false, false),
        file("types", types(), false, false),
        file("aligned", aligned(), false, false),
    ]
}

/// The optional keys and tensors of rotary positions, heads and biases.
fn rope() -> GgufWriter {
    let mut file = tiny::smallest("llada");
    file.u32("llada.attention.key_length", 8)
        .u32("llada.attention.value_length", 8)
        .u32("llada.vocab_size", 8)
        .str("llada.rope.scaling.type", "none")
        .f32("llada.rope.scaling.factor", 1.0)
        .f32_tensor("rope_freqs.weight", &[4], &[1.0, 1.0, 2.0, 4.0])
        .f32_tensor("blk.0.attn_output.bias", &[16], &[0.5; 16])
        .f32_tensor("blk.0.ffn_down.bias", &[16], &[0.5; 16]);
    file
}

/// A width of one super-block, for the types that need it; one head, and little else that is wide.
fn super_blocks() -> GgufWriter {
    let mut file = tiny::smallest("llada");
    file.u32("llada.embedding_length", 256)
        .u32("llada.attention.head_count", 1)
        .u32("llada.attention.head_count_kv", 1)
        .u32("llada.attention.key_length", 8)
        .u32("llada.rope.dimension_count", 8);
    let mut zeros = |name: &str, shape: [u64; 2], ty: u32, block: [u64; 2]| {
        let bytes = shape[0] / block[0] * block[1] * shape[1];
        file.tensor(&format!("{name}.weight"), &shape, ty, vec![0; bytes as usize]);
    };
    zeros("token_embd", [256, 8], tensor_type::Q2_K, [256, 84]);
    zeros("blk.0.attn_q", [256, 8], tensor_type::Q3_K, [256, 110]);
    zeros("blk.0.attn_k", [256, 8], tensor_type::Q4_K, [256, 144]);
    zeros("blk.0.attn_v", [256, 8], tensor_type::Q6_K, [256, 210]);
    zeros("blk.0.attn_output", [8, 256], tensor_type::BF16, [1, 2]);
    zeros("blk.0.ffn_gate", [256, 16], tensor_type::IQ4_XS, [256, 136]);
    zeros("blk.0.ffn_up", [256, 16], tensor_type::Q4_1, [32, 20]);
    zeros("blk.0.ffn_down", [16, 256], tensor_type::F16, [1, 2]);
    for name in ["blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"] {
        file.f32_tensor(&format!("{name}.weight"), &[256], &[1.0; 256]);
    }
    file
}

/// Every type of value, and arrays of them.
fn values() -> GgufWriter {
    let numbers: [(u32, &[u8]); 11] = [
        (value_type::U8, &[200]),
        (value_type::I8, &[0x80]),
        (value_type::U16, &[1, 2]),
        // Signed 16-bit integers.
        (3, &[0xff, 0xff]),
        (value_type::U32, &[1, 0, 0, 0]),
        (value_type::I32, &[0xff; 4]),
        (value_type::F32, &[0, 0, 0x80, 0x3f]),
        (value_type::BOOL, &[1]),
        (value_type::U64, &[0xff; 8]),
        (value_type::I64, &[0xff; 8]),
        (value_type::F64, &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
    ];
    let mut file = GgufWriter::new();
    for (ty, bytes) in numbers {
        file.set(&format!("number.{ty}"), Field { ty, bytes: bytes.to_vec() });
        file.set(&format!("array.{ty}"), array(ty, &[bytes.to_vec(), bytes.to_vec()]));
        file.set(&format!("empty.{ty}"), array(ty, &[]));
    }
    let texts = [string(b"one"), string("zw\u{f6}lf\n\u{1b}[31m".as_bytes()), string(b"\xff")];
    file.set("strings", array(value_type::STRING, &texts));
    file.str("string", "a \"quoted\" one");
    file
}

/// A tensor of every type that can be read, and of one that cannot, each of one block.
fn types() -> GgufWriter {
    let blocks: [(&str, u32, u64, usize); 16] = [
        ("f32", tensor_type::F32, 1, 4),
        ("f16", tensor_type::F16, 1, 2),
        ("bf16", tensor_type::BF16, 1, 2),
        ("q4_0", tensor_type::Q4_0, 32, 18),
        ("q4_1", tensor_type::Q4_1, 32, 20),
        ("q5_0", tensor_type::Q5_0, 32, 22),
        ("q5_1", tensor_type::Q5_1, 32, 24),
        ("q8_0", tensor_type::Q8_0, 32, 34),
        ("q2_k", tensor_type::Q2_K, 256, 84),
        ("q3_k", tensor_type::Q3_K, 256, 110),
        ("q4_k", tensor_type::Q4_K, 256, 144),
        ("q5_k", tensor_type::Q5_K, 256, 176),
        ("q6_k", tensor_type::Q6_K, 256, 210),
        ("iq4_nl", tensor_type::IQ4_NL, 32, 18),
        ("iq4_xs", tensor_type::IQ4_XS, 256, 136),
        // 64-bit floats.
        ("f64", 28, 1, 8),
    ];
    let mut file = GgufWriter::new();
    for (name, ty, weights, bytes) in blocks {
        file.tensor(name, &[weights, 1, 1, 1], ty, vec![1; bytes]);
    }
    file
}

/// Another alignment than the usual one, and an architecture that is not supported.
fn aligned() -> GgufWriter {
    let mut file = GgufWriter::new();
    file.alignment = 8;
    file.u32("general.alignment", 8)
        .str("general.architecture", "llama")
        .f32_tensor("one", &[3], &[1.0; 3])
        .f32_tensor("two", &[1, 2], &[2.0; 2]);
    file
}
