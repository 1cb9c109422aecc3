//! What only the engine itself can show: another sequence's keys put in place of a sequence's own.

use super::{Engine, Sequence};
use crate::backend::{Limits, Options};
use crate::denoise::{Cache, GenerationParameters, RequestParameters, TokenFacts};
use crate::gguf::Gguf;
use crate::model::Architecture;
use crate::sample::Kind;
use crate::synth::{Recipe, Shape, SyntheticFile};

const PROMPT: [u32; 9] = [5, 9, 17, 33, 65, 129, 257, 300, 7];

fn engine(kind: Kind) -> Engine {
    let (architecture, kv_heads) = match kind {
        Kind::Llada => (Architecture::Llada, 8),
        Kind::Dream => (Architecture::Dream, 2),
    };
    let (width, ff_width) = (256, 512);
    let shape = Shape { layers: 4, width, heads: 8, kv_heads, ff_width, vocab: 304, context: 128 };
    let recipe = Recipe { architecture, shape, types: "Q4_K_M".parse().unwrap(), seed: 11 };
    let mut bytes = Vec::new();
    SyntheticFile::new(recipe).unwrap().write(&mut bytes).unwrap();
    let gguf = Gguf::from_bytes(bytes).unwrap();
    let limits = Limits { logits: true, kv_cache: true, ..Limits::new(48, 40, 2) };
    Engine::load(&gguf, limits, &Options::default(), &mut |_, _| ()).unwrap()
}

fn sequence(engine: &mut Engine, kind: Kind, cache: Cache) -> Sequence {
    let request = RequestParameters {
        max_tokens: 30,
        block_length: Some(12),
        temperature: Some(0.0),
        early_stop: false,
        cache: Some(cache),
        ..RequestParameters::default()
    };
    let facts = TokenFacts {
        mask_token: 3,
        vocab_size: 304,
        shift_logits: kind == Kind::Dream,
        end_of_text: vec![2],
        end_of_turn: vec![4],
    };
    engine.sequence(&PROMPT, &GenerationParameters::new(kind, &request).unwrap(), &facts).unwrap()
}

/// The tokens after a step, and the bits of the confidences that it committed.
fn step(engine: &mut Engine, sequence: &mut Sequence) -> (Vec<u32>, Vec<u64>) {
    let committed = engine.step_one(sequence).unwrap().committed;
    let bits = committed.iter().map(|committed| committed.confidence.to_bits()).collect();
    (sequence.canvas().ids().to_vec(), bits)
}

/// Keys of every layer that are up to date give what computing them does.
#[test]
fn a_pass_over_a_block_with_fresh_keys_is_a_whole_one() {
    for kind in [Kind::Llada, Kind::Dream] {
        let mut engine = engine(kind);
        for cache in [Cache::Prefix, Cache::Dual] {
            let mut one = sequence(&mut engine, kind, Cache::None);
            let mut other = sequence(&mut engine, kind, cache);
            // Dream's first step makes no pass.
            let first = if kind == Kind::Dream { 2 } else { 1 };
            for sequence in [&mut other, &mut one] {
                (0..first).for_each(|_| _ = engine.step_one(sequence).unwrap());
            }
            for _ in first..8 {
                let rows = other.rows();
                // Of all rows, so that every key is that of the canvas as it is now.
                let whole = step(&mut engine, &mut one);
                engine.slots.assign_last(other.number);
                assert_eq!(step(&mut engine, &mut other), whole, "{kind:?} {cache:?}");
                assert!(rows.len() < other.canvas().ids().len());
            }
        }
    }
}

#[test]
fn an_engine_may_move_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Engine>();
    is_send::<Sequence>();
}
