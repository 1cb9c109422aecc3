//! Threshold and factor, from confidences made by hand.
use dllm_rt::denoise::{
    Canvas, Error, GenerationParameters, Preset, RequestParameters, TokenFacts,
};
use dllm_rt::sample::{self, Algorithm, Choice, Kind};

const MASK: u32 = 9;
const END: u32 = 7;
const TURN: u32 = 8;
/// Prompt of most cases.
const PROMPT: [u32; 2] = [1, 2];

fn facts(kind: Kind) -> TokenFacts {
    TokenFacts {
        mask_token: MASK,
        vocab_size: 10,
        shift_logits: kind == Kind::Dream,
        end_of_text: vec![END],
        end_of_turn: vec![TURN],
    }
}

fn canvas_on(kind: Kind, prompt: &[u32], request: &RequestParameters) -> Canvas {
    let parameters = GenerationParameters::new(kind, request).unwrap();
    Canvas::new(prompt, &parameters, &facts(kind)).unwrap()
}

/// Eight positions in blocks of four.
fn canvas(request: RequestParameters) -> Canvas {
    let request = RequestParameters { max_tokens: 8, block_length: Some(4), ..request };
    canvas_on(Kind::Llada, &PROMPT, &request)
}

fn threshold(tau: f64) -> RequestParameters {
    RequestParameters { threshold: Some(tau), ..RequestParameters::default() }
}

/// Ends the step with these confidences and tokens; the positions that committed.
fn commit(canvas: &mut Canvas, choices: &[(f64, u32)]) -> Vec<u32> {
    assert_eq!(canvas.plan_step().len(), choices.len());
    let choice = |&(confidence, token): &(f64, u32)| Choice { confidence, token, pad: 0 };
    let choices: Vec<Choice> = choices.iter().map(choice).collect();
    canvas.commit(&choices).committed.iter().map(|c| c.position).collect()
}

fn wanted(canvas: &mut Canvas) -> Vec<(u32, u32)> {
    canvas.plan_step().iter().map(|w| (w.position, w.row)).collect()
}

#[test]
fn all_that_reach_the_threshold_commit_and_the_next_block_follows_a_full_one() {
    let mut canvas = canvas(threshold(0.9));
    assert_eq!(commit(&mut canvas, &[(0.95, 3), (0.5, 3), (0.9, 4), (0.2, 3)]), [2, 4]);
    assert_eq!(wanted(&mut canvas), [(3, 3), (5, 5)]);
    assert_eq!(commit(&mut canvas, &[(0.91, 3), (0.92, 3)]), [3, 5]);
    assert_eq!(wanted(&mut canvas).len(), 4);
    assert_eq!(commit(&mut canvas, &[(0.9, 3); 4]), [6, 7, 8, 9]);
    assert!(canvas.is_done() && !canvas.has_stopped_early());
    assert_eq!((canvas.step_index(), canvas.masks_left()), (3, 0));
}

#[test]
fn below_the_threshold_the_best_one_commits_and_of_equals_the_lower_position() {
    let mut canvas = canvas(threshold(0.9));
    assert_eq!(commit(&mut canvas, &[(0.1, 3), (0.3, 3), (0.3, 4), (0.2, 3)]), [3]);
    assert_eq!(commit(&mut canvas, &[(0.1, 3), (0.1, 4), (0.1, 3)]), [2]);
    // One that reaches it takes none of the others along.
    assert_eq!(commit(&mut canvas, &[(0.95, 4), (0.89, 3)]), [4]);
    // One mask left.
    assert_eq!(commit(&mut canvas, &[(f64::NEG_INFINITY, 4)]), [5]);
    assert_eq!(wanted(&mut canvas).first(), Some(&(6, 6)));
}

#[test]
fn a_factor_commits_the_longest_run_that_holds() {
    let mut canvas =
        canvas(RequestParameters { factor: Some(1.0), ..RequestParameters::default() });
    // (n + 1)(1 - c): 0.1, 0.6, 1.2, 4.5.
    assert_eq!(commit(&mut canvas, &[(0.7, 3), (0.95, 3), (0.1, 4), (0.8, 3)]), [3, 5]);
    assert_eq!(commit(&mut canvas, &[(0.1, 3), (0.1, 3)]), [2]);
    assert_eq!(commit(&mut canvas, &[(0.1, 3)]), [4]);
}

