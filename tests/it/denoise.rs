//! Schedules over made-up logits: what every run must keep to, whatever its request.
use dllm_cpu::Kernels;
use dllm_rt::denoise::{Canvas, GenerationParameters, RequestParameters, TokenFacts};
use dllm_rt::sample::rng::{Stream, draw};
use dllm_rt::sample::{Algorithm, Choice, Kind, choose, scratch_len};
use proptest::prelude::*;

const VOCAB: u32 = 24;
const MASK: u32 = 23;
const END: u32 = 20;
const TURN: u32 = 21;

fn facts(kind: Kind) -> TokenFacts {
    TokenFacts {
        mask_token: MASK,
        vocab_size: VOCAB,
        shift_logits: kind == Kind::Dream,
        end_of_text: vec![END],
        end_of_turn: vec![TURN],
    }
}

fn canvas(kind: Kind, prompt: &[u32], request: &RequestParameters) -> Canvas {
    let parameters = GenerationParameters::new(kind, request).unwrap();
    Canvas::new(prompt, &parameters, &facts(kind)).unwrap()
}

/// A model that answers from a hash of the whole canvas and the row: any change shows.
fn logits(ids: &[u32], row: u32) -> Vec<f32> {
    let mix = |hash: u64, id: &u32| (hash ^ u64::from(*id)).wrapping_mul(0x100_0000_01b3);
    let seed = ids.iter().fold(0xcbf2_9ce4_8422_2325, mix);
    let logit = |token| draw(seed, 0, row, Stream::Token, token)[0] as f32 * 2e-9;
    (0..VOCAB).map(logit).collect()
}

fn answer(canvas: &mut Canvas) -> Vec<Choice> {
    let (ids, rule) = (canvas.ids().to_vec(), *canvas.rule());
    let base = canvas.unconditional_ids().to_vec();
    let step = canvas.step_index();
    let mut scratch = vec![0; scratch_len(&rule, VOCAB as usize)];
    let kernels = Kernels::best().unwrap();
    let one = |want: &dllm_rt::denoise::Candidate| {
        let mut row = logits(&ids, want.row);
        let base_row = (!base.is_empty()).then(|| logits(&base, want.row));
        let base = base_row.as_deref();
        choose(kernels, &rule, step, want.position, &mut row, base, &mut scratch)
    };
    canvas.plan_step().iter().map(one).collect()
}

/// Runs to the end; the canvas after each step.
fn run(canvas: &mut Canvas) -> Vec<Vec<u32>> {
    let mut trace = Vec::new();
    while !canvas.is_done() {
        let choices = answer(canvas);
        canvas.commit(&choices);
        trace.push(canvas.ids().to_vec());
    }
    trace
}

fn arb_settings(kind: Kind) -> impl Strategy<Value = RequestParameters> {
    let algorithms = kind.algorithms();
    let heat = prop_oneof![Just(0.0), 0.01..5.0_f64];
    let lengths = (0..40_u32, 1..60_u32, 1..50_u32);
    let dream = (0.05..=1.0_f64, 0..30_u32, heat.clone(), prop::bool::ANY);
    let shared = (0..algorithms.len(), heat, any::<u64>(), prop_oneof![Just(0.0), 0.1..3.0]);
    (lengths, shared, dream).prop_map(move |(lengths, shared, dream)| {
        let is_dream = kind == Kind::Dream;
        let algorithm = algorithms[shared.0];
        let drawn = is_dream && algorithm != Algorithm::Origin;
        RequestParameters {
            max_tokens: lengths.0,
            steps: Some(lengths.1),
            block_length: Some(lengths.2),
            algorithm: Some(algorithm),
            temperature: Some(shared.1),
            top_p: is_dream.then_some(dream.0),
            top_k: is_dream.then_some(dream.1),
            alg_temp: drawn.then_some(dream.2),
            cfg_scale: if is_dream { 0.0 } else { shared.3 },
            seed: shared.2,
            early_stop: false,
            forbid_end: dream.3,
            ..RequestParameters::default()
        }
    })
}

