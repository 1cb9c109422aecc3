//! The reference's schedules, step by step: given the logits a model would have returned, the
//! canvas after every step must be the reference's. The logits lie on a grid of 1/4, so ties are
//! exact and tell whether they are broken as they should be.
use dllm_cpu::Kernels;
use dllm_rt::denoise::{Canvas, GenerationParameters, RequestParameters, TokenFacts};
use dllm_rt::sample::{Choice, Kind, choose, scratch_len};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    kind: String,
    algorithm: String,
    #[serde(rename = "gen")]
    max_tokens: u32,
    block: Option<u32>,
    steps: u32,
    eps: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<u32>,
    cfg_scale: Option<f64>,
    mask: u32,
    vocab: u32,
    prompt: Vec<u32>,
    start: Vec<u32>,
    steps_out: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    logits: Vec<Vec<f32>>,
    uncond_logits: Option<Vec<Vec<f32>>>,
    canvas: Vec<u32>,
    committed: Option<usize>,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../data/sampler/cases.json")).unwrap()
}

fn canvas_of(case: &Case) -> Canvas {
    let kind = if case.kind == "dream" { Kind::Dream } else { Kind::Llada };
    let request = RequestParameters {
        max_tokens: case.max_tokens,
        steps: Some(case.steps),
        block_length: case.block,
        algorithm: Some(case.algorithm.parse().unwrap()),
        temperature: Some(0.0),
        top_p: case.top_p,
        top_k: case.top_k,
        eps: case.eps,
        cfg_scale: case.cfg_scale.unwrap_or(0.0),
        early_stop: false,
        ..RequestParameters::default()
    };
    let facts = TokenFacts {
        mask_token: case.mask,
        vocab_size: case.vocab,
        shift_logits: kind == Kind::Dream,
        end_of_text: vec![],
        end_of_turn: vec![],
    };
    let parameters = GenerationParameters::new(kind, &request).unwrap();
    Canvas::new(&case.prompt, &parameters, &facts).unwrap()
}

fn choices(canvas: &mut Canvas, step: &Step) -> Vec<Choice> {
    let (rule, index) = (*canvas.rule(), canvas.step_index());
    let mut choices = Vec::new();
    for want in canvas.plan_step() {
        let row = want.row as usize;
        let mut logits = step.logits[row].clone();
        let unconditional = step.uncond_logits.as_ref().map(|rows| &rows[row][..]);
        let mut scratch = vec![0; scratch_len(&rule, logits.len())];
        let scratch = &mut scratch;
        let kernels = Kernels::best().unwrap();
        let choice =
            choose(kernels, &rule, index, want.position, &mut logits, unconditional, scratch);
        choices.push(choice);
    }
    choices
}

#[test]
fn every_step_of_every_case() {
    let cases = cases();
    assert_eq!(cases.len(), 48);
    for (number, case) in cases.iter().enumerate() {
        let mut canvas = canvas_of(case);
        assert_eq!(canvas.ids(), case.start, "case {number}: start");
        assert_eq!(canvas.steps_total() as usize, case.steps_out.len(), "case {number}: steps");
        for (index, step) in case.steps_out.iter().enumerate() {
            assert!(!canvas.is_done(), "case {number}: done before step {index}");
            let choices = choices(&mut canvas, step);
            let committed = canvas.commit(&choices).committed.len();
            if let Some(expected) = step.committed {
                assert_eq!(committed, expected, "case {number}, step {index}: tokens committed");
            }
            assert_eq!(canvas.ids(), step.canvas, "case {number}, step {index}");
        }
        assert!(canvas.is_done(), "case {number}: not done");
    }
}

/// The second pass sees the masks' tokens alone.
#[test]
fn guided_cases_mask_the_prompt() {
    let guided: Vec<Case> = cases().into_iter().filter(|c| c.cfg_scale.is_some()).collect();
    assert!(guided.len() >= 4);
    for case in guided {
        let mut canvas = canvas_of(&case);
        for step in &case.steps_out {
            let choices = choices(&mut canvas, step);
            canvas.commit(&choices);
            let mut expected = step.canvas.clone();
            for (id, start) in expected.iter_mut().zip(&case.start) {
                *id = if *start == case.mask { *id } else { case.mask };
            }
            assert_eq!(canvas.unconditional_ids(), expected);
        }
    }
}
