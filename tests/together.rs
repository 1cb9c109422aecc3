//! Canvases that step together: whoever is beside it changes no bit of a canvas.

#[path = "common/models.rs"]
mod models;

use dllm_cpu::Kernels;
use dllm_rt::denoise::{Cache, Canvas, Pace, Settings};
use dllm_rt::gguf::Gguf;
use dllm_rt::model::Architecture;
use dllm_rt::plan::CANVASES_MAX;
use dllm_rt::sample::Algorithm;
use dllm_rt::synth::{Recipe, Shape, SyntheticFile};
use dllm_rt::{Engine, Limits, Options, Schedule};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn load(name: &str, canvases: usize, threads: usize) -> Engine {
    load_on(name, canvases, threads, None)
}

fn load_on(name: &str, canvases: usize, threads: usize, isa: Option<&str>) -> Engine {
    let limits = Limits {
        canvases,
        logits: true,
        guidance: true,
        cache: true,
        ..Limits::new(60, 40, threads)
    };
    models::load_within(name, limits, isa)
}

/// Prompts of several lengths, holes in some, one empty.
fn prompt(index: usize) -> Vec<u32> {
    let length = [20, 3, 33, 0, 17, 1][index % 6];
    let token =
        |i: u32| if (i + index as u32).is_multiple_of(9) { models::MASK } else { 7 + 31 * i };
    (0..length).map(token).collect()
}

fn canvas(engine: &Engine, index: usize, settings: &Settings) -> Canvas {
    let schedule = Schedule::new(engine.kind(), settings).unwrap();
    engine.canvas(&prompt(index), &schedule, &models::facts(engine)).unwrap()
}

/// What a step left behind: the canvas, its masks, and the bits of the confidences committed.
type Trace = Vec<(Vec<u32>, u32, Vec<u64>)>;

/// Each of `settings` on a canvas of its own, by itself.
fn alone(engine: &mut Engine, settings: &[Settings]) -> Vec<Trace> {
    let mut all = Vec::new();
    for (index, settings) in settings.iter().enumerate() {
        let mut canvas = canvas(engine, index, settings);
        let mut trace = Trace::new();
        while !canvas.is_done() {
            let progress = engine.step(&mut canvas);
            let bits = progress.committed.iter().map(|c| c.confidence.to_bits()).collect();
            let masks = progress.masks_left;
            trace.push((canvas.ids().to_vec(), masks, bits));
        }
        all.push(trace);
    }
    all
}

/// The same, as many at a time as there is room for: when one is done another takes its place.
/// Every `pause`-th step of a canvas it stays away from the others, and every fifth step it is by
/// itself.
fn together(engine: &mut Engine, settings: &[Settings], pause: usize) -> Vec<Trace> {
    let mut traces = vec![Trace::new(); settings.len()];
    let mut waiting = settings.iter().enumerate();
    let mut seats: Vec<(usize, Canvas)> = Vec::new();
    for round in 0.. {
        while seats.len() < engine.limits().canvases
            && let Some((index, settings)) = waiting.next()
        {
            seats.push((index, canvas(engine, index, settings)));
        }
        if seats.is_empty() {
            break;
        }
        let turn = round % seats.len();
        seats.rotate_left(turn);
        let comes = |index: usize| !(round + index).is_multiple_of(pause);
        let mut told = Vec::new();
        let mut coming: Vec<(usize, &mut Canvas)> =
            seats.iter_mut().filter(|seat| comes(seat.0)).map(|(i, c)| (*i, c)).collect();
        if round % 5 == 0 {
            for (index, canvas) in &mut coming {
                let progress = engine.step(canvas);
                let bits = progress.committed.iter().map(|c| c.confidence.to_bits()).collect();
                told.push((*index, progress.masks_left, bits));
            }
        } else {
            let indices: Vec<usize> = coming.iter().map(|(index, _)| *index).collect();
            let mut canvases: Vec<&mut Canvas> = coming.into_iter().map(|(_, c)| c).collect();
            engine.step_together(&mut canvases, |at, progress| {
                let bits = progress.committed.iter().map(|c| c.confidence.to_bits()).collect();
                told.push((indices[at], progress.masks_left, bits));
            });
        }
        for (index, masks, bits) in told {
            let Some((_, canvas)) = seats.iter().find(|seat| seat.0 == index) else {
                panic!("told of a canvas that is not there")
            };
            traces[index].push((canvas.ids().to_vec(), masks, bits));
        }
        seats.retain(|(_, canvas)| !canvas.is_done());
    }
    traces
}

