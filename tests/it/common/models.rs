//! The small models kept in the tree, loaded for tests.
#![allow(dead_code)]

use dllm_rt::denoise::{Cache, RequestParameters, TokenFacts};
use dllm_rt::gguf::{self, Gguf};
use dllm_rt::sample::{Algorithm, Kind};
use dllm_rt::{Engine, GenerationParameters, Limits, Options};
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
        Limits { logits: true, guidance: true, kv_cache: true, ..Limits::new(96, 96, threads) },
        isa,
    )
}

pub fn load_within(name: &str, limits: Limits, isa: Option<&str>) -> Engine {
    let options = Options { isa: isa.map(str::to_owned), ..Options::default() };
    Engine::load(&open(name), limits, &options, &mut |_, _| ()).unwrap()
}

pub fn facts(engine: &Engine) -> TokenFacts {
    TokenFacts {
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
pub fn every_setting(kind: Kind) -> Vec<RequestParameters> {
    every_sampler(kind).into_iter().chain(every_saving(kind)).collect()
}

/// Every pace with every cache.
pub fn every_saving(kind: Kind) -> Vec<RequestParameters> {
    let base =
        RequestParameters { max_tokens: 24, block_length: Some(8), ..RequestParameters::default() };
    let mut all = Vec::new();
    for cache in Cache::ALL {
        for refresh in [None, Some(3)].into_iter().filter(|r| r.is_none() || cache != Cache::None) {
            let base = RequestParameters {
                cache: Some(cache),
                refresh,
                early_stop: false,
                ..base.clone()
            };
            all.push(RequestParameters { threshold: Some(0.3), grow: Some(true), ..base.clone() });
            all.push(RequestParameters { factor: Some(2.0), ..base.clone() });
            all.push(RequestParameters { grow: Some(kind == Kind::Llada), ..base });
        }
    }
    all
}

/// Every algorithm of a kind with every way to choose tokens and positions.
pub fn every_sampler(kind: Kind) -> Vec<RequestParameters> {
    let base = RequestParameters {
        max_tokens: 24,
        block_length: Some(8),
        temperature: Some(0.0),
        early_stop: false,
        ..RequestParameters::default()
    };
    let mut all = Vec::new();
    for algorithm in kind.algorithms() {
        let base = RequestParameters { algorithm: Some(*algorithm), ..base.clone() };
        all.push(base.clone());
        all.push(RequestParameters { temperature: Some(0.7), ..base.clone() });
        all.push(RequestParameters { forbid_end: true, early_stop: true, ..base.clone() });
        match kind {
            Kind::Llada => {
                all.push(RequestParameters { cfg_scale: 0.5, ..base.clone() });
                let (cfg_scale, temperature) = (1.5, Some(0.6));
                all.push(RequestParameters { cfg_scale, temperature, ..base.clone() });
                let (early_stop, distrust_end) = (true, true);
                all.push(RequestParameters { early_stop, distrust_end, ..base.clone() });
            }
            Kind::Dream => {
                let (temperature, top_p) = (Some(0.4), Some(0.9));
                all.push(RequestParameters { temperature, top_p, top_k: Some(40), ..base.clone() });
                if *algorithm != Algorithm::Origin {
                    all.push(RequestParameters { alg_temp: Some(0.3), ..base.clone() });
                }
            }
        }
    }
    all
}

/// Runs a request to its end; `after` sees the canvas after each step.
pub fn run(
    engine: &mut Engine,
    request: &RequestParameters,
    mut after: impl FnMut(&Engine, &[u32]),
) {
    let parameters = GenerationParameters::new(engine.kind(), request).unwrap();
    let mut sequence = engine.sequence(&prompt(), &parameters, &facts(engine)).unwrap();
    while !sequence.canvas().is_done() {
        engine.step_one(&mut sequence).unwrap();
        after(engine, sequence.canvas().ids());
    }
}
