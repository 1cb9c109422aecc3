//! The quantized GEMM alone: panels of 16 rows against a canvas, one thread.
//!
//! `cargo bench --bench qgemm` measures every instruction set that the CPU has on LLaDA's width;
//! under `cargo test` it runs once, small. Each case prints a hash of its result. For shares of
//! the registers-only peak and for several threads there is `dllm-rt bench`.

mod common;

use common::{Noise, file_rows, pack, say_hash_of_floats};
use criterion::{Criterion, Throughput};
use dllm_cpu::Kernels;
use dllm_cpu::dtype::{Dtype, PANEL_ROWS, SUPER_WEIGHTS};
use dllm_cpu::gemm::{Activations, CODE_WORDS, SUM_WORDS, multiply_panel};
use dllm_cpu::ops::{Quantize32, Quantize256};
use dllm_cpu::pack::panel_bytes;
use std::hint::black_box;

const DTYPES: [Dtype; 4] = [Dtype::Q4_K, Dtype::Q6_K, Dtype::Q5_K, Dtype::Q8_0];

/// Rows of a canvas, quantized both ways.
struct Canvas {
    tokens: usize,
    codes: [Vec<i32>; 2],
    sums: [Vec<i32>; 2],
    scales: [Vec<f32>; 2],
}

impl Canvas {
    fn new(kernels: Kernels, tokens: usize, cols: usize) -> Canvas {
        let blocks = cols / SUPER_WEIGHTS;
        let words = |n: usize| vec![0i32; blocks * tokens * n];
        let mut canvas = Canvas {
            tokens,
            codes: [words(CODE_WORDS), words(CODE_WORDS)],
            sums: [words(SUM_WORDS), words(SUM_WORDS)],
            scales: [vec![0.0; blocks * tokens], vec![0.0; 8 * blocks * tokens]],
        };
        let mut noise = Noise(7);
        for at in 0..blocks * tokens {
            let x = noise.floats(SUPER_WEIGHTS);
            let [codes_256, codes_32] = &mut canvas.codes;
            let [sums_256, sums_32] = &mut canvas.sums;
            let (codes, sums) =
                (&mut codes_256[at * CODE_WORDS..], &mut sums_256[at * SUM_WORDS..]);
            canvas.scales[0][at] = kernels.run(Quantize256 { x: &x, codes, sums });
            let (codes, sums) = (&mut codes_32[at * CODE_WORDS..], &mut sums_32[at * SUM_WORDS..]);
            let scales = &mut canvas.scales[1][8 * at..];
            kernels.run(Quantize32 { x: &x, codes, sums, scales });
        }
        canvas
    }

    fn activations(&self, dtype: Dtype) -> Activations<'_> {
        let form = usize::from(dtype.block_weights() < SUPER_WEIGHTS);
        Activations {
            codes: &self.codes[form],
            sums: &self.sums[form],
            scales: &self.scales[form],
            tokens: self.tokens,
            capacity: self.tokens,
        }
    }
}

fn measure(c: &mut Criterion, small: bool) {
    let (cols, count, canvases): (_, _, &[usize]) =
        if small { (512, 1, &[5]) } else { (4096, 16, &[32, 148, 512]) };
    for kernels in common::kernels(small) {
        for &tokens in canvases {
            let canvas = Canvas::new(kernels, tokens, cols);
            for dtype in DTYPES {
                let mut packed = vec![0; count * panel_bytes(dtype, cols)];
                pack(dtype, &file_rows(dtype, count * PANEL_ROWS, cols), cols, &mut packed);
                let mut out = vec![0.0f32; tokens * PANEL_ROWS];
                let mut group = c.benchmark_group("qgemm");
                group.throughput(Throughput::Elements((count * PANEL_ROWS * cols * tokens) as u64));
                let name = format!("{dtype} {tokens} tokens {}", kernels.name());
                group.bench_function(&name, |b| {
                    b.iter(|| {
                        for panel in packed.chunks_exact(panel_bytes(dtype, cols)) {
                            let x = canvas.activations(dtype);
                            multiply_panel(kernels, dtype, panel, black_box(x), &mut out);
                        }
                    })
                });
                say_hash_of_floats(&name, &out);
            }
        }
    }
}

fn main() {
    common::run(measure);
}