#[test]
fn neighbours_change_no_bit() {
    for name in models::ALL {
        let mut one = load(name, 1, 2);
        let settings = models::every_setting(one.kind());
        let expected = alone(&mut one, &settings);
        assert!(expected.iter().all(|trace| !trace.is_empty()));
        for (canvases, threads, pause) in [(2, 1, usize::MAX), (3, 2, 4), (5, 3, 3), (16, 2, 7)] {
            let mut engine = load(name, canvases, threads);
            // Whatever the arena held must not matter.
            engine.poison(0x7fc0_0000);
            let traces = together(&mut engine, &settings, pause);
            for (index, (trace, expected)) in traces.iter().zip(&expected).enumerate() {
                let settings = &settings[index];
                assert!(trace == expected, "{name}, {canvases} canvases, {settings:?}");
            }
        }
    }
}

/// Rows and tails of shared passes are other ones, on every instruction set.
#[test]
fn neighbours_change_no_bit_on_any_instruction_set() {
    for name in models::ALL {
        let kind = load(name, 1, 2).kind();
        let short = |settings: Settings| Settings { gen_length: 3, steps: Some(2), ..settings };
        let settings: Vec<Settings> =
            models::every_setting(kind).into_iter().step_by(3).map(short).collect();
        for kernels in Kernels::all() {
            let expected = alone(&mut load_on(name, 1, 2, Some(kernels.name())), &settings);
            let mut engine = load_on(name, 3, 2, Some(kernels.name()));
            let what = format!("{name}, {}", kernels.name());
            assert!(together(&mut engine, &settings, 4) == expected, "{what}");
        }
    }
}

/// Where a head is no whole number of cache lines, keys lie row by row.
#[test]
fn neighbours_change_no_bit_where_keys_lie_row_by_row() {
    for architecture in [Architecture::Llada, Architecture::Dream] {
        let kv_heads = if architecture == Architecture::Dream { 4 } else { 32 };
        let (layers, width, heads, ff_width) = (2, 256, 32, 256);
        let (vocab, context) = (2048, 64);
        let shape = Shape { layers, width, heads, kv_heads, ff_width, vocab, context };
        let types = "Q4_K_M".parse().unwrap();
        let mut bytes = Vec::new();
        let recipe = Recipe { architecture, shape, types, seed: 5 };
        SyntheticFile::new(recipe).unwrap().write(&mut bytes).unwrap();
        let file = Gguf::from_bytes(bytes).unwrap();
        let load = |canvases| {
            let limits =
                Limits { logits: true, guidance: true, cache: true, ..Limits::new(60, 40, 2) };
            let limits = Limits { canvases, ..limits };
            Engine::load(&file, limits, &Options::default(), &mut |_, _| ()).unwrap()
        };
        let mut one = load(1);
        assert_eq!(one.config().head_width, 8);
        let settings = models::every_saving(one.kind());
        let expected = alone(&mut one, &settings);
        assert!(together(&mut load(3), &settings, 4) == expected, "{architecture:?}");
    }
}

/// Tokens in and choices out alone: no rows of logits, the LM head's statistics.
#[test]
fn neighbours_change_no_bit_where_statistics_are_kept() {
    for name in models::ALL {
        let limits = Limits { cache: true, ..Limits::new(60, 40, 2) };
        let mut one = models::load_within(name, limits, None);
        let greedy = |s: &Settings| {
            let schedule = Schedule::new(one.kind(), s).unwrap();
            !schedule.needs_logits()
        };
        let mut settings = models::every_setting(one.kind());
        settings.iter_mut().for_each(|settings| settings.temperature = Some(0.0));
        settings.retain(greedy);
        assert!(settings.len() > 10);
        let expected = alone(&mut one, &settings);
        let mut engine = models::load_within(name, Limits { canvases: 4, ..limits }, None);
        assert!(together(&mut engine, &settings, 5) == expected, "{name}");
    }
}

#[test]
fn canvases_share_passes() {
    let mut engine = load(models::LLADA, 3, 2);
    let settings = Settings { gen_length: 8, early_stop: false, ..Settings::default() };
    let mut canvases: Vec<Canvas> = [0, 2, 4].map(|i| canvas(&engine, i, &settings)).into();
    let rows: usize = canvases.iter().map(|canvas| canvas.ids().len()).sum();
    engine.reset_stats();
    let mut told = Vec::new();
    engine.step_together(&mut canvases, |index, progress| told.push((index, progress.step)));
    assert_eq!(told, [(0, 0), (1, 0), (2, 0)]);
    let stats = engine.stats();
    assert_eq!((stats.passes, stats.rows_computed, stats.steps()), (1, rows as u64, 1));
    // Those that are done stay as they are, and take no rows.
    while !canvases[1].is_done() {
        engine.step(&mut canvases[1]);
    }
    let done = canvases[1].ids().to_vec();
    engine.reset_stats();
    engine.step_together(&mut canvases, |_, _| ());
    let rows = rows - done.len();
    assert_eq!((engine.stats().passes, engine.stats().rows_computed), (1, rows as u64));
    assert_eq!(canvases[1].ids(), done);
    engine.step_together::<Canvas>(&mut [], |_, _| panic!("nobody is there"));
}