#[test]
fn a_block_of_nothing_but_ends_is_refused_once() {
    let mut canvas = canvas(threshold(0.9));
    let flood = [(0.99, END), (0.999, TURN), (0.99, END), (0.99, END)];
    assert_eq!(commit(&mut canvas, &flood), [3]);
    // A model that means it says so again; then nothing is left of the first end.
    assert_eq!(commit(&mut canvas, &[(0.99, END); 3]), [2, 4, 5]);
    assert!(canvas.is_done() && canvas.has_stopped_early());

    // Nor is the best one the first position, whose end would be the last word: a second opinion
    // may be another.
    for first in [0.99, 0.9999] {
        let mut canvas = self::canvas(threshold(0.9));
        let flood = [(first, END), (0.99, END), (0.99, TURN), (0.99, END)];
        assert_eq!(commit(&mut canvas, &flood), [3]);
        assert!(!canvas.is_done());
        assert_eq!(commit(&mut canvas, &[(0.95, 3), (0.2, END), (0.2, END)]), [2]);
        assert!(canvas.is_done() && canvas.has_stopped_early());
    }

    // A hole may be the best one, and the first generated position still is not.
    for confidences in [[0.99; 3], [0.91, 0.999, 0.91]] {
        let request = RequestParameters { max_tokens: 2, block_length: Some(2), ..threshold(0.9) };
        let mut canvas = canvas_on(Kind::Llada, &[1, MASK, 2], &request);
        let flood = confidences.map(|confidence| (confidence, END));
        assert_eq!(commit(&mut canvas, &flood), [4]);
        let one = RequestParameters { max_tokens: 1, ..request };
        let mut canvas = canvas_on(Kind::Llada, &[1, MASK, 2], &one);
        assert_eq!(commit(&mut canvas, &flood[..2]), [1]);
    }

    // With one other token, or with one position, it is no flood.
    let mut canvas = self::canvas(threshold(0.9));
    let answer = [(0.99, 3), (0.99, TURN), (0.99, END), (0.99, END)];
    assert_eq!(commit(&mut canvas, &answer), [2, 3, 4, 5]);
    assert!(canvas.has_stopped_early());
    // Nor where the block has something in it, or not all would commit.
    let mut canvas = self::canvas(threshold(0.9));
    let some = [(0.99, END), (0.5, END), (0.99, END), (0.99, END)];
    assert_eq!(commit(&mut canvas, &some), [2, 4, 5]);
}

#[test]
fn a_factor_refuses_a_flood_too() {
    let mut canvas =
        canvas(RequestParameters { factor: Some(100.0), ..RequestParameters::default() });
    assert_eq!(commit(&mut canvas, &[(0.5, END), (0.6, END), (0.5, END), (0.5, END)]), [3]);
}

#[test]
fn a_mask_as_choice_is_never_committed_and_ends_nothing_for_ever() {
    let mut canvas = canvas(threshold(0.5));
    assert_eq!(commit(&mut canvas, &[(0.9, MASK), (0.9, 3), (0.9, MASK), (0.9, 3)]), [3, 5]);
    let mut steps = 1;
    while !canvas.is_done() {
        let choices = vec![(0.9, MASK); canvas.plan_step().len()];
        assert!(commit(&mut canvas, &choices).is_empty());
        steps += 1;
    }
    assert_eq!((steps, canvas.masks_left()), (8, 6));
}

#[test]
fn a_hole_left_of_the_block_is_filled_with_it() {
    let request = RequestParameters { max_tokens: 4, block_length: Some(2), ..threshold(0.9) };
    let mut canvas = canvas_on(Kind::Llada, &[1, MASK, 2], &request);
    assert_eq!(wanted(&mut canvas), [(1, 1), (3, 3), (4, 4)]);
    assert_eq!(commit(&mut canvas, &[(0.2, 3), (0.95, 3), (0.99, 3)]), [3, 4]);
    // The block is full but for the hole, which comes before the next one.
    assert_eq!(wanted(&mut canvas), [(1, 1)]);
    assert_eq!(commit(&mut canvas, &[(0.2, 3)]), [1]);
    assert_eq!(wanted(&mut canvas), [(5, 5), (6, 6)]);
}

#[test]
fn holes_alone_are_one_block() {
    let request = RequestParameters { max_tokens: 0, ..threshold(0.9) };
    let mut canvas = canvas_on(Kind::Llada, &[MASK, 1, MASK, MASK], &request);
    assert_eq!(canvas.steps_total(), 3);
    assert_eq!(commit(&mut canvas, &[(0.95, 3), (0.1, 3), (0.95, 4)]), [0, 3]);
    assert_eq!(commit(&mut canvas, &[(0.1, 3)]), [2]);
    assert!(canvas.is_done());
}

#[test]
fn dream_has_blocks_and_reads_the_row_before() {
    let request = RequestParameters {
        max_tokens: 6,
        block_length: Some(3),
        algorithm: Some(Algorithm::Entropy),
        ..threshold(0.9)
    };
    let mut canvas = canvas_on(Kind::Dream, &PROMPT, &request);
    assert_eq!(wanted(&mut canvas), [(2, 1), (3, 2), (4, 3)]);
    // exp of the entropy: 0.951, 0.607, 0.9048.
    assert_eq!(commit(&mut canvas, &[(-0.05, 3), (-0.5, 3), (-0.1, 4)]), [2, 4]);
    assert_eq!(commit(&mut canvas, &[(-3.0, 3)]), [3]);
    assert_eq!(wanted(&mut canvas), [(5, 4), (6, 5), (7, 6)]);
    // The first position of all has its own row.
    let mut first = canvas_on(Kind::Dream, &[], &request);
    assert_eq!(wanted(&mut first), [(0, 0), (1, 0), (2, 1)]);
}

