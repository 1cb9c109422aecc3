//! The same bits however the model is loaded and whatever rows are asked for.

use super::features::mixed;
use super::model::{Spec, TestModel};
use super::{all_logits, load, load_gguf, logits};
use dllm_cpu::Kernels;
use dllm_cpu::dtype::Dtype;
use dllm_rt::gguf::{FileBytes, Gguf};

const LEN: usize = 33;

fn models() -> [TestModel; 2] {
    let spec = Spec { vocab: 83, kv_heads: 2, ..Spec::new("dream") };
    let types = |_: &str| Dtype::Q4_K;
    [Spec { types: mixed, ..spec.clone() }.build(5), Spec { types, ..spec }.build(5)]
}

fn bits(logits: &[Vec<f32>]) -> Vec<Vec<u32>> {
    logits.iter().map(|row| row.iter().map(|x| x.to_bits()).collect()).collect()
}

fn assert_same(got: &[Vec<f32>], want: &[Vec<f32>], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (row, (got, want)) in bits(got).iter().zip(bits(want)).enumerate() {
        let differs = got.iter().zip(&want).position(|(g, w)| g != w);
        assert_eq!(differs, None, "{what}: row {row} differs at this token");
    }
}

#[test]
fn any_threads_and_instruction_set() {
    for model in models() {
        let ids = model.canvas(LEN, 0);
        let want = all_logits(&mut load(&model, LEN, 1, Some("scalar")), &ids);
        assert!(want.concat().iter().all(|x| x.is_finite()));
        for kernels in Kernels::all() {
            for threads in [1, 3] {
                let what = format!("{}, {threads} threads", kernels.name());
                let mut engine = load(&model, LEN, threads, Some(kernels.name()));
                assert_same(&all_logits(&mut engine, &ids), &want, &what);
            }
        }
    }
}

#[test]
fn any_rows() {
    for model in models() {
        let ids = model.canvas(LEN, 0);
        let mut engine = load(&model, LEN, 3, None);
        let all = all_logits(&mut engine, &ids);
        let last = LEN as u32 - 1;
        let some: [&[u32]; 5] =
            [&[0], &[last], &[7, 8, 30], &[last, 0, 16, 3, 2, 1], &[5, 5, 5, 4, 4, last, 5]];
        for rows in some {
            let want: Vec<_> = rows.iter().map(|row| all[*row as usize].clone()).collect();
            assert_same(&logits(&mut engine, &ids, rows), &want, &format!("{rows:?}"));
        }
        let backwards: Vec<u32> = (0..=last).rev().collect();
        let want: Vec<_> = all.into_iter().rev().collect();
        assert_same(&logits(&mut engine, &ids, &backwards), &want, "backwards");
        assert!(logits(&mut engine, &ids, &[]).is_empty());
    }
}

/// Limits change where things lie and nothing else.
#[test]
fn any_limits() {
    let [model, _] = models();
    let ids = model.canvas(LEN, 0);
    let want = all_logits(&mut load(&model, LEN, 2, None), &ids);
    for rows in [34, 65, 300] {
        let got = all_logits(&mut load(&model, rows, 2, None), &ids);
        assert_same(&got, &want, &format!("planned for {rows} rows"));
    }
}

#[test]
fn a_split_model() {
    for model in models() {
        let ids = model.canvas(LEN, 0);
        let want = all_logits(&mut load(&model, LEN, 2, None), &ids);
        let parts = model.parts().map(|part| Box::new(part.bytes()) as Box<dyn FileBytes>);
        let file = Gguf::from_parts(parts.into()).unwrap();
        assert_eq!(file.part_count(), 2);
        assert_same(&all_logits(&mut load_gguf(&file, LEN, 2, None), &ids), &want, "two parts");
    }
}

/// The shift of `diffusion.shift_logits` is the sampler's: logits are given as the model has them.
#[test]
fn shifted_or_not() {
    for mut model in models() {
        let ids = model.canvas(LEN, 0);
        let want = all_logits(&mut load(&model, LEN, 2, None), &ids);
        model.file.bool("diffusion.shift_logits", false);
        assert_same(&all_logits(&mut load(&model, LEN, 2, None), &ids), &want, "not shifted");
    }
}
