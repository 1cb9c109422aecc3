//! Kept keys and values: exact where they must be, and only the rows that a step needs.

use dllm_rt::denoise::{Cache, Canvas, ModelFacts, Pace, Schedule, Settings};
use dllm_rt::gguf::Gguf;
use dllm_rt::model::Architecture;
use dllm_rt::sample::Kind;
use dllm_rt::synth::{Recipe, Shape, SyntheticFile};
use dllm_rt::{Engine, Error, Limits, Options};

const MASK: u32 = 3;
const PROMPT: [u32; 9] = [5, 9, 17, 33, 65, 129, 257, 300, 7];
const CACHES: [Cache; 2] = [Cache::Prefix, Cache::Dual];

fn engine(kind: Kind, layers: usize, threads: usize, cache: bool) -> Engine {
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
    let limits = Limits { logits: true, cache, ..Limits::new(48, 40, threads) };
    Engine::load(&gguf, limits, &Options::default(), &mut |_, _| ()).unwrap()
}

fn facts(kind: Kind) -> ModelFacts {
    ModelFacts {
        mask_token: MASK,
        vocab_size: 304,
        shift_logits: kind == Kind::Dream,
        end_of_text: vec![2],
        end_of_turn: vec![4],
    }
}

fn base(kind: Kind) -> Settings {
    Settings {
        gen_length: 30,
        block_length: Some(12),
        temperature: (kind == Kind::Dream).then_some(0.4),
        early_stop: false,
        ..Settings::default()
    }
}

/// Plain, threshold and factor; the model is unsure of everything, so that these are low.
fn paces(kind: Kind) -> [Settings; 3] {
    [
        base(kind),
        Settings { pace: Pace::Threshold(0.02), ..base(kind) },
        Settings { pace: Pace::Factor(4.0), ..base(kind) },
    ]
}

fn canvas(engine: &Engine, kind: Kind, prompt: &[u32], settings: &Settings) -> Canvas {
    let schedule = Schedule::new(kind, settings).unwrap();
    engine.canvas(prompt, &schedule, &facts(kind)).unwrap()
}

/// The canvas after a step, and the bits of the confidences that it committed.
type Trace = Vec<(Vec<u32>, Vec<u64>)>;

fn step(engine: &mut Engine, canvas: &mut Canvas) -> (Vec<u32>, Vec<u64>) {
    let committed = engine.step(canvas).committed;
    let bits = committed.iter().map(|committed| committed.confidence.to_bits()).collect();
    (canvas.ids().to_vec(), bits)
}

/// All steps, and the rows that they computed.
fn run(engine: &mut Engine, kind: Kind, prompt: &[u32], settings: &Settings) -> (Trace, u64) {
    let mut canvas = canvas(engine, kind, prompt, settings);
    engine.reset_stats();
    let mut trace = Trace::new();
    while !canvas.is_done() {
        trace.push(step(engine, &mut canvas));
    }
    (trace, engine.stats().rows_computed)
}

