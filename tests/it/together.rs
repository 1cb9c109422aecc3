//! Canvases that step together: whoever is beside it changes no bit of a canvas.

use crate::common::models;
use dllm_cpu::Kernels;
use dllm_rt::backend::SEQUENCES_MAX;
use dllm_rt::denoise::{Cache, Progress, RequestParameters};
use dllm_rt::gguf::Gguf;
use dllm_rt::model::Architecture;
use dllm_rt::sample::Algorithm;
use dllm_rt::synth::{Recipe, Shape, SyntheticFile};
use dllm_rt::{Engine, Error, GenerationParameters, Limits, Options, Sequence};

fn load(name: &str, sequences: usize, threads: usize) -> Engine {
    load_on(name, sequences, threads, None)
}

fn load_on(name: &str, sequences: usize, threads: usize, isa: Option<&str>) -> Engine {
    let limits = Limits {
        sequences,
        logits: true,
        guidance: true,
        kv_cache: true,
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

fn sequence(engine: &mut Engine, index: usize, request: &RequestParameters) -> Sequence {
    let parameters = GenerationParameters::new(engine.kind(), request).unwrap();
    engine.sequence(&prompt(index), &parameters, &models::facts(engine)).unwrap()
}

/// What a step left behind: the canvas, its masks, and the bits of the confidences committed.
type Trace = Vec<(Vec<u32>, u32, Vec<u64>)>;

/// Each of `request` on a canvas of its own, by itself.
fn alone(engine: &mut Engine, request: &[RequestParameters]) -> Vec<Trace> {
    let mut all = Vec::new();
    for (index, request) in request.iter().enumerate() {
        let mut sequence = sequence(engine, index, request);
        let mut trace = Trace::new();
        while !sequence.canvas().is_done() {
            let progress = engine.step_one(&mut sequence).unwrap();
            let bits = progress.committed.iter().map(|c| c.confidence.to_bits()).collect();
            let masks = progress.masks_left;
            trace.push((sequence.canvas().ids().to_vec(), masks, bits));
        }
        all.push(trace);
    }
    all
}

/// The same, as many at a time as there is room for: when one is done another takes its place.
/// Every `pause`-th step of a canvas it stays away from the others, and every fifth step it is by
/// itself.
fn together(engine: &mut Engine, request: &[RequestParameters], pause: usize) -> Vec<Trace> {
    let mut traces = vec![Trace::new(); request.len()];
    let mut waiting = request.iter().enumerate();
    let mut seats: Vec<(usize, Sequence)> = Vec::new();
    for round in 0.. {
        while seats.len() < engine.limits().sequences
            && let Some((index, request)) = waiting.next()
        {
            seats.push((index, sequence(engine, index, request)));
        }
        if seats.is_empty() {
            break;
        }
        let turn = round % seats.len();
        seats.rotate_left(turn);
        let comes = |index: usize| !(round + index).is_multiple_of(pause);
        let mut told = Vec::new();
        let mut coming: Vec<(usize, &mut Sequence)> =
            seats.iter_mut().filter(|seat| comes(seat.0)).map(|(i, c)| (*i, c)).collect();
        if round % 5 == 0 {
            for (index, sequence) in &mut coming {
                let progress = engine.step_one(sequence).unwrap();
                let bits = progress.committed.iter().map(|c| c.confidence.to_bits()).collect();
                told.push((*index, progress.masks_left, bits));
            }
        } else {
            let indices: Vec<usize> = coming.iter().map(|(index, _)| *index).collect();
            let mut batch: Vec<&mut Sequence> = coming.into_iter().map(|(_, s)| s).collect();
            let after = |at: usize, progress: Progress<'_>| {
                let bits = progress.committed.iter().map(|c| c.confidence.to_bits()).collect();
                told.push((indices[at], progress.masks_left, bits));
            };
            engine.step(&mut batch, after).unwrap();
        }
        for (index, masks, bits) in told {
            let Some((_, sequence)) = seats.iter().find(|seat| seat.0 == index) else {
                panic!("told of a sequence that is not there")
            };
            traces[index].push((sequence.canvas().ids().to_vec(), masks, bits));
        }
        seats.retain(|(_, sequence)| !sequence.canvas().is_done());
    }
    traces
}

#[test]
fn neighbours_change_no_bit() {
    for name in models::ALL {
        let mut one = load(name, 1, 2);
        let request = models::every_setting(one.kind());
        let expected = alone(&mut one, &request);
        assert!(expected.iter().all(|trace| !trace.is_empty()));
        for (canvases, threads, pause) in [(2, 1, usize::MAX), (3, 2, 4), (5, 3, 3), (16, 2, 7)] {
            let mut engine = load(name, canvases, threads);
            // Whatever the arena held must not matter.
            engine.poison(0x7fc0_0000);
            let traces = together(&mut engine, &request, pause);
            for (index, (trace, expected)) in traces.iter().zip(&expected).enumerate() {
                let request = &request[index];
                assert!(trace == expected, "{name}, {canvases} canvases, {request:?}");
            }
        }
    }
}

/// Rows and tails of shared passes are other ones, on every instruction set.
#[test]
fn neighbours_change_no_bit_on_any_instruction_set() {
    for name in models::ALL {
        let kind = load(name, 1, 2).kind();
        let short = |request: RequestParameters| RequestParameters {
            max_tokens: 3,
            steps: Some(2),
            ..request
        };
        let request: Vec<RequestParameters> =
            models::every_setting(kind).into_iter().step_by(3).map(short).collect();
        for kernels in Kernels::all() {
            let expected = alone(&mut load_on(name, 1, 2, Some(kernels.name())), &request);
            let mut engine = load_on(name, 3, 2, Some(kernels.name()));
            let what = format!("{name}, {}", kernels.name());
            assert!(together(&mut engine, &request, 4) == expected, "{what}");
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
        let load = |sequences| {
            let limits =
                Limits { logits: true, guidance: true, kv_cache: true, ..Limits::new(60, 40, 2) };
            let limits = Limits { sequences, ..limits };
            Engine::load(&file, limits, &Options::default(), &mut |_, _| ()).unwrap()
        };
        let mut one = load(1);
        assert_eq!(one.config().head_width, 8);
        let request = models::every_saving(one.kind());
        let expected = alone(&mut one, &request);
        assert!(together(&mut load(3), &request, 4) == expected, "{architecture:?}");
    }
}

/// Tokens in and choices out alone: no rows of logits, the LM head's statistics.
#[test]
fn neighbours_change_no_bit_where_statistics_are_kept() {
    for name in models::ALL {
        let limits = Limits { kv_cache: true, ..Limits::new(60, 40, 2) };
        let mut one = models::load_within(name, limits, None);
        let greedy = |s: &RequestParameters| {
            let parameters = GenerationParameters::new(one.kind(), s).unwrap();
            !parameters.needs_logits()
        };
        let mut request = models::every_setting(one.kind());
        request.iter_mut().for_each(|request| request.temperature = Some(0.0));
        request.retain(greedy);
        assert!(request.len() > 10);
        let expected = alone(&mut one, &request);
        let mut engine = models::load_within(name, Limits { sequences: 4, ..limits }, None);
        assert!(together(&mut engine, &request, 5) == expected, "{name}");
    }
}

#[test]
fn canvases_share_passes() {
    let mut engine = load(models::LLADA, 3, 2);
    let request =
        RequestParameters { max_tokens: 8, early_stop: false, ..RequestParameters::default() };
    let mut batch: Vec<Sequence> = [0, 2, 4].map(|i| sequence(&mut engine, i, &request)).into();
    let rows: usize = batch.iter().map(|sequence| sequence.canvas().ids().len()).sum();
    engine.reset_stats();
    let mut told = Vec::new();
    engine.step(&mut batch, |index, progress| told.push((index, progress.step))).unwrap();
    assert_eq!(told, [(0, 0), (1, 0), (2, 0)]);
    let stats = engine.stats();
    assert_eq!((stats.passes, stats.rows_computed, stats.steps()), (1, rows as u64, 1));
    // Those that are done stay as they are, and take no rows.
    while !batch[1].canvas().is_done() {
        engine.step_one(&mut batch[1]).unwrap();
    }
    let done = batch[1].canvas().ids().to_vec();
    engine.reset_stats();
    engine.step(&mut batch, |_, _| ()).unwrap();
    let rows = rows - done.len();
    assert_eq!((engine.stats().passes, engine.stats().rows_computed), (1, rows as u64));
    assert_eq!(batch[1].canvas().ids(), done);
    engine.step::<Sequence>(&mut [], |_, _| panic!("nobody is there")).unwrap();
}

/// With a cache each block's first step computes all of a canvas, the others their block.
#[test]
fn every_canvas_keeps_its_own_keys() {
    let mut engine = load(models::LLADA, 2, 2);
    let (max_tokens, block_length) = (16, Some(8));
    let base = RequestParameters {
        max_tokens,
        block_length,
        early_stop: false,
        ..RequestParameters::default()
    };
    let request = RequestParameters { cache: Some(Cache::Dual), ..base };
    // Of these prompts none has a hole.
    let mut batch: Vec<Sequence> =
        [1, 5].map(|index| sequence(&mut engine, index, &request)).into();
    let mut rows = Vec::new();
    for _ in 0..3 {
        engine.reset_stats();
        engine.step(&mut batch, |_, _| ()).unwrap();
        rows.push(engine.stats().rows_computed);
    }
    assert_eq!(rows, [3 + 16 + 1 + 16, 8 + 8, 8 + 8]);
}

/// Guided ones are computed by themselves and first, one that is done not at all; whoever shares a
/// pass is counted once.
#[test]
fn a_step_of_all_kinds_tells_of_those_that_made_one() {
    let mut engine = load(models::LLADA, 4, 2);
    let shared =
        RequestParameters { max_tokens: 8, early_stop: false, ..RequestParameters::default() };
    let guided = RequestParameters { cfg_scale: 0.5, ..shared.clone() };
    let short = RequestParameters { max_tokens: 1, ..shared.clone() };
    let request = [shared.clone(), short, guided, shared];
    let mut batch: Vec<Sequence> =
        request.iter().enumerate().map(|(at, s)| sequence(&mut engine, at, s)).collect();
    while !batch[1].canvas().is_done() {
        engine.step_one(&mut batch[1]).unwrap();
    }
    for step in 0..3 {
        engine.reset_stats();
        let mut told = Vec::new();
        engine.step(&mut batch, |at, progress| told.push((at, progress.step))).unwrap();
        assert_eq!(told, [(2, step), (0, step), (3, step)]);
        let lengths: Vec<u64> = batch.iter().map(|s| s.canvas().ids().len() as u64).collect();
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
    let base =
        RequestParameters { max_tokens: 16, early_stop: false, ..RequestParameters::default() };
    let request = RequestParameters { cache: Some(Cache::Dual), ..base };
    let mut batch: Vec<Sequence> = [1, 5, 4].map(|at| sequence(&mut engine, at, &request)).into();
    engine.step_one(&mut batch[0]).unwrap();
    engine.step_one(&mut batch[1]).unwrap();
    engine.release(&batch[1]);
    engine.step_one(&mut batch[2]).unwrap();
    engine.step_one(&mut batch[0]).unwrap();
    assert!(matches!(engine.step_one(&mut batch[1]).unwrap_err(), Error::KvSlotLost));
}

/// Where positions commit by chance some steps make no pass; they are steps all the same.
#[test]
fn a_step_without_a_pass_keeps_the_keys() {
    let mut engine = load(models::DREAM, 2, 1);
    let request = RequestParameters {
        max_tokens: 6,
        steps: Some(30),
        algorithm: Some(Algorithm::Origin),
        cache: Some(Cache::Dual),
        early_stop: false,
        ..RequestParameters::default()
    };
    let mut sequence = sequence(&mut engine, 1, &request);
    let (mut passes, mut without) = (0, 0);
    while !sequence.canvas().is_done() {
        let before = engine.stats().passes;
        engine.step_one(&mut sequence).unwrap();
        let makes_one = engine.stats().passes > before;
        passes += usize::from(makes_one);
        without += usize::from(!makes_one && passes > 0);
        // One other after each of its steps, which keeps keys too.
        let mut other = self::sequence(&mut engine, 4, &request);
        while engine.step_one(&mut other).unwrap().committed.is_empty() {}
    }
    assert!(passes > 2 && without > 2, "{passes} {without}");
}

/// Canvases that are given up in the middle of a block leave nothing behind.
#[test]
fn others_may_take_the_place_of_canvases_that_are_given_up() {
    let mut engine = load(models::LLADA, 2, 2);
    let request = RequestParameters {
        max_tokens: 16,
        threshold: Some(1.0),
        cache: Some(Cache::Dual),
        early_stop: false,
        ..RequestParameters::default()
    };
    let expected = alone(&mut engine, &vec![request.clone(); 2]);
    let mut batch: Vec<Sequence> = (0..2).map(|at| sequence(&mut engine, at, &request)).collect();
    for round in 0..6 {
        engine.step(&mut batch, |_, _| ()).unwrap();
        // The other one goes on, with its keys.
        if round % 2 == 0 {
            engine.release(&batch[0]);
        }
        batch[0] = sequence(&mut engine, 0, &request);
    }
    let (ids, masks, _) = &expected[1][5];
    assert_eq!((batch[1].canvas().ids(), batch[1].canvas().masks_left()), (ids.as_slice(), *masks));
}

/// Where the next pass is whole nothing is kept: whoever has just begun a block makes room.
#[test]
fn a_canvas_between_blocks_needs_no_room() {
    let mut engine = load(models::LLADA, 2, 1);
    let (max_tokens, block_length, early_stop) = (8, Some(2), false);
    let base =
        RequestParameters { max_tokens, block_length, early_stop, ..RequestParameters::default() };
    let request = RequestParameters { cache: Some(Cache::Prefix), ..base };
    let mut batch: Vec<Sequence> = [1, 5, 4].map(|at| sequence(&mut engine, at, &request)).into();
    engine.step_one(&mut batch[0]).unwrap();
    // Both steps of its first block, after the other's.
    engine.step_one(&mut batch[1]).unwrap();
    engine.step_one(&mut batch[1]).unwrap();
    engine.step_one(&mut batch[2]).unwrap();
    engine.step_one(&mut batch[0]).unwrap();
}

#[test]
fn more_canvases_than_planned_are_refused() {
    let mut engine = load(models::LLADA, 2, 1);
    let request = RequestParameters {
        max_tokens: 8,
        cache: Some(Cache::Dual),
        ..RequestParameters::default()
    };
    let mut batch: Vec<Sequence> = (0..3).map(|i| sequence(&mut engine, i, &request)).collect();
    let refused = engine.step(&mut batch, |_, _| ()).unwrap_err().to_string();
    assert!(refused.contains("3 sequences; planned were at most 2"), "{refused}");
    // Two may keep keys; a third takes the place of the one that has waited longest.
    engine.step(&mut batch[..2], |_, _| ()).unwrap();
    engine.step_one(&mut batch[1]).unwrap();
    engine.step_one(&mut batch[0]).unwrap();
    engine.step_one(&mut batch[2]).unwrap();
    engine.step_one(&mut batch[0]).unwrap();
    let refused = engine.step(&mut batch[1..], |_, _| ()).unwrap_err();
    assert!(matches!(refused, Error::KvSlotLost), "{refused}");
}

/// A lane is free when its canvas is done, and one without a cache needs none after its pass.
#[test]
fn keys_outlive_any_number_of_others_that_keep_none() {
    let mut engine = load(models::LLADA, 2, 2);
    let base = RequestParameters {
        max_tokens: 16,
        block_length: Some(16),
        ..RequestParameters::default()
    };
    let kept = RequestParameters { cache: Some(Cache::Dual), early_stop: false, ..base.clone() };
    let expected = alone(&mut engine, std::slice::from_ref(&kept)).remove(0);
    let mut long = sequence(&mut engine, 0, &kept);
    let mut trace = Vec::new();
    while !long.canvas().is_done() {
        engine.step_one(&mut long).unwrap();
        trace.push(long.canvas().ids().to_vec());
        for request in [&base, &RequestParameters { steps: Some(1), ..kept.clone() }] {
            let mut short = sequence(&mut engine, 1, request);
            engine.step_one(&mut short).unwrap();
            assert!(
                request.cache.is_none_or(|cache| cache == Cache::None) || short.canvas().is_done()
            );
        }
        engine.logits(&[1, 2, 3], &[0]).unwrap();
    }
    assert!(trace.iter().eq(expected.iter().map(|(ids, _, _)| ids)));
}

#[test]
fn full_logits_are_computed_one_canvas_after_the_other() {
    let mut engine = load(models::LLADA, 2, 2);
    let request =
        RequestParameters { max_tokens: 8, early_stop: false, ..RequestParameters::default() };
    let grows = RequestParameters { grow: Some(true), block_length: Some(3), ..request.clone() };
    let both = [request, grows];
    let expected = alone(&mut engine, &both);
    let mut engine =
        models::load_within(models::LLADA, Limits { output_rows: 60, ..*engine.limits() }, None);
    engine.set_full_logits(true);
    engine.reset_stats();
    assert!(together(&mut engine, &both, usize::MAX) == expected);
    let steps: usize = expected.iter().map(Vec::len).sum();
    let stats = engine.stats();
    assert_eq!((stats.passes, stats.logit_rows), (steps as u64, stats.rows_computed));
}

#[test]
fn as_many_canvases_as_a_pass_can_be_told_of() {
    let mut engine = load(models::DREAM, SEQUENCES_MAX, 2);
    let request = RequestParameters { max_tokens: 4, ..RequestParameters::default() };
    let request = vec![request; SEQUENCES_MAX + 3];
    let expected = alone(&mut engine, &request);
    assert!(together(&mut engine, &request, usize::MAX) == expected);
}
