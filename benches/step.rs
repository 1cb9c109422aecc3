//! A whole denoising step of the small models in the tree, and loading them.
//!
//! `cargo bench --bench step`; under `cargo test` it runs once. Prints a hash of the last canvas.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use common::say_hash;
use criterion::Criterion;
use dllm_rt::denoise::{RequestParameters, TokenFacts};
use dllm_rt::sample::Kind;
use dllm_rt::{Engine, GenerationParameters, Limits, Options, gguf};
use std::path::Path;

const MODELS: [(&str, Kind); 2] =
    [("llada-tiny-sharp-Q4_K_M", Kind::Llada), ("dream-tiny-sharp-Q4_K_M", Kind::Dream)];
/// The mask token of these models.
const MASK: u32 = 2040;

fn measure(c: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/models");
    for (name, kind) in MODELS {
        let file = gguf::open(&folder.join(format!("{name}.gguf"))).unwrap();
        for threads in [1, 2] {
            let limits = Limits { logits: true, ..Limits::new(148, 148, threads) };
            let load = || Engine::load(&file, limits, &Options::default(), &mut |_, _| ()).unwrap();
            c.bench_function(&format!("load {name} {threads} threads"), |b| b.iter(load));
            let mut engine = load();
            let request = RequestParameters {
                max_tokens: 64,
                early_stop: false,
                ..RequestParameters::default()
            };
            let parameters = GenerationParameters::new(kind, &request).unwrap();
            let facts = TokenFacts {
                mask_token: MASK,
                vocab_size: engine.config().vocab as u32,
                shift_logits: engine.config().shift_logits,
                end_of_text: vec![],
                end_of_turn: vec![],
            };
            let prompt: Vec<u32> = (0..84).map(|i| 17 * i).collect();
            let new = |engine: &mut Engine| engine.sequence(&prompt, &parameters, &facts).unwrap();
            let mut sequence = new(&mut engine);
            c.bench_function(&format!("step {name} {threads} threads"), |b| {
                b.iter(|| {
                    if sequence.canvas().is_done() {
                        sequence = new(&mut engine);
                    }
                    engine.step_one(&mut sequence).unwrap().masks_left
                })
            });
            let mut sequence = new(&mut engine);
            while !sequence.canvas().is_done() {
                engine.step_one(&mut sequence).unwrap();
            }
            let bytes: Vec<u8> =
                sequence.canvas().ids().iter().flat_map(|id| id.to_le_bytes()).collect();
            say_hash(&format!("{name} {threads} threads"), &bytes);
        }
    }
}

fn main() {
    common::run(|criterion, _| measure(criterion));
}
