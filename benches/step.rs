//! A whole denoising step of the small models in the tree, and loading them.
//!
//! `cargo bench --bench step`; under `cargo test` it runs once. Prints a hash of the last canvas.

mod common;

use common::say_hash;
use criterion::Criterion;
use dllm_rt::denoise::{ModelFacts, Settings};
use dllm_rt::sample::Kind;
use dllm_rt::{Engine, Limits, Options, Schedule, gguf};
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
            let settings = Settings { gen_length: 64, early_stop: false, ..Settings::default() };
            let schedule = Schedule::new(kind, &settings).unwrap();
            let facts = ModelFacts {
                mask_token: MASK,
                vocab_size: engine.config().vocab as u32,
                shift_logits: engine.config().shift_logits,
                end_of_text: vec![],
                end_of_turn: vec![],
            };
            let prompt: Vec<u32> = (0..84).map(|i| 17 * i).collect();
            let new = |engine: &Engine| engine.canvas(&prompt, &schedule, &facts).unwrap();
            let mut canvas = new(&engine);
            c.bench_function(&format!("step {name} {threads} threads"), |b| {
                b.iter(|| {
                    if canvas.is_done() {
                        canvas = new(&engine);
                    }
                    engine.step(&mut canvas).masks_left
                })
            });
            let mut canvas = new(&engine);
            while !canvas.is_done() {
                engine.step(&mut canvas);
            }
            let bytes: Vec<u8> = canvas.ids().iter().flat_map(|id| id.to_le_bytes()).collect();
            say_hash(&format!("{name} {threads} threads"), &bytes);
        }
    }
}

fn main() {
    common::run(|criterion, _| measure(criterion));
}