/// With a cache each block's first step computes all of a canvas, the others their block.
#[test]
fn every_canvas_keeps_its_own_keys() {
    let mut engine = load(models::LLADA, 2, 2);
    let (gen_length, block_length) = (16, Some(8));
    let base = Settings { gen_length, block_length, early_stop: false, ..Settings::default() };
    let settings = Settings { cache: Cache::Dual, ..base };
    // Of these prompts none has a hole.
    let mut canvases: Vec<Canvas> = [1, 5].map(|index| canvas(&engine, index, &settings)).into();
    let mut rows = Vec::new();
    for _ in 0..3 {
        engine.reset_stats();
        engine.step_together(&mut canvases, |_, _| ());
        rows.push(engine.stats().rows_computed);
    }
    assert_eq!(rows, [3 + 16 + 1 + 16, 8 + 8, 8 + 8]);
}

/// Guided ones are computed by themselves and first, one that is done not at all; whoever shares a
/// pass is counted once.
#[test]
fn a_step_of_all_kinds_tells_of_those_that_made_one() {
    let mut engine = load(models::LLADA, 4, 2);
    let shared = Settings { gen_length: 8, early_stop: false, ..Settings::default() };
    let guided = Settings { cfg_scale: 0.5, ..shared.clone() };
    let short = Settings { gen_length: 1, ..shared.clone() };
    let settings = [shared.clone(), short, guided, shared];
    let mut canvases: Vec<Canvas> =
        settings.iter().enumerate().map(|(at, s)| canvas(&engine, at, s)).collect();
    while !canvases[1].is_done() {
        engine.step(&mut canvases[1]);
    }
    for step in 0..3 {
        engine.reset_stats();
        let mut told = Vec::new();
        engine.step_together(&mut canvases, |at, progress| told.push((at, progress.step)));
        assert_eq!(told, [(2, step), (0, step), (3, step)]);
        let lengths: Vec<u64> = canvases.iter().map(|c| c.ids().len() as u64).collect();
        let rows = lengths[0] + 2 * lengths[2] + lengths[3];
        // The guided one's two passes are a step, the shared pass is another.
        let stats = engine.stats();
        assert_eq!((stats.passes, stats.rows_computed, stats.steps()), (3, rows, 2));
    }
}

/// What is forgotten makes room before anything that is kept does, however old that is.
#[test]
fn a_canvas_that_is_forgotten_makes_room() {
    let mut engine = load(models::LLADA, 2, 1);
    let base = Settings { gen_length: 16, early_stop: false, ..Settings::default() };
    let settings = Settings { cache: Cache::Dual, ..base };
    let mut canvases: Vec<Canvas> = [1, 5, 4].map(|at| canvas(&engine, at, &settings)).into();
    engine.step(&mut canvases[0]);
    engine.step(&mut canvases[1]);
    engine.forget(&canvases[1]);
    engine.step(&mut canvases[2]);
    engine.step(&mut canvases[0]);
    let message = panic_of(|| _ = engine.step(&mut canvases[1]));
    assert!(message.contains("the kept keys are another's"), "{message}");
}

/// Where positions commit by chance some steps make no pass; they are steps all the same.
#[test]
fn a_step_without_a_pass_keeps_the_keys() {
    let mut engine = load(models::DREAM, 2, 1);
    let settings = Settings {
        gen_length: 6,
        steps: Some(30),
        algorithm: Some(Algorithm::Origin),
        cache: Cache::Dual,
        early_stop: false,
        ..Settings::default()
    };
    let mut canvas = canvas(&engine, 1, &settings);
    let (mut passes, mut without) = (0, 0);
    while !canvas.is_done() {
        let makes_one = !canvas.plan_step().is_empty();
        engine.step(&mut canvas);
        passes += usize::from(makes_one);
        without += usize::from(!makes_one && passes > 0);
        // One other after each of its steps, which keeps keys too.
        let mut other = self::canvas(&engine, 4, &settings);
        while engine.step(&mut other).committed.is_empty() {}
    }
    assert!(passes > 2 && without > 2, "{passes} {without}");
}

/// Canvases that are given up in the middle of a block leave nothing behind.
#[test]
fn others_may_take_the_place_of_canvases_that_are_given_up() {
    let mut engine = load(models::LLADA, 2, 2);
    let settings = Settings {
        gen_length: 16,
        pace: Pace::Threshold(1.0),
        cache: Cache::Dual,
        early_stop: false,
        ..Settings::default()
    };
    let expected = alone(&mut engine, &vec![settings.clone(); 2]);
    let mut canvases: Vec<Canvas> = (0..2).map(|at| canvas(&engine, at, &settings)).collect();
    for round in 0..6 {
        engine.step_together(&mut canvases, |_, _| ());
        // The other one goes on, with its keys.
        if round % 2 == 0 {
            engine.forget(&canvases[0]);
        }
        canvases[0] = canvas(&engine, 0, &settings);
    }
    let (ids, masks, _) = &expected[1][5];
    assert_eq!((canvases[1].ids(), canvases[1].masks_left()), (ids.as_slice(), *masks));
}

