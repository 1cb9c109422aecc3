//! Kept keys and values: exact where they must be, and only the rows that a step needs.

use dllm_rt::denoise::{Cache, GenerationParameters, RequestParameters, TokenFacts};
use dllm_rt::gguf::Gguf;
use dllm_rt::model::Architecture;
use dllm_rt::sample::Kind;
use dllm_rt::synth::{Recipe, Shape, SyntheticFile};
use dllm_rt::{Engine, Error, Limits, Options, Sequence};

const MASK: u32 = 3;
const PROMPT: [u32; 9] = [5, 9, 17, 33, 65, 129, 257, 300, 7];
const CACHES: [Cache; 2] = [Cache::Prefix, Cache::Dual];

fn engine(kind: Kind, layers: usize, threads: usize, kv_cache: bool) -> Engine {
    let architecture = match kind {
        Kind::Llada => Architecture::Llada,
        Kind::Dream => Architecture::Dream,
    };
    let (width, heads, kv_heads) = (256, 8, if kind == Kind::Dream { 2 } else { 8 });
    let shape = Shape { layers, width, heads, kv_heads, ff_width: 512, vocab: 304, context: 128 };
    let recipe = Recipe { architecture, shape, types: "Q4_K_M".parse().unwrap(), seed: 11 };
    let mut bytes = Vec::new();
    SyntheticFile::new(recipe).unwrap().write(&mut bytes).unwrap();
    let gguf = Gguf::from_bytes(bytes).unwrap();
    let limits = Limits { logits: true, kv_cache, ..Limits::new(48, 40, threads) };
    Engine::load(&gguf, limits, &Options::default(), &mut |_, _| ()).unwrap()
}

fn facts(kind: Kind) -> TokenFacts {
    TokenFacts {
        mask_token: MASK,
        vocab_size: 304,
        shift_logits: kind == Kind::Dream,
        end_of_text: vec![2],
        end_of_turn: vec![4],
    }
}

fn base(kind: Kind) -> RequestParameters {
    RequestParameters {
        max_tokens: 30,
        block_length: Some(12),
        temperature: (kind == Kind::Dream).then_some(0.4),
        early_stop: false,
        ..RequestParameters::default()
    }
}

/// Plain, threshold and factor; the model is unsure of everything, so that these are low.
fn paces(kind: Kind) -> [RequestParameters; 3] {
    [
        base(kind),
        RequestParameters { threshold: Some(0.02), ..base(kind) },
        RequestParameters { factor: Some(4.0), ..base(kind) },
    ]
}

fn sequence(
    engine: &mut Engine,
    kind: Kind,
    prompt: &[u32],
    request: &RequestParameters,
) -> Sequence {
    let parameters = GenerationParameters::new(kind, request).unwrap();
    engine.sequence(prompt, &parameters, &facts(kind)).unwrap()
}

/// The canvas after a step, and the bits of the confidences that it committed.
type Trace = Vec<(Vec<u32>, Vec<u64>)>;

fn step(engine: &mut Engine, sequence: &mut Sequence) -> (Vec<u32>, Vec<u64>) {
    let committed = engine.step_one(sequence).unwrap().committed;
    let bits = committed.iter().map(|committed| committed.confidence.to_bits()).collect();
    (sequence.canvas().ids().to_vec(), bits)
}

/// All steps, and the rows that they computed.
fn run(
    engine: &mut Engine,
    kind: Kind,
    prompt: &[u32],
    request: &RequestParameters,
) -> (Trace, u64) {
    let mut sequence = sequence(engine, kind, prompt, request);
    engine.reset_stats();
    let mut trace = Trace::new();
    while !sequence.canvas().is_done() {
        trace.push(step(engine, &mut sequence));
    }
    (trace, engine.stats().rows_computed)
}

