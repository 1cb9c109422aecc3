//! Attention of 16 queries of a head over a canvas, one thread: `cargo bench --bench attention`.
//!
//! Elements are multiply-adds of queries with keys and of weights with values.

mod common;

use common::{Noise, say_hash_of_floats};
use criterion::{Criterion, Throughput};
use dllm_cpu::ops::{Attention, QUERY_TILE, attention_scratch_floats};
use std::hint::black_box;

/// Of LLaDA and Dream alike.
const HEAD_WIDTH: usize = 128;

fn measure(c: &mut Criterion, small: bool) {
    let canvases: &[usize] = if small { &[37] } else { &[148, 512, 2048] };
    for kernels in common::kernels(small) {
        for &keys in canvases {
            let mut noise = Noise(3);
            let q = noise.floats(QUERY_TILE * HEAD_WIDTH);
            let k = noise.floats(keys * HEAD_WIDTH);
            let v = noise.floats(keys * HEAD_WIDTH);
            let mut scratch = vec![0.0; attention_scratch_floats(HEAD_WIDTH)];
            let mut out = vec![0.0; QUERY_TILE * HEAD_WIDTH];
            let mut group = c.benchmark_group("attention");
            group.throughput(Throughput::Elements((2 * QUERY_TILE * keys * HEAD_WIDTH) as u64));
            let name = format!("{keys} keys {}", kernels.name());
            group.bench_function(&name, |b| {
                b.iter(|| {
                    kernels.run(Attention {
                        q: black_box(&q),
                        scale: 1.0,
                        k: &k,
                        key_stride: HEAD_WIDTH,
                        v: &v,
                        value_stride: HEAD_WIDTH,
                        keys,
                        head_width: HEAD_WIDTH,
                        scratch: &mut scratch,
                        out: &mut out,
                    })
                })
            });
            say_hash_of_floats(&name, &out);
        }
    }
}

fn main() {
    common::run(measure);
}