#[test]
fn a_canvas_grows_by_blocks_until_the_text_ends() {
    for request in [threshold(0.9), RequestParameters::default()] {
        let request = RequestParameters { grow: Some(true), ..request };
        let is_adaptive = request.threshold.is_some();
        let mut canvas = canvas(request);
        assert_eq!((canvas.ids().len(), canvas.positions_max()), (6, 10));
        assert_eq!(canvas.ids(), [1, 2, MASK, MASK, MASK, MASK]);
        let mut first = 0;
        loop {
            let choices = vec![(0.95, 3); canvas.plan_step().len()];
            if canvas.ids().len() != 6 {
                break;
            }
            commit(&mut canvas, &choices);
            first += 1;
        }
        assert_eq!(first, if is_adaptive { 1 } else { 4 });
        assert_eq!(canvas.ids(), [1, 2, 3, 3, 3, 3, MASK, MASK, MASK, MASK]);
        let mut choices = vec![(0.1, 3); 4];
        choices[0] = (0.99, END);
        assert_eq!(commit(&mut canvas, &choices), [6]);
        assert!(canvas.is_done() && canvas.has_stopped_early());
    }
    // One that ends in its first block never grows; its cap may leave a shorter last block.
    let mut canvas = canvas(RequestParameters { grow: Some(true), ..threshold(0.9) });
    commit(&mut canvas, &[(0.95, 3), (0.95, END), (0.95, END), (0.2, 3)]);
    assert!(canvas.is_done());
    assert_eq!(canvas.ids().len(), 6);
    let request = RequestParameters {
        max_tokens: 5,
        block_length: Some(4),
        grow: Some(true),
        ..threshold(0.9)
    };
    let mut canvas = canvas_on(Kind::Llada, &PROMPT, &request);
    commit(&mut canvas, &[(0.95, 3); 4]);
    assert_eq!(canvas.ids().len(), 6);
    canvas.plan_step();
    assert_eq!(canvas.ids().len(), 7);
    let plain = RequestParameters { grow: Some(true), ..RequestParameters::default() };
    assert_eq!(
        GenerationParameters::new(Kind::Dream, &plain).unwrap_err(),
        Error::GrowWithoutBlocks
    );
}

#[test]
fn steps_are_the_most_there_are() {
    let mut canvas = canvas(RequestParameters { steps: Some(2), ..threshold(0.9) });
    assert_eq!(canvas.steps_total(), 2);
    commit(&mut canvas, &[(0.1, 3); 4]);
    assert!(!canvas.is_done());
    commit(&mut canvas, &[(0.1, 3); 3]);
    assert!(canvas.is_done() && !canvas.has_stopped_early());
    assert_eq!(canvas.masks_left(), 6);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused =
        |kind, request: RequestParameters| GenerationParameters::new(kind, &request).unwrap_err();
    for tau in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
        let fault = refused(Kind::Llada, threshold(tau));
        assert!(matches!(fault, Error::OutOfRange { field: "threshold", .. }), "{fault:?}");
        let factor =
            RequestParameters { factor: Some(tau.min(0.0)), ..RequestParameters::default() };
        assert!(GenerationParameters::new(Kind::Llada, &factor).is_err(), "{tau}");
    }
    let random = RequestParameters { algorithm: Some(Algorithm::Random), ..threshold(0.9) };
    assert_eq!(refused(Kind::Llada, random), Error::PolicyByChance { other: "random" });
    let drawn = RequestParameters { alg_temp: Some(0.5), ..threshold(0.9) };
    assert_eq!(refused(Kind::Dream, drawn), Error::PolicyByChance { other: "`alg_temp`" });
}

/// A preset asks Dream for as much certainty as it asks LLaDA for, on rows of logits.
#[test]
fn presets_commit_at_the_same_probabilities() {
    let kernels = dllm_cpu::Kernels::best().unwrap();
    for kind in [Kind::Llada, Kind::Dream] {
        for temperature in [None, Some(0.2), Some(0.0)] {
            for (preset, enough, too_little) in
                [(Preset::Balanced, 0.92_f32, 0.88), (Preset::Fast, 0.82, 0.78)]
            {
                let request = RequestParameters { preset, temperature, ..Default::default() };
                let mut canvas = canvas_on(kind, &[1, 2], &request);
                let threshold = canvas.parameters().threshold.unwrap();
                canvas.plan_step();
                let rule = *canvas.rule();
                let certainty = |probability: f32| {
                    let mut row = [f32::NEG_INFINITY; 10];
                    (row[3], row[4]) = (probability.ln(), (1.0 - probability).ln());
                    let (scratch, row) = (&mut [0; 10], &mut row[..]);
                    let choice = sample::choose(kernels, &rule, 0, 2, row, None, scratch);
                    rule.algorithm.certainty(choice.confidence)
                };
                let what = format!("{kind} {preset:?} {temperature:?}");
                assert!(certainty(enough) >= threshold, "{what}: {}", certainty(enough));
                assert!(certainty(too_little) < threshold, "{what}: {}", certainty(too_little));
            }
        }
    }
}