fn arb_run() -> impl Strategy<Value = (Kind, RequestParameters, Vec<u32>)> {
    let kind = prop_oneof![Just(Kind::Llada), Just(Kind::Dream)];
    let token = prop_oneof![3 => 0..MASK, 1 => Just(MASK)];
    kind.prop_flat_map(move |kind| {
        (Just(kind), arb_settings(kind), prop::collection::vec(token.clone(), 1..20))
    })
}

/// What the parameters allows a step to commit, by the rules of the design in plain arithmetic.
fn scheduled(kind: Kind, request: &RequestParameters, canvas: &Canvas, steps: u32) -> Option<u32> {
    let step = canvas.step_index();
    let is_last = step + 1 == steps;
    if is_last {
        return Some(canvas.masks_left());
    }
    if kind == Kind::Llada || request.algorithm == Some(Algorithm::Origin) {
        return None;
    }
    // Within one of the exact product; the sampler cases check the rounding.
    let time = |i: u32| 1.0 + (1e-3 - 1.0) * f64::from(i) / f64::from(steps);
    Some((f64::from(canvas.masks_left()) * (1.0 - time(step + 1) / time(step))) as u32)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn runs_end_without_masks((kind, request, prompt) in arb_run()) {
        let mut canvas = canvas(kind, &prompt, &request);
        let steps = canvas.steps_total();
        prop_assert!(steps >= request.steps.unwrap());
        let mut before = canvas.ids().to_vec();
        while !canvas.is_done() {
            let expected = scheduled(kind, &request, &canvas, steps);
            let choices = answer(&mut canvas);
            let progress = canvas.commit(&choices);
            let count = progress.committed.len() as u32;
            let positions: Vec<u32> = progress.committed.iter().map(|c| c.position).collect();
            prop_assert!(positions.is_sorted_by(|a, b| a < b));
            if let Some(expected) = expected {
                prop_assert!(count.abs_diff(expected) <= 1, "{} {}", count, expected);
            }
            for (position, (old, new)) in before.iter().zip(canvas.ids()).enumerate() {
                let is_new = positions.contains(&(position as u32));
                prop_assert_eq!(is_new, old != new, "position {}", position);
                prop_assert!(!is_new || *old == MASK);
                prop_assert!(!is_new || !request.forbid_end || *new != END);
            }
            before = canvas.ids().to_vec();
        }
        prop_assert_eq!(canvas.step_index(), steps);
        prop_assert_eq!(canvas.masks_left(), 0);
        prop_assert!(!canvas.ids().contains(&MASK));
        prop_assert_eq!(canvas.ids().len(), prompt.len() + request.max_tokens as usize);
    }

    /// LLaDA: after the last step of a block everything up to its end is committed, and nothing
    /// to its right; within it the shares differ by one at most.
    #[test]
    fn blocks_fill_one_after_the_other(
        prompt in prop::collection::vec(0..VOCAB, 0..10),
        (blocks, block_length, per_block) in (1..5_u32, 1..9_u32, 1..12_u32),
    ) {
        let request = RequestParameters {
            max_tokens: blocks * block_length,
            block_length: Some(block_length),
            steps: Some(blocks * per_block),
            early_stop: false,
            ..RequestParameters::default()
        };
        let mut canvas = canvas(Kind::Llada, &prompt, &request);
        for block in 0..blocks {
            let end = prompt.len() + ((block + 1) * block_length) as usize;
            let masks = canvas.ids()[..end].iter().filter(|id| **id == MASK).count() as u32;
            for step in 0..per_block {
                let choices = answer(&mut canvas);
                let count = canvas.commit(&choices).committed.len() as u32;
                let extra = u32::from(step < masks % per_block);
                prop_assert_eq!(count, masks / per_block + extra);
            }
            prop_assert!(!canvas.ids()[..end].contains(&MASK));
            prop_assert!(canvas.ids()[end..].iter().all(|id| *id == MASK));
        }
        prop_assert!(canvas.is_done());
    }

    /// Stopping early leaves the text as it is: all up to the first end token is the same.
    #[test]
    fn stopping_early_keeps_the_text((kind, mut request, prompt) in arb_run()) {
        let mut whole = canvas(kind, &prompt, &request);
        run(&mut whole);
        request.early_stop = true;
        let mut early = canvas(kind, &prompt, &request);
        let trace = run(&mut early);
        let is_end = |id: &u32| [END, TURN].contains(id);
        let after = prompt.len();
        if early.has_stopped_early() {
            let end = early.ids()[after..].iter().position(is_end).expect("an end") + after;
            prop_assert_eq!(&early.ids()[..=end], &whole.ids()[..=end]);
            prop_assert!(!early.ids()[..=end].contains(&MASK));
            // Not one step later than it could have been.
            let earlier = trace.len().checked_sub(2).map(|i| &trace[i]);
            if let Some(earlier) = earlier {
                prop_assert_ne!(&earlier[..=end], &early.ids()[..=end]);
            }
        } else {
            prop_assert_eq!(early.ids(), whole.ids());
        }
    }
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    for kind in [Kind::Llada, Kind::Dream] {
        let request = |seed| RequestParameters {
            max_tokens: 30,
            temperature: Some(1.0),
            alg_temp: (kind == Kind::Dream).then_some(0.5),
            seed,
            early_stop: false,
            ..RequestParameters::default()
        };
        let trace = |seed| run(&mut canvas(kind, &[1, 2, 3], &request(seed)));
        assert_eq!(trace(1), trace(1));
        assert_ne!(trace(1), trace(2));
    }
}

