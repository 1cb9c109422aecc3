//! Statistics of a row of logits: its best token, runner-up and sum of exponentials.
//!
//! `cargo bench --bench stats`; a row has LLaDA's or Dream's vocabulary.

mod common;

use common::{Noise, say_hash};
use criterion::{Criterion, Throughput};
use dllm_rt::sample::stats::{row, weights};
use std::hint::black_box;

fn measure(c: &mut Criterion, small: bool) {
    let vocabularies: &[usize] = if small { &[1000] } else { &[126_464, 152_064] };
    for &vocab in vocabularies {
        let logits: Vec<f32> = Noise(13).floats(vocab).iter().map(|x| 20.0 * x).collect();
        let mut group = c.benchmark_group("row statistics");
        group.throughput(Throughput::Elements(vocab as u64));
        for kernels in common::kernels(small) {
            let name = kernels.name();
            group.bench_function(format!("statistics of {vocab}, {name}"), |b| {
                b.iter(|| row(kernels, black_box(&logits)))
            });
            let best = row(kernels, &logits);
            let weigh = || -> f64 { weights(kernels, &logits, best.peak.logit, 0.7).sum() };
            group.bench_function(format!("weights of {vocab}, {name}"), |b| b.iter(weigh));
            let numbers = [best.sum, weigh(), f64::from(best.peak.token)];
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            say_hash(&format!("row statistics of {vocab}, {name}"), &bytes);
        }
    }
}

fn main() {
    common::run(measure);
}