/// Where the next pass is whole nothing is kept: whoever has just begun a block makes room.
#[test]
fn a_canvas_between_blocks_needs_no_room() {
    let mut engine = load(models::LLADA, 2, 1);
    let (gen_length, block_length, early_stop) = (8, Some(2), false);
    let base = Settings { gen_length, block_length, early_stop, ..Settings::default() };
    let settings = Settings { cache: Cache::Prefix, ..base };
    let mut canvases: Vec<Canvas> = [1, 5, 4].map(|at| canvas(&engine, at, &settings)).into();
    engine.step(&mut canvases[0]);
    // Both steps of its first block, after the other's.
    engine.step(&mut canvases[1]);
    engine.step(&mut canvases[1]);
    engine.step(&mut canvases[2]);
    engine.step(&mut canvases[0]);
}

fn panic_of(work: impl FnOnce()) -> String {
    let message = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
    message.downcast_ref::<String>().cloned().unwrap_or_else(|| {
        message.downcast_ref::<&str>().map(|text| (*text).to_owned()).unwrap_or_default()
    })
}

#[test]
fn more_canvases_than_planned_are_refused() {
    let mut engine = load(models::LLADA, 2, 1);
    let settings = Settings { gen_length: 8, cache: Cache::Dual, ..Settings::default() };
    let mut canvases: Vec<Canvas> = (0..3).map(|i| canvas(&engine, i, &settings)).collect();
    let message = panic_of(|| engine.step_together(&mut canvases, |_, _| ()));
    assert!(message.contains("3 canvases, 2 were planned"), "{message}");
    // Two may keep keys; a third takes the place of the one that has waited longest.
    engine.step_together(&mut canvases[..2], |_, _| ());
    engine.step(&mut canvases[1]);
    engine.step(&mut canvases[0]);
    engine.step(&mut canvases[2]);
    engine.step(&mut canvases[0]);
    let message = panic_of(|| engine.step_together(&mut canvases[1..], |_, _| ()));
    assert!(message.contains("the kept keys are another's"), "{message}");
}

/// A lane is free when its canvas is done, and one without a cache needs none after its pass.
#[test]
fn keys_outlive_any_number_of_others_that_keep_none() {
    let mut engine = load(models::LLADA, 2, 2);
    let base = Settings { gen_length: 16, block_length: Some(16), ..Settings::default() };
    let kept = Settings { cache: Cache::Dual, early_stop: false, ..base.clone() };
    let expected = alone(&mut engine, std::slice::from_ref(&kept)).remove(0);
    let mut long = canvas(&engine, 0, &kept);
    let mut trace = Vec::new();
    while !long.is_done() {
        engine.step(&mut long);
        trace.push(long.ids().to_vec());
        for settings in [&base, &Settings { steps: Some(1), ..kept.clone() }] {
            let mut short = canvas(&engine, 1, settings);
            engine.step(&mut short);
            assert!(settings.cache == Cache::None || short.is_done());
        }
        engine.logits(&[1, 2, 3], &[0]).unwrap();
    }
    assert!(trace.iter().eq(expected.iter().map(|(ids, _, _)| ids)));
}

#[test]
fn full_logits_are_computed_one_canvas_after_the_other() {
    let mut engine = load(models::LLADA, 2, 2);
    let settings = Settings { gen_length: 8, early_stop: false, ..Settings::default() };
    let grows = Settings { grow: true, block_length: Some(3), ..settings.clone() };
    let both = [settings, grows];
    let expected = alone(&mut engine, &both);
    let mut engine =
        models::load_within(models::LLADA, Limits { wanted: 60, ..*engine.limits() }, None);
    engine.set_full_logits(true);
    engine.reset_stats();
    assert!(together(&mut engine, &both, usize::MAX) == expected);
    let steps: usize = expected.iter().map(Vec::len).sum();
    let stats = engine.stats();
    assert_eq!((stats.passes, stats.logit_rows), (steps as u64, stats.rows_computed));
}

#[test]
fn as_many_canvases_as_a_pass_can_be_told_of() {
    let mut engine = load(models::DREAM, CANVASES_MAX, 2);
    let settings = Settings { gen_length: 4, ..Settings::default() };
    let settings = vec![settings; CANVASES_MAX + 3];
    let expected = alone(&mut engine, &settings);
    assert!(together(&mut engine, &settings, usize::MAX) == expected);
}
