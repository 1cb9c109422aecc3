//! The forward pass by value: small models of random weights, of every tensor type and with every
//! optional feature, against an f64 forward pass that shares nothing with the engine but the
//! decoding of tensors, which has tests of its own.
//!
//! `blocks` makes the weights, `model` the files, `oracle` the expected logits; `features` has the
//! cases, `power` shows that errors would be noticed, `same` and `statistics` compare
//! bits with bits.

mod blocks;
mod features;
mod model;
mod oracle;
mod power;
mod same;
mod statistics;

use dllm_rt::gguf::Gguf;
use dllm_rt::{Engine, Limits, Options};
use model::{Spec, TestModel};

/// Largest relative error (root mean square) of a row of logits. The longest chains of f32
/// operations are sums of 512 products one after the other: their rounding errors of up to 2^-24
/// of the running sum add up to about 2^-24 * sqrt(512) = 1.3e-6 at random, and some ten such sums
/// follow each other, each adding to the error rather than multiplying it.
const ERROR_MAX: f64 = 1e-5;

/// How close to half-way between two int8 codes an activation may be, in codes. The engine's f32
/// activations differ from the oracle's by up to about 1e-6 of the largest, which has code 127; one
/// that is rounded the other way changes the logits by a thousand times [`ERROR_MAX`].
const TIE: f64 = 1e-4;

/// Canvases to look at for one without near ties: one in a dozen has none.
const CANVASES_MAX: u64 = 300;

/// A canvas that no near tie makes ambiguous, and its logits.
fn clear_canvas(model: &TestModel, len: usize) -> (Vec<u32>, Vec<Vec<f64>>) {
    for seed in 0..CANVASES_MAX {
        let ids = model.canvas(len, seed);
        if let Some(logits) = oracle::logits(model, &ids, TIE, None) {
            return (ids, logits);
        }
    }
    panic!("each of {CANVASES_MAX} canvases of {len} has a near tie");
}

fn load(model: &TestModel, rows: usize, threads: usize, isa: Option<&str>) -> Engine {
    load_gguf(&Gguf::from_bytes(model.file.bytes()).unwrap(), rows, threads, isa)
}

fn load_gguf(file: &Gguf, rows: usize, threads: usize, isa: Option<&str>) -> Engine {
    let limits = Limits { logits: true, ..Limits::new(rows, rows, threads) };
    let options = Options { isa: isa.map(str::to_owned), ..Options::default() };
    Engine::load(file, limits, &options, &mut |_, _| ()).unwrap()
}

/// The engine's logits of `rows`, from buffers that were full of NaN.
fn logits(engine: &mut Engine, ids: &[u32], rows: &[u32]) -> Vec<Vec<f32>> {
    engine.poison(u32::MAX);
    engine.logits(ids, rows).unwrap().rows().map(<[f32]>::to_vec).collect()
}

fn all_logits(engine: &mut Engine, ids: &[u32]) -> Vec<Vec<f32>> {
    let rows: Vec<u32> = (0..ids.len() as u32).collect();
    logits(engine, ids, &rows)
}

/// The relative error of each row; NaN counts as infinite.
fn errors(got: &[Vec<f32>], want: &[Vec<f64>]) -> Vec<f64> {
    assert_eq!(got.len(), want.len());
    let error = |(got, want): (&Vec<f32>, &Vec<f64>)| {
        assert_eq!(got.len(), want.len());
        let squares: f64 = got.iter().zip(want).map(|(g, w)| (f64::from(*g) - w).powi(2)).sum();
        let norm: f64 = want.iter().map(|w| w * w).sum();
        let error = (squares / norm).sqrt();
        if error.is_nan() { f64::INFINITY } else { error }
    };
    got.iter().zip(want).map(error).collect()
}

fn largest(errors: &[f64]) -> f64 {
    errors.iter().copied().fold(0.0, f64::max)
}

/// Compares a model's logits on a canvas of `len`.
fn check(what: &str, spec: Spec, len: usize) {
    let model = spec.build(1);
    let (ids, want) = clear_canvas(&model, len);
    let got = all_logits(&mut load(&model, len, 2, None), &ids);
    let error = largest(&errors(&got, &want));
    println!("{what}: error {error:.1e}");
    assert!(error <= ERROR_MAX, "{what}: relative error {error}, at most {ERROR_MAX}");
}
