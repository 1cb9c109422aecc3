//! The operators over rows: norm with quantization, rotary positions, SiLU times up.
//!
//! `cargo bench --bench norms`; elements are those of a row of LLaDA's width.

mod common;

use common::{Noise, say_hash, say_hash_of_floats};
use criterion::{Criterion, Throughput};
use dllm_cpu::Kernels;
use dllm_cpu::dtype::SUPER_WEIGHTS;
use dllm_cpu::gemm::{CODE_WORDS, SUM_WORDS};
use dllm_cpu::ops::{Quantize32, Quantize256, RmsNorm, Rope, RopeStyle, SiluMul};
use std::hint::black_box;

const HEAD_WIDTH: usize = 128;

fn measure(c: &mut Criterion, small: bool) {
    let width = if small { 512 } else { 4096 };
    for kernels in common::kernels(small) {
        norm(c, kernels, width);
        rope(c, kernels, width);
        silu(c, kernels, width);
    }
}

/// A row normalized and then quantized with one scale per 256, or per 32.
fn norm(c: &mut Criterion, kernels: Kernels, width: usize) {
    let mut noise = Noise(5);
    let (x, weight, mut y) = (noise.floats(width), noise.floats(width), vec![0.0; width]);
    let blocks = width / SUPER_WEIGHTS;
    let (mut codes, mut sums) = (vec![0; blocks * CODE_WORDS], vec![0; blocks * SUM_WORDS]);
    let mut group = c.benchmark_group("norm and quantize");
    group.throughput(Throughput::Elements(width as u64));
    for per_256 in [true, false] {
        let name = format!("one scale per {} {}", if per_256 { 256 } else { 32 }, kernels.name());
        group.bench_function(&name, |b| {
            b.iter(|| {
                kernels.run(RmsNorm {
                    x: black_box(&x),
                    weight: &weight,
                    epsilon: 1e-5,
                    y: &mut y,
                });
                let rows = y.chunks_exact(SUPER_WEIGHTS).zip(codes.chunks_exact_mut(CODE_WORDS));
                for ((x, codes), sums) in rows.zip(sums.chunks_exact_mut(SUM_WORDS)) {
                    if per_256 {
                        black_box(kernels.run(Quantize256 { x, codes, sums }));
                    } else {
                        let mut scales = [0.0; 8];
                        kernels.run(Quantize32 { x, codes, sums, scales: &mut scales });
                        black_box(scales);
                    }
                }
            })
        });
        let bytes: Vec<u8> = codes.iter().flat_map(|word: &i32| word.to_le_bytes()).collect();
        say_hash(&name, &bytes);
    }
}

/// All heads of a row turned.
fn rope(c: &mut Criterion, kernels: Kernels, width: usize) {
    let mut group = c.benchmark_group("rope");
    group.throughput(Throughput::Elements(width as u64));
    // Angles of a sine and a cosine of the same size: nothing grows, however often it is turned.
    let turn = [std::f32::consts::FRAC_1_SQRT_2; HEAD_WIDTH / 2];
    for (style, style_name) in [(RopeStyle::Norm, "neighbours"), (RopeStyle::Neox, "halves")] {
        let mut x = Noise(9).floats(width);
        let name = format!("{style_name} {}", kernels.name());
        let turned = |x: &mut [f32]| {
            kernels.run(Rope { x, head_width: HEAD_WIDTH, cos: &turn, sin: &turn, style })
        };
        let mut once = x.clone();
        turned(&mut once);
        say_hash_of_floats(&name, &once);
        group.bench_function(&name, |b| b.iter(|| turned(black_box(&mut x))));
    }
}

/// SiLU of one row times another.
fn silu(c: &mut Criterion, kernels: Kernels, width: usize) {
    let mut noise = Noise(11);
    let (gate, up) = (noise.floats(width), noise.floats(width));
    let mut out = gate.clone();
    let mut group = c.benchmark_group("silu");
    group.throughput(Throughput::Elements(width as u64));
    group.bench_function(kernels.name(), |b| {
        b.iter(|| {
            out.copy_from_slice(&gate);
            kernels.run(SiluMul { gate: &mut out, up: black_box(&up) });
        })
    });
    say_hash_of_floats(&format!("silu {}", kernels.name()), &out);
}

fn main() {
    common::run(measure);
}