/// Algorithm `origin`: a mask leaves with probability `1 - s/t`, whatever the logits say.
#[test]
fn origin_commits_by_chance() {
    let (steps, masks, runs) = (5_u32, 200_u32, 40);
    let mut counts = [0_u32; 5];
    for seed in 0..runs {
        let request = RequestParameters {
            max_tokens: masks,
            steps: Some(steps),
            algorithm: Some(Algorithm::Origin),
            seed,
            early_stop: false,
            ..RequestParameters::default()
        };
        let mut canvas = canvas(Kind::Dream, &[1], &request);
        for count in &mut counts {
            let wanted = canvas.plan_step().len();
            let sure = vec![Choice { confidence: 1.0, token: 1, pad: 0 }; wanted];
            assert_eq!(canvas.commit(&sure).committed.len(), wanted, "none is computed in vain");
            *count += wanted as u32;
        }
        assert_eq!(canvas.masks_left(), 0);
    }
    // Each mask leaves at any step with the same probability, 0.999 / 5 (the last: the rest).
    let all = f64::from(masks) * runs as f64;
    for count in counts {
        let deviation = (all * 0.2 * 0.8).sqrt();
        let distance = (f64::from(count) - all * 0.2).abs() - all * 0.001;
        assert!(distance < 4.0 * deviation, "{counts:?}");
    }
}

#[test]
fn early_stop_waits_for_what_lies_left() {
    let request =
        RequestParameters { max_tokens: 4, steps: Some(4), ..RequestParameters::default() };
    // An end token of the prompt ends nothing.
    let mut canvas = canvas(Kind::Llada, &[END, 2], &request);
    let choice = |confidence, token| Choice { confidence, token, pad: 0 };
    let first = [choice(0.1, 5), choice(0.2, 5), choice(0.9, TURN), choice(0.3, 5)];
    assert!(!canvas.commit(&first).is_done);
    let second = [choice(0.1, 5), choice(0.2, 5), choice(0.3, 5)];
    let progress = canvas.commit(&second);
    assert!(!progress.is_done, "positions 2 and 3 are masks");
    assert_eq!(progress.committed[0].position, 5);
    assert!(!canvas.commit(&[choice(0.1, 6), choice(0.2, 7)]).is_done);
    let progress = canvas.commit(&[choice(0.1, 8)]);
    assert!(progress.is_done && progress.masks_left == 0);
    assert!(!canvas.has_stopped_early(), "that was the last step");
    assert_eq!(canvas.ids(), [END, 2, 8, 7, TURN, 5]);
}

