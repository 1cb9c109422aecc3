//! Statistics of a row of logits: its best token, runner-up and sum of exponentials.
//!
//! `cargo bench --bench stats`; a row has LLaDA's or Dream's vocabulary.

mod common;

use common::{Noise, say_hash};
use criterion::{Criterion, Throughput};
use dllm_rt::sample::stats::{peak, weight_sum};
use std::hint::black_box;

fn measure(c: &mut Criterion, small: bool) {
    let vocabularies: &[usize] = if small { &[1000] } else { &[126_464, 152_064] };
    for &vocab in vocabularies {
        let logits: Vec<f32> = Noise(13).floats(vocab).iter().map(|x| 20.0 * x).collect();
        let mut group = c.benchmark_group("row statistics");
        group.throughput(Throughput::Elements(vocab as u64));
        group.bench_function(format!("best token of {vocab}"), |b| {
            b.iter(|| peak(black_box(&logits)))
        });
        let best = peak(&logits);
        group.bench_function(format!("sum of exponentials of {vocab}"), |b| {
            b.iter(|| weight_sum(black_box(&logits), best.logit, 1.0))
        });
        let sum = weight_sum(&logits, best.logit, 1.0);
        let result = [&best.token.to_le_bytes()[..], &sum.to_le_bytes()].concat();
        say_hash(&format!("row statistics of {vocab}"), &result);
    }
}

fn main() {
    common::run(measure);
}
