//! The same bytes for any thread count, instruction set, stale memory and caller's float request.

use crate::common::models;

#[path = "../../kernels/cpu/tests/kernels/control_word.rs"]
mod control_word;

use dllm_cpu::Kernels;
use dllm_rt::Engine;
use dllm_rt::denoise::RequestParameters;

/// Bits of the logits of every position of a fixed canvas, half of it masks.
fn logit_bits(engine: &mut Engine) -> Vec<u32> {
    let ids: Vec<u32> =
        (0..61u32).map(|i| if i % 2 == 0 { models::MASK } else { 31 * i }).collect();
    let rows: Vec<u32> = (0..ids.len() as u32).collect();
    let logits = engine.logits(&ids, &rows).unwrap();
    logits.rows().flatten().map(|x| x.to_bits()).collect()
}

/// Every canvas of every step of every sampler.
fn canvases(engine: &mut Engine) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    for request in models::every_sampler(engine.kind()) {
        models::run(engine, &request, |_, ids| all.push(ids.to_vec()));
    }
    all
}

/// The same with every way to save work.
fn saved_canvases(engine: &mut Engine) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    for request in models::every_saving(engine.kind()) {
        models::run(engine, &request, |_, ids| all.push(ids.to_vec()));
    }
    all
}

fn assert_same_bits(got: &[u32], want: &[u32], vocab: usize, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    if let Some(at) = got.iter().zip(want).position(|(g, w)| g != w) {
        let (row, token) = (at / vocab, at % vocab);
        let (got, want) = (f32::from_bits(got[at]), f32::from_bits(want[at]));
        panic!("{what}: row {row}, token {token}: {got:?} instead of {want:?}");
    }
}

#[test]
fn any_thread_count() {
    for name in models::ALL {
        let mut one = models::load(name, 1, None);
        let (bits, text) = (logit_bits(&mut one), canvases(&mut one));
        let saved = saved_canvases(&mut one);
        for threads in [2, 3, 5] {
            let mut engine = models::load(name, threads, None);
            let what = format!("{name}, {threads} threads");
            assert_same_bits(&logit_bits(&mut engine), &bits, engine.config().vocab, &what);
            assert_eq!(canvases(&mut engine), text, "{what}");
            assert_eq!(saved_canvases(&mut engine), saved, "{what}");
        }
    }
}

#[test]
fn any_instruction_set() {
    for name in models::ALL {
        let mut scalar = models::load(name, 2, Some("scalar"));
        let bits = logit_bits(&mut scalar);
        let text = short_canvases(&mut scalar);
        for kernels in Kernels::all() {
            let mut engine = models::load(name, 2, Some(kernels.name()));
            assert_eq!(engine.isa(), kernels.name());
            let what = format!("{name}, {}", kernels.name());
            assert_same_bits(&logit_bits(&mut engine), &bits, engine.config().vocab, &what);
            assert_eq!(short_canvases(&mut engine), text, "{what}");
        }
    }
}

/// The last canvas of every sampler in a few steps: scalar code takes its time.
fn short_canvases(engine: &mut Engine) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    for request in models::every_setting(engine.kind()) {
        let request = RequestParameters { max_tokens: 4, steps: Some(2), ..request };
        let mut last = Vec::new();
        models::run(engine, &request, |_, ids| last = ids.to_vec());
        all.push(last);
    }
    all
}

#[test]
fn whatever_the_arena_held_before() {
    for name in models::ALL {
        let mut engine = models::load(name, 2, None);
        let (bits, text) = (logit_bits(&mut engine), canvases(&mut engine));
        let saved = saved_canvases(&mut engine);
        engine.poison(0x7fc0_0000);
        assert_eq!(saved_canvases(&mut engine), saved, "{name}");
        // Quiet and signalling NaN, all ones, infinity.
        for pattern in [0x7fc0_0000, 0xffa5_5a5a, 0xffff_ffff, 0x7f80_0000] {
            engine.poison(pattern);
            let what = format!("{name}, poisoned with {pattern:#x}");
            assert_same_bits(&logit_bits(&mut engine), &bits, engine.config().vocab, &what);
            engine.poison(pattern);
            assert_eq!(canvases(&mut engine), text, "{what}");
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn whatever_the_callers_control_word() {
    for name in models::ALL {
        let mut engine = models::load(name, 2, None);
        let (bits, text) = (logit_bits(&mut engine), canvases(&mut engine));
        let (got, also, word) = control_word::unusually(|| {
            let got = (logit_bits(&mut engine), canvases(&mut engine));
            // Loaded under it, too: threads inherit the word of the thread that starts them.
            let mut inherited = models::load(name, 2, None);
            let also = (logit_bits(&mut inherited), canvases(&mut inherited));
            (got, also, control_word::settings())
        });
        assert_eq!(word, control_word::UNUSUAL, "the caller's control word was not given back");
        assert_same_bits(&got.0, &bits, engine.config().vocab, name);
        assert_same_bits(&also.0, &bits, engine.config().vocab, name);
        assert_eq!((got.1, also.1), (text.clone(), text), "{name}");
    }
}

#[test]
fn repeated_runs_and_fewer_wanted_rows() {
    for name in models::ALL {
        let mut engine = models::load(name, 3, None);
        let vocab = engine.config().vocab;
        let all = logit_bits(&mut engine);
        let ids: Vec<u32> =
            (0..61u32).map(|i| if i % 2 == 0 { models::MASK } else { 31 * i }).collect();
        for rows in [vec![5], vec![60, 0, 60], (10..43).collect::<Vec<u32>>()] {
            let logits = engine.logits(&ids, &rows).unwrap();
            for (row, logits) in rows.iter().zip(logits.rows()) {
                let bits: Vec<u32> = logits.iter().map(|x| x.to_bits()).collect();
                let want = &all[*row as usize * vocab..][..vocab];
                assert_same_bits(&bits, want, vocab, &format!("{name}, row {row} alone"));
            }
        }
        assert_eq!(canvases(&mut engine), canvases(&mut engine), "{name}");
    }
}