#[test]
fn early_stop_leaves_the_rest_masked() {
    let request = RequestParameters {
        max_tokens: 4,
        steps: Some(4),
        block_length: Some(2),
        ..RequestParameters::default()
    };
    let mut canvas = canvas(Kind::Llada, &[2], &request);
    let choice = |confidence, token| Choice { confidence, token, pad: 0 };
    assert!(!canvas.commit(&[choice(0.1, 5), choice(0.2, 6)]).is_done);
    let progress = canvas.commit(&[choice(0.1, END)]);
    assert_eq!((progress.step, progress.masks_left, progress.is_done), (1, 2, true));
    assert!(canvas.has_stopped_early());
    assert_eq!(canvas.ids(), [2, END, 6, MASK, MASK]);
    assert!(canvas.plan_step().is_empty());
    assert_eq!(canvas.commit(&[]).committed, []);
    assert_eq!(canvas.step_index(), 2);
}

#[test]
fn without_holes_there_is_nothing_to_do() {
    for kind in [Kind::Llada, Kind::Dream] {
        let request = RequestParameters { max_tokens: 0, ..RequestParameters::default() };
        let mut done = canvas(kind, &[1, 2], &request);
        assert!(done.is_done() && done.plan_step().is_empty());
        assert_eq!((done.steps_total(), done.masks_left()), (0, 0));
        // Steps asked for are counted even so.
        let request = RequestParameters { steps: Some(3), ..request };
        let mut idle = canvas(kind, &[1, 2], &request);
        assert_eq!(run(&mut idle), vec![vec![1, 2]; 3]);
    }
}

#[test]
fn holes_alone_take_a_step_each() {
    let request = RequestParameters { max_tokens: 0, ..RequestParameters::default() };
    let mut canvas = canvas(Kind::Llada, &[MASK, 2, MASK, MASK], &request);
    assert_eq!(canvas.steps_total(), 3);
    let trace = run(&mut canvas);
    let masks: Vec<usize> =
        trace.iter().map(|ids| ids.iter().filter(|id| **id == MASK).count()).collect();
    assert_eq!(masks, [2, 1, 0]);
}

#[test]
fn shifted_rows_come_before_their_positions() {
    let request =
        RequestParameters { max_tokens: 2, steps: Some(1), ..RequestParameters::default() };
    let rows = |kind| -> Vec<(u32, u32)> {
        let mut canvas = canvas(kind, &[MASK, 2, MASK], &request);
        canvas.plan_step().iter().map(|want| (want.position, want.row)).collect()
    };
    assert_eq!(rows(Kind::Llada), [(0, 0), (2, 2), (3, 3), (4, 4)]);
    assert_eq!(rows(Kind::Dream), [(0, 0), (2, 1), (3, 2), (4, 3)]);
}

#[test]
fn a_mask_as_choice_leaves_the_hole() {
    let request =
        RequestParameters { max_tokens: 1, steps: Some(2), ..RequestParameters::default() };
    let mut canvas = canvas(Kind::Llada, &[1], &request);
    for token in [MASK, VOCAB] {
        let mut canvas = canvas.clone();
        let choice = Choice { confidence: 1.0, token, pad: 0 };
        assert_eq!(canvas.commit(&[choice]).masks_left, 1, "token {token}");
    }
    canvas.commit(&[Choice { confidence: 1.0, token: 3, pad: 0 }]);
    assert_eq!(canvas.ids(), [1, 3]);
}
