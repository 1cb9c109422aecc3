//! The small models kept in the tree, loaded for tests.
#![allow(dead_code)]

use dllm_rt::denoise::{Cache, ModelFacts, Pace, Settings};
use dllm_rt::gguf::{self, Gguf};
use dllm_rt::sample::{Algorithm, Kind};
use dllm_rt::{Engine, Limits, Options, Schedule};
use std::path::Path;

/// LLaDA's architecture, K-quants: activations with one scale per 256.
pub const LLADA: &str = "llada-tiny-sharp-Q4_K_M";
/// LLaDA's architecture, one scale per 32.
pub const LLADA_Q8: &str = "llada-tiny-sharp-Q8_0";
/// Dream's architecture: grouped heads, biases, shifted logits.
pub const DREAM: &str = "dream-tiny-sharp-Q4_K_M";
/// All of them.
pub const ALL: [&str; 3] = [LLADA, LLADA_Q8, DREAM];

/// The mask token that all of them name.
pub const MASK: u32 = 2040;

pub fn open(name: &str) -> Gguf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/models");
    gguf::open(&folder.join(format!("{name}.gguf"))).unwrap()
}

pub fn load(name: &str, threads: usize, isa: Option<&str>) -> Engine {
    load_within(
        name,
        Limits { logits: true, guidance: true, cache: true, ..Limits::new(96, 96, threads) },
        isa,
    )
}

pub fn load_within(name: &str, limits: Limits, isa: Option<&str>) -> Engine {
    let options = Options { isa: isa.map(str::to_owned), ..Options::default() };
    Engine::load(&open(name), limits, &options, &mut |_, _| ()).unwrap()
}

pub fn facts(engine: &Engine) -> ModelFacts {
    ModelFacts {
        mask_token: MASK,
        vocab_size: engine.config().vocab as u32,
        shift_logits: engine.config().shift_logits,
        // Two of the forty tokens that these models choose among.
        end_of_text: vec![301],
        end_of_turn: vec![310],
    }
}

/// A prompt with a hole in it.
pub fn prompt() -> Vec<u32> {
    let mut prompt: Vec<u32> = (0..20).map(|i| 100 + 37 * i).collect();
    prompt[7] = MASK;
    prompt
}

/// Every sampler, and every way to save work.
pub fn every_setting(kind: Kind) -> Vec<Settings> {
    every_sampler(kind).into_iter().chain(every_saving(kind)).collect()
}

/// Every pace with every cache.
pub fn every_saving(kind: Kind) -> Vec<Settings> {
    let base = Settings { gen_length: 24, block_length: Some(8), ..Settings::default() };
    let mut all = Vec::new();
    for cache in Cache::ALL {
        for refresh in [None, Some(3)].into_iter().filter(|r| r.is_none() || cache != Cache::None) {
            let base = Settings { cache, refresh, early_stop: false, ..base.clone() };
            all.push(Settings { pace: Pace::Threshold(0.3), grow: true, ..base.clone() });
            all.push(Settings { pace: Pace::Factor(2.0), ..base.clone() });
            all.push(Settings { grow: kind == Kind::Llada, ..base });
        }
    }
    all
}

/// Every algorithm of a kind with every way to choose tokens and positions.
pub fn every_sampler(kind: Kind) -> Vec<Settings> {
    let base = Settings {
        gen_length: 24,
        block_length: Some(8),
        temperature: Some(0.0),
        early_stop: false,
        ..Settings::default()
    };
    let mut all = Vec::new();
    for algorithm in kind.algorithms() {
        let base = Settings { algorithm: Some(*algorithm), ..base.clone() };
        all.push(base.clone());
        all.push(Settings { temperature: Some(0.7), ..base.clone() });
        all.push(Settings { forbid_end_in_logits: true, early_stop: true, ..base.clone() });
        match kind {
            Kind::Llada => {
                all.push(Settings { cfg_scale: 0.5, ..base.clone() });
                let (cfg_scale, temperature) = (1.5, Some(0.6));
                all.push(Settings { cfg_scale, temperature, ..base.clone() });
                let (early_stop, zero_end_confidence) = (true, true);
                all.push(Settings { early_stop, zero_end_confidence, ..base.clone() });
            }
            Kind::Dream => {
                let (temperature, top_p) = (Some(0.4), Some(0.9));
                all.push(Settings { temperature, top_p, top_k: Some(40), ..base.clone() });
                if *algorithm != Algorithm::Origin {
                    all.push(Settings { alg_temp: Some(0.3), ..base.clone() });
                }
            }
        }
    }
    all
}

/// Runs a request to its end; `after` sees the canvas after each step.
pub fn run(engine: &mut Engine, settings: &Settings, mut after: impl FnMut(&Engine, &[u32])) {
    let schedule = Schedule::new(engine.kind(), settings).unwrap();
    let mut canvas = engine.canvas(&prompt(), &schedule, &facts(engine)).unwrap();
    while !canvas.is_done() {
        engine.step(&mut canvas);
        after(engine, canvas.ids());
    }
}