#[test]
fn a_refresh_at_every_pass_is_no_cache_bit_for_bit() {
    for kind in [Kind::Llada, Kind::Dream] {
        let mut plain = engine(kind, 3, 2, false);
        for threads in [1, 2] {
            let mut kept = engine(kind, 3, threads, true);
            for request in paces(kind) {
                let expected = run(&mut plain, kind, &PROMPT, &request);
                for cache in CACHES {
                    let request = RequestParameters {
                        cache: Some(cache),
                        refresh: Some(1),
                        ..request.clone()
                    };
                    assert_eq!(run(&mut kept, kind, &PROMPT, &request), expected, "{request:?}");
                }
                // An engine that may keep keys need not.
                assert_eq!(run(&mut kept, kind, &PROMPT, &request), expected, "{request:?}");
            }
        }
    }
}

/// With one layer the keys of a position follow from its own token, so that those of tokens that
/// have not changed are never out of date: passes over a few rows give what whole ones do.
#[test]
fn with_one_layer_every_cache_is_exact_and_fewer_rows_are_computed() {
    for kind in [Kind::Llada, Kind::Dream] {
        let mut plain = engine(kind, 1, 2, false);
        let mut kept = engine(kind, 1, 2, true);
        for request in paces(kind) {
            for prompt in [&PROMPT[..], &[], &[5, MASK, 9, MASK, 17]] {
                let (expected, all_rows) = run(&mut plain, kind, prompt, &request);
                let mut rows_of = vec![all_rows];
                for cache in CACHES {
                    let request = RequestParameters { cache: Some(cache), ..request.clone() };
                    // Whatever is left of other runs must not matter.
                    kept.poison(0x7fc0_0000);
                    let (trace, rows) = run(&mut kept, kind, prompt, &request);
                    assert_eq!(trace, expected, "{request:?} {prompt:?}");
                    rows_of.push(rows);
                }
                assert!(rows_of.is_sorted_by(|a, b| a >= b), "{request:?} {rows_of:?}");
                // Of three blocks some have more than one step.
                if prompt == PROMPT && expected.len() > 3 {
                    assert!(rows_of[1] < rows_of[0], "{request:?} {rows_of:?}");
                    let has_blocks =
                        kind == Kind::Llada || request.threshold.or(request.factor).is_some();
                    assert_eq!(rows_of[2] < rows_of[1], has_blocks, "{request:?} {rows_of:?}");
                }
            }
        }
    }
}

/// A block of a canvas that grows is the first block of one whose prompt is all that came before.
#[test]
fn a_canvas_that_has_grown_is_one_that_was_given_the_rest() {
    for kind in [Kind::Llada, Kind::Dream] {
        let mut engine = engine(kind, 3, 2, true);
        for request in paces(kind).into_iter().skip(usize::from(kind == Kind::Dream)) {
            // The random numbers of a step depend on its index, which the parts begin anew.
            let request = RequestParameters { temperature: Some(0.0), ..request };
            for cache in Cache::ALL {
                let request =
                    RequestParameters { cache: Some(cache), grow: Some(true), ..request.clone() };
                let (trace, _) = run(&mut engine, kind, &PROMPT, &request);
                let mut given = PROMPT.to_vec();
                for length in [12, 12, 6] {
                    let part = RequestParameters { max_tokens: length, ..request.clone() };
                    let (trace, _) = run(&mut engine, kind, &given, &part);
                    given = trace.last().unwrap().0.clone();
                }
                assert_eq!(trace.last().unwrap().0, given, "{request:?}");
                assert_eq!(trace[0].0.len(), PROMPT.len() + 12);
            }
        }
    }
}

#[test]
fn a_step_computes_the_rows_of_its_block() {
    let kind = Kind::Llada;
    let mut engine = engine(kind, 2, 1, true);
    let mut rows_of = |request: RequestParameters, prompt: &[u32]| {
        let mut sequence = sequence(&mut engine, kind, prompt, &request);
        let mut rows = Vec::new();
        while !sequence.canvas().is_done() {
            rows.push((sequence.rows().start, sequence.rows().end));
            let before = engine.stats().rows_computed;
            engine.step_one(&mut sequence).unwrap();
            let computed = engine.stats().rows_computed - before;
            assert_eq!(rows.last().map(|(start, end)| (end - start) as u64), Some(computed));
        }
        rows
    };
    let request = RequestParameters { max_tokens: 8, block_length: Some(4), ..base(kind) };
    let with =
        |cache, refresh| RequestParameters { cache: Some(cache), refresh, ..request.clone() };
    let (whole, all) = ((0, 17), 17);
    let prefix = [whole, (9, all), (9, all), (9, all), whole, (13, all), (13, all), (13, all)];
    assert_eq!(rows_of(with(Cache::Prefix, None), &PROMPT), prefix);
    let dual = [whole, (9, 13), (9, 13), (9, 13), whole, (13, 17), (13, 17), (13, 17)];
    assert_eq!(rows_of(with(Cache::Dual, None), &PROMPT), dual);
    let every_third = [whole, (9, 13), (9, 13), whole, whole, (13, 17), (13, 17), whole];
    assert_eq!(rows_of(with(Cache::Dual, Some(3)), &PROMPT), every_third);
    assert_eq!(rows_of(with(Cache::None, None), &PROMPT), [whole; 8]);
}

