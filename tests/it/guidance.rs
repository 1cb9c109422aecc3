//! A step under guidance is what its two passes give one by one.

use crate::common::models;
use dllm_cpu::Kernels;
use dllm_rt::denoise::{Candidate, Canvas, RequestParameters};
use dllm_rt::sample::{self, Choice};
use dllm_rt::{Engine, GenerationParameters, Limits};

/// Copies of the logits that `wanted` reads.
fn logits(engine: &mut Engine, ids: &[u32], wanted: &[Candidate]) -> Vec<Vec<f32>> {
    let rows: Vec<u32> = wanted.iter().map(|w| w.row).collect();
    engine.logits(ids, &rows).unwrap().rows().map(<[f32]>::to_vec).collect()
}

#[test]
fn a_guided_step_is_two_passes_put_together() {
    for threads in [1, 2] {
        // So few rows of logits that, were they not kept, the second pass would reach them.
        let limits = Limits { logits: true, guidance: true, ..Limits::new(96, 12, threads) };
        let mut engine = models::load_within(models::LLADA, limits, None);
        let base = RequestParameters {
            max_tokens: 24,
            block_length: Some(8),
            ..RequestParameters::default()
        };
        for (cfg_scale, temperature, grow) in
            [(0.5, 0.0, false), (3.0, 0.0, true), (1.5, 0.8, false), (0.7, 0.3, true)]
        {
            let base = RequestParameters { grow: Some(grow), early_stop: false, ..base.clone() };
            let request = RequestParameters { cfg_scale, temperature: Some(temperature), ..base };
            let parameters = GenerationParameters::new(engine.kind(), &request).unwrap();
            let (prompt, facts) = (models::prompt(), models::facts(&engine));
            let mut sequence = engine.sequence(&prompt, &parameters, &facts).unwrap();
            let mut by_hand = Canvas::new(&prompt, &parameters, &facts).unwrap();
            while !sequence.canvas().is_done() {
                // Whatever is left in the arena must not matter.
                engine.poison(0x7fc0_0000);
                engine.step_one(&mut sequence).unwrap();
                step_by_hand(&mut engine, &mut by_hand);
                assert_eq!(sequence.canvas().ids(), by_hand.ids(), "{request:?}");
            }
        }
    }
}

fn step_by_hand(engine: &mut Engine, canvas: &mut Canvas) {
    let (rule, step) = (*canvas.rule(), canvas.step_index());
    let wanted = canvas.plan_step().to_vec();
    let without_prompt = logits(engine, canvas.unconditional_ids(), &wanted);
    let mut with_prompt = logits(engine, canvas.ids(), &wanted);
    let kernels = Kernels::best().unwrap();
    let choose = |(i, w): (usize, &Candidate)| -> Choice {
        let (row, other) = (&mut with_prompt[i], Some(&without_prompt[i][..]));
        sample::choose(kernels, &rule, step, w.position, row, other, &mut [])
    };
    let choices: Vec<Choice> = wanted.iter().enumerate().map(choose).collect();
    canvas.commit(&choices);
}
