//! The quantized GEMM alone: panels of 16 rows against a canvas, one thread.
//!
//! `cargo bench --bench qgemm` measures every instruction set that the CPU has on LLaDA's width;
//! under `cargo test` it runs once, small. Each case prints a hash of its result, so that two runs
//! that differ in speed can be seen to have done the same work.

use criterion::{Criterion, Throughput};
use dllm_cpu::Kernels;
use dllm_cpu::dtype::{Dtype, PANEL_ROWS, SUPER_WEIGHTS};
use dllm_cpu::gemm::{Activations, CODE_WORDS, SUM_WORDS, multiply_panel};
use dllm_cpu::ops::{Quantize32, Quantize256};
use dllm_cpu::pack::{pack_panel, panel_bytes};
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
            let x: Vec<f32> = (0..SUPER_WEIGHTS).map(|_| noise.next() - 0.5).collect();
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

/// Numbers in 0..1 that are the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// Panels of random codes; the scales (f16) are made small and finite.
fn panels(dtype: Dtype, panels: usize, cols: usize) -> Vec<u8> {
    let mut noise = Noise(dtype.block_bytes() as u64);
    let row_bytes = dtype.row_bytes(cols).unwrap();
    let mut packed = vec![0; panels * panel_bytes(dtype, cols)];
    for panel in packed.chunks_exact_mut(panel_bytes(dtype, cols)) {
        let mut rows = vec![vec![0u8; row_bytes]; PANEL_ROWS];
        for block in rows.iter_mut().flat_map(|r| r.chunks_exact_mut(dtype.block_bytes())) {
            block.iter_mut().for_each(|b| *b = (noise.next() * 256.0) as u8);
            // 0x1c00 is 2^-8; Q6_K has its scale at the end, the others at the start.
            let at = if dtype == Dtype::Q6_K { block.len() - 2 } else { 0 };
            block[at..at + 2].copy_from_slice(&[0, 0x1c]);
            if matches!(dtype, Dtype::Q4_K | Dtype::Q5_K) {
                block[2..4].copy_from_slice(&[0, 0x1c]);
            }
        }
        let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        pack_panel(dtype, &rows, cols, panel);
    }
    packed
}

fn measure(c: &mut Criterion, small: bool) {
    let (cols, count, canvases): (_, _, &[usize]) =
        if small { (512, 1, &[5]) } else { (4096, 16, &[32, 148, 512]) };
    for kernels in Kernels::all().filter(|k| small || k.name() != "scalar") {
        for &tokens in canvases {
            let canvas = Canvas::new(kernels, tokens, cols);
            for dtype in DTYPES {
                let packed = panels(dtype, count, cols);
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
                println!("{name}: hash {:016x}", hash(&out));
            }
        }
    }
}

fn hash(values: &[f32]) -> u64 {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    xxhash_rust::xxh3::xxh3_64(&bytes)
}

fn main() {
    // `cargo test` passes no `--bench`.
    let small = !std::env::args().any(|a| a == "--bench");
    let mut criterion = Criterion::default().configure_from_args();
    measure(&mut criterion, small);
    criterion.final_summary();
}
