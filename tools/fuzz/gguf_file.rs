//! What the `gguf` target does with its bytes; a test of the main package does it to the seeds.

use dllm_rt::Limits;
use dllm_rt::backend::cpu::Plan;
use dllm_rt::gguf::{Gguf, inspect};
use dllm_rt::model::Network;
use dllm_rt::vocab::{Vocab, parts_from_gguf};
use std::io;

/// Tokens of a vocabulary that is built: enough for every byte and some merges, few enough for
/// thousands of runs a second.
const TOKENS_MAX: usize = 512;

/// How far a file got.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reached {
    /// Whether its header was read.
    pub file: bool,
    /// Whether it is a model that can be planned.
    pub plan: bool,
    /// Whether it has a vocabulary.
    pub vocab: bool,
}

/// Reads any bytes as a GGUF file, and what it holds as a model and as a vocabulary.
pub fn read(bytes: &[u8]) -> Reached {
    let Ok(gguf) = Gguf::from_bytes(bytes.to_vec()) else { return Reached::default() };
    for tensor in gguf.tensors() {
        assert_eq!(gguf.data(tensor).len(), tensor.bytes);
    }
    for key in gguf.keys() {
        let _ = (gguf.u32(key), gguf.f32(key), gguf.str(key), gguf.bool(key));
        let _ = gguf.strings(key).map(Iterator::count);
        let _ = gguf.i32s(key).map(Iterator::count);
        let _ = gguf.f32s(key).map(Iterator::count);
    }
    let _ = inspect::write_text(&gguf, &mut io::sink());
    let _ = inspect::write_json(&gguf, &mut io::sink());
    let _ = gguf.hash();
    Reached { file: true, plan: plan(&gguf), vocab: vocab(&gguf) }
}

fn plan(gguf: &Gguf) -> bool {
    let Ok(model) = Network::from_gguf(gguf) else { return false };
    let limits = Limits { logits: true, guidance: true, ..Limits::new(33, 3, 2) };
    let Ok(plan) = Plan::new(&model, limits) else { return false };
    let mut end = 0;
    for weight in &plan.weights {
        assert!(end <= weight.span.offset, "weights overlap");
        end = weight.span.offset + weight.span.bytes;
    }
    assert!(end <= plan.fixed_bytes && plan.fixed_bytes <= plan.total_bytes);
    for buffer in &plan.buffers {
        let span = buffer.span();
        assert!(plan.fixed_bytes <= span.offset && span.bytes <= plan.total_bytes - span.offset);
    }
    true
}

fn vocab(gguf: &Gguf) -> bool {
    let Ok(parts) = parts_from_gguf(gguf) else { return false };
    parts.tokens.len() <= TOKENS_MAX && Vocab::new(parts).is_ok()
}
