//! Greedy steps keep statistics instead of logits: the same tokens and the same bits of confidence
//! as from whole rows, and engines without room for these.

use super::model::{Spec, TestModel};
use dllm_cpu::dtype::Dtype;
use dllm_rt::backend::cpu::Plan;
use dllm_rt::denoise::{RequestParameters, TokenFacts};
use dllm_rt::gguf::Gguf;
use dllm_rt::model::Network;
use dllm_rt::sample::{Algorithm, Kind};
use dllm_rt::{Engine, GenerationParameters, Limits, Options};

const MASK: u32 = 1;

fn load(model: &TestModel, logits: bool, threads: usize) -> Engine {
    let file = Gguf::from_bytes(model.file.bytes()).unwrap();
    let limits = Limits { logits, ..Limits::new(40, 40, threads) };
    Engine::load(&file, limits, &Options::default(), &mut |_, _| ()).unwrap()
}

/// Kinds whose steps need no logits, with the request of each.
fn greedy(architecture: &str) -> Vec<(Kind, RequestParameters)> {
    let kind = if architecture == "dream" { Kind::Dream } else { Kind::Llada };
    let request = |algorithm: &Algorithm| RequestParameters {
        max_tokens: 20,
        steps: Some(7),
        temperature: Some(0.0),
        algorithm: Some(*algorithm),
        early_stop: false,
        ..RequestParameters::default()
    };
    let mut all: Vec<_> = kind.algorithms().iter().map(request).collect();
    all.retain(|request| request.algorithm != Some(Algorithm::Entropy));
    all.push(RequestParameters { forbid_end: true, ..all[0].clone() });
    if kind == Kind::Llada {
        all.push(RequestParameters { distrust_end: true, ..all[0].clone() });
    }
    all.into_iter().map(|request| (kind, request)).collect()
}

/// What a run commits: step, position, token, bits of the confidence.
fn committed(
    engine: &mut Engine,
    kind: Kind,
    request: &RequestParameters,
) -> Vec<(u32, u32, u32, u64)> {
    let parameters = GenerationParameters::new(kind, request).unwrap();
    let vocab_size = engine.config().vocab as u32;
    let facts = TokenFacts {
        mask_token: MASK,
        vocab_size,
        shift_logits: kind == Kind::Dream,
        end_of_text: vec![0],
        end_of_turn: vec![vocab_size - 1],
    };
    let prompt: Vec<u32> = (0..13).map(|i| (5 * i) % vocab_size).collect();
    let mut sequence = engine.sequence(&prompt, &parameters, &facts).unwrap();
    let mut all = Vec::new();
    while !sequence.canvas().is_done() {
        engine.poison(u32::MAX);
        let progress = engine.step_one(&mut sequence).unwrap();
        let one = |c: &dllm_rt::denoise::Committed| {
            (progress.step, c.position, c.token, c.confidence.to_bits())
        };
        all.extend(progress.committed.iter().map(one));
    }
    all
}

/// Vocabularies on either side of a panel's and a group's end; in the smallest ones every logit is
/// often negative, so that padding, which is zero, would win.
#[test]
fn the_same_as_from_whole_rows() {
    for architecture in ["llada", "dream"] {
        for vocab in [3, 16, 17, 63, 65, 130] {
            let types = |_: &str| Dtype::Q8_0;
            let model = Spec { vocab, types, ..Spec::new(architecture) }.build(3);
            let mut stored = load(&model, true, 1);
            stored.set_full_logits(true);
            let others = [(true, 2), (false, 1), (false, 3)];
            let mut engines = others.map(|(logits, threads)| load(&model, logits, threads));
            for (kind, request) in greedy(architecture) {
                let what = format!("{architecture}, {vocab} tokens, {request:?}");
                let want = committed(&mut stored, kind, &request);
                assert!(want.len() >= 20 && want.iter().all(|c| c.2 != MASK), "{what}");
                for (engine, other) in engines.iter_mut().zip(others) {
                    let got = committed(engine, kind, &request);
                    assert_eq!(got, want, "{what}, logits planned and threads: {other:?}");
                }
            }
        }
    }
}

#[test]
fn without_room_for_logits_they_are_refused() {
    let model = Spec::new("dream").build(3);
    let mut engine = load(&model, false, 1);
    let facts = TokenFacts {
        mask_token: MASK,
        vocab_size: engine.config().vocab as u32,
        shift_logits: true,
        end_of_text: vec![],
        end_of_turn: vec![],
    };
    let error = engine.logits(&[2, 3], &[0]).unwrap_err().to_string();
    assert!(error.contains("`logits`"), "{error}");
    let greedy = &greedy("dream")[0].1;
    let hungry = [
        RequestParameters { algorithm: Some(Algorithm::Entropy), ..greedy.clone() },
        RequestParameters { temperature: Some(0.1), ..greedy.clone() },
        RequestParameters { top_k: Some(3), ..greedy.clone() },
        RequestParameters { top_p: Some(0.5), ..greedy.clone() },
    ];
    for request in &hungry {
        let parameters = GenerationParameters::new(Kind::Dream, request).unwrap();
        assert!(parameters.needs_logits(), "{request:?}");
        let error = engine.sequence(&[2, 3], &parameters, &facts).unwrap_err().to_string();
        assert!(error.contains("`logits`"), "{error}");
    }
    let parameters = GenerationParameters::new(Kind::Dream, greedy).unwrap();
    assert!(!parameters.needs_logits());
    engine.sequence(&[2, 3], &parameters, &facts).unwrap();
    engine.set_full_logits(true);
    assert!(engine.sequence(&[2, 3], &parameters, &facts).is_err());
}

#[test]
fn statistics_take_a_tenth_of_the_memory() {
    let model = Spec { vocab: 6400, ..Spec::new("llada") }.build(3);
    let model = Network::from_gguf(&Gguf::from_bytes(model.file.bytes()).unwrap()).unwrap();
    let bytes = |logits| {
        let limits = Limits { logits, ..Limits::new(40, 40, 1) };
        let plan = Plan::new(&model, limits).unwrap();
        let of = |name| plan.buffers.iter().find(|b| b.name == name).map_or(0, |b| b.bytes);
        (of("logits"), of("records"))
    };
    assert_eq!(bytes(true), (40 * 6400 * 4, 40 * 100 * 24));
    assert_eq!(bytes(false), (0, 40 * 100 * 24));
}