#[test]
fn what_a_cache_does_not_go_with_is_refused() {
    let kind = Kind::Llada;
    let refused = |request| GenerationParameters::new(kind, &request).unwrap_err().to_string();
    let dual = RequestParameters { cache: Some(Cache::Dual), ..base(kind) };
    assert!(refused(RequestParameters { refresh: Some(2), ..base(kind) }).contains("refresh"));
    assert!(refused(RequestParameters { refresh: Some(0), ..dual.clone() }).contains("refresh"));
    assert!(refused(RequestParameters { cfg_scale: 1.0, ..dual.clone() }).contains("`cfg_scale`"));
    let parameters = GenerationParameters::new(kind, &dual).unwrap();
    let mut without = engine(kind, 1, 1, false);
    let sequence = without.sequence(&PROMPT, &parameters, &facts(kind));
    assert!(matches!(sequence.unwrap_err(), Error::KvCacheNotPlanned));
    let mut with = engine(kind, 1, 1, true);
    with.set_full_logits(true);
    let sequence = with.sequence(&PROMPT, &parameters, &facts(kind));
    assert!(matches!(sequence.unwrap_err(), Error::FullLogitsWithCache));
}

/// Steps a sequence with a cache, lets `other` happen, and steps it again: an error that leaves it
/// as it was.
fn with_between(other: impl Fn(&mut Engine)) {
    let kind = Kind::Llada;
    let mut engine = engine(kind, 1, 1, true);
    let request = RequestParameters { cache: Some(Cache::Dual), ..base(kind) };
    let mut sequence = sequence(&mut engine, kind, &PROMPT, &request);
    engine.step_one(&mut sequence).unwrap();
    other(&mut engine);
    let (ids, passes) = (sequence.canvas().ids().to_vec(), engine.stats().passes);
    assert!(matches!(engine.step_one(&mut sequence).unwrap_err(), Error::KvSlotLost));
    assert_eq!((sequence.canvas().ids(), engine.stats().passes), (&ids[..], passes));
}

#[test]
fn a_sequence_does_not_go_on_with_the_keys_of_another() {
    with_between(|engine| {
        let request = RequestParameters { cache: Some(Cache::Dual), ..base(Kind::Llada) };
        let mut other = sequence(engine, Kind::Llada, &PROMPT, &request);
        engine.step_one(&mut other).unwrap();
    });
}

#[test]
fn a_sequence_does_not_go_on_with_the_keys_of_logits() {
    with_between(|engine| _ = engine.logits(&PROMPT, &[0]).unwrap());
}

/// Whatever an engine was planned for: what another has laid out it does not step, and says so
/// before anything runs.
#[test]
fn a_sequence_of_another_engine_is_refused() {
    let kind = Kind::Llada;
    for request in [base(kind), RequestParameters { cache: Some(Cache::Dual), ..base(kind) }] {
        let mut own = engine(kind, 1, 1, true);
        let mut sequence = sequence(&mut own, kind, &PROMPT, &request);
        for kv_cache in [false, true] {
            let mut other = engine(kind, 1, 1, kv_cache);
            let refused = other.step_one(&mut sequence).unwrap_err();
            assert!(matches!(refused, Error::ForeignSequence), "{refused}");
            other.release(&sequence);
            assert_eq!(other.stats().passes, 0);
        }
        assert_eq!(own.step_one(&mut sequence).unwrap().step, 0);
    }
}