#[test]
fn a_refresh_at_every_pass_is_no_cache_bit_for_bit() {
    for kind in [Kind::Llada, Kind::Dream] {
        let mut plain = engine(kind, 3, 2, false);
        for threads in [1, 2] {
            let mut kept = engine(kind, 3, threads, true);
            for settings in paces(kind) {
                let expected = run(&mut plain, kind, &PROMPT, &settings);
                for cache in CACHES {
                    let settings = Settings { cache, refresh: Some(1), ..settings.clone() };
                    assert_eq!(run(&mut kept, kind, &PROMPT, &settings), expected, "{settings:?}");
                }
                // An engine that may keep keys need not.
                assert_eq!(run(&mut kept, kind, &PROMPT, &settings), expected, "{settings:?}");
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
        for settings in paces(kind) {
            for prompt in [&PROMPT[..], &[], &[5, MASK, 9, MASK, 17]] {
                let (expected, all_rows) = run(&mut plain, kind, prompt, &settings);
                let mut rows_of = vec![all_rows];
                for cache in CACHES {
                    let settings = Settings { cache, ..settings.clone() };
                    // Whatever is left of other runs must not matter.
                    kept.poison(0x7fc0_0000);
                    let (trace, rows) = run(&mut kept, kind, prompt, &settings);
                    assert_eq!(trace, expected, "{settings:?} {prompt:?}");
                    rows_of.push(rows);
                }
                assert!(rows_of.is_sorted_by(|a, b| a >= b), "{settings:?} {rows_of:?}");
                // Of three blocks some have more than one step.
                if prompt == PROMPT && expected.len() > 3 {
                    assert!(rows_of[1] < rows_of[0], "{settings:?} {rows_of:?}");
                    let has_blocks = kind == Kind::Llada || settings.pace.is_adaptive();
                    assert_eq!(rows_of[2] < rows_of[1], has_blocks, "{settings:?} {rows_of:?}");
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
        for settings in paces(kind).into_iter().skip(usize::from(kind == Kind::Dream)) {
            // The random numbers of a step depend on its index, which the parts begin anew.
            let settings = Settings { temperature: Some(0.0), ..settings };
            for cache in Cache::ALL {
                let settings = Settings { cache, grow: true, ..settings.clone() };
                let (trace, _) = run(&mut engine, kind, &PROMPT, &settings);
                let mut given = PROMPT.to_vec();
                for length in [12, 12, 6] {
                    let part = Settings { gen_length: length, ..settings.clone() };
                    let (trace, _) = run(&mut engine, kind, &given, &part);
                    given = trace.last().unwrap().0.clone();
                }
                assert_eq!(trace.last().unwrap().0, given, "{settings:?}");
                assert_eq!(trace[0].0.len(), PROMPT.len() + 12);
            }
        }
    }
}

#[test]
fn a_step_computes_the_rows_of_its_block() {
    let kind = Kind::Llada;
    let mut engine = engine(kind, 2, 1, true);
    let mut rows_of = |settings: Settings, prompt: &[u32]| {
        let mut canvas = canvas(&engine, kind, prompt, &settings);
        let mut rows = Vec::new();
        while !canvas.is_done() {
            rows.push((canvas.rows().start, canvas.rows().end));
            engine.step(&mut canvas);
        }
        rows
    };
    let settings = Settings { gen_length: 8, block_length: Some(4), ..base(kind) };
    let with = |cache, refresh| Settings { cache, refresh, ..settings.clone() };
    let (whole, all) = ((0, 17), 17);
    let prefix = [whole, (9, all), (9, all), (9, all), whole, (13, all), (13, all), (13, all)];
    assert_eq!(rows_of(with(Cache::Prefix, None), &PROMPT), prefix);
    let dual = [whole, (9, 13), (9, 13), (9, 13), whole, (13, 17), (13, 17), (13, 17)];
    assert_eq!(rows_of(with(Cache::Dual, None), &PROMPT), dual);
    let every_third = [whole, (9, 13), (9, 13), whole, whole, (13, 17), (13, 17), whole];
    assert_eq!(rows_of(with(Cache::Dual, Some(3)), &PROMPT), every_third);
    assert_eq!(rows_of(with(Cache::None, None), &PROMPT), [whole; 8]);
}

/// Plans and ends steps by hand: the best of the wanted positions and the rows of each step.
fn rows_by_hand(
    kind: Kind,
    prompt: &[u32],
    settings: &Settings,
    best: &[usize],
) -> Vec<(usize, usize)> {
    let schedule = Schedule::new(kind, settings).unwrap();
    let mut canvas = Canvas::new(prompt, &schedule, &facts(kind)).unwrap();
    let step = |best: &usize| {
        let choice = |at| {
            let confidence = if at == *best { -0.1 } else { -1.0 };
            dllm_rt::sample::Choice { confidence, token: 8, pad: 0 }
        };
        let count = canvas.plan_step().len();
        let rows = canvas.rows();
        canvas.commit(&(0..count).map(choice).collect::<Vec<_>>());
        (rows.start, rows.end)
    };
    best.iter().map(step).collect()
}

#[test]
fn a_hole_left_of_the_block_is_computed_until_its_token_has_keys() {
    let settings = Settings { cache: Cache::Dual, pace: Pace::Threshold(1.0), ..base(Kind::Llada) };
    // The hole is filled at the third step; at the fourth its keys are those of its token.
    let rows = rows_by_hand(Kind::Llada, &[5, MASK, 9, 17], &settings, &[3, 3, 0, 0, 0]);
    assert_eq!(rows, [(0, 34), (1, 16), (1, 16), (1, 16), (4, 16)]);
}

#[test]
fn the_row_before_the_block_is_computed_while_its_first_position_waits() {
    let kind = Kind::Dream;
    let settings = Settings { cache: Cache::Dual, pace: Pace::Threshold(1.0), ..base(kind) };
    // Position 9 is predicted by row 8.
    let rows = rows_by_hand(kind, &PROMPT, &settings, &[3, 0, 0]);
    assert_eq!(rows, [(0, 39), (8, 21), (9, 21)]);
}

/// Keys of every layer that are up to date give what computing them does.
#[test]
fn a_pass_over_a_block_with_fresh_keys_is_a_whole_one() {
    for kind in [Kind::Llada, Kind::Dream] {
        let mut engine = engine(kind, 4, 2, true);
        for cache in CACHES {
            let plain = Settings { temperature: Some(0.0), ..base(kind) };
            let kept = Settings { cache, ..plain.clone() };
            let (mut one, mut other) =
                (canvas(&engine, kind, &PROMPT, &plain), canvas(&engine, kind, &PROMPT, &kept));
            // Dream's first step makes no pass.
            let first = if kind == Kind::Dream { 2 } else { 1 };
            for canvas in [&mut other, &mut one] {
                (0..first).for_each(|_| _ = engine.step(canvas));
            }
            for _ in first..8 {
                let rows = other.rows();
                // Whole, so that every key is that of the canvas as it is now.
                let whole = step(&mut engine, &mut one);
                engine.take_keys_for(&other);
                assert_eq!(step(&mut engine, &mut other), whole, "{kept:?}");
                assert!(rows.len() < other.ids().len());
            }
        }
    }
}

#[test]
fn what_a_cache_does_not_go_with_is_refused() {
    let kind = Kind::Llada;
    let refused = |settings| Schedule::new(kind, &settings).unwrap_err().to_string();
    let dual = Settings { cache: Cache::Dual, ..base(kind) };
    assert!(refused(Settings { refresh: Some(2), ..base(kind) }).contains("refresh"));
    assert!(refused(Settings { refresh: Some(0), ..dual.clone() }).contains("refresh"));
    assert!(refused(Settings { cfg_scale: 1.0, ..dual.clone() }).contains("cfg-scale"));
    let schedule = Schedule::new(kind, &dual).unwrap();
    let without = engine(kind, 1, 1, false);
    let canvas = without.canvas(&PROMPT, &schedule, &facts(kind));
    assert!(matches!(canvas.unwrap_err(), Error::CacheNotPlanned));
    let mut with = engine(kind, 1, 1, true);
    with.set_full_logits(true);
    let canvas = with.canvas(&PROMPT, &schedule, &facts(kind));
    assert!(matches!(canvas.unwrap_err(), Error::FullLogitsWithCache));
}

/// Steps a canvas with a cache, lets `other` happen, and steps it again.
fn with_between(other: impl Fn(&mut Engine, &Canvas)) {
    let kind = Kind::Llada;
    let mut engine = engine(kind, 1, 1, true);
    let settings = Settings { cache: Cache::Dual, ..base(kind) };
    let mut canvas = canvas(&engine, kind, &PROMPT, &settings);
    engine.step(&mut canvas);
    other(&mut engine, &canvas);
    engine.step(&mut canvas);
}

#[test]
#[should_panic(expected = "the kept keys are another's")]
fn a_canvas_does_not_go_on_with_the_keys_of_another() {
    // A clone is another canvas, which begins anew.
    with_between(|engine, canvas| _ = engine.step(&mut canvas.clone()));
}

#[test]
#[should_panic(expected = "the kept keys are another's")]
fn a_canvas_does_not_go_on_with_the_keys_of_logits() {
    with_between(|engine, _| _ = engine.logits(&PROMPT, &[0]).unwrap());
}

#[test]
#[should_panic(expected = "kept keys were not planned")]
fn an_engine_without_room_for_keys_refuses_a_canvas_that_keeps_them() {
    let kind = Kind::Llada;
    let settings = Settings { cache: Cache::Dual, ..base(kind) };
    let mut canvas = canvas(&engine(kind, 1, 1, true), kind, &PROMPT, &settings);
    engine(kind, 1, 1, false).step(&mut canvas);
}
