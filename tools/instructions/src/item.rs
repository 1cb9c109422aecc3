//! The work item that is counted: a panel of 16 rows against a canvas.

use dllm_cpu::Kernels;
use dllm_cpu::dtype::{Dtype, PANEL_ROWS, SUPER_WEIGHTS};
use dllm_cpu::gemm::{Activations, CODE_WORDS, SUM_WORDS, multiply_panel};
use dllm_cpu::ops::Quantize256;
use dllm_cpu::pack::{pack_panel, panel_bytes};
use std::hint::black_box;

/// The types that are counted: nearly all weights of a Q4_K_M file.
pub const TYPES: [&str; 2] = ["Q4_K", "Q6_K"];
/// Output rows.
pub const ROWS: usize = PANEL_ROWS;
/// Columns: LLaDA-8B's width.
pub const COLS: usize = 4096;
/// Tokens of a short chat's canvas.
pub const TOKENS: usize = 148;
/// The instruction set, the latest that valgrind knows.
pub const ISA: &str = "avx2";

/// Multiplies one panel `count` times.
///
/// # Errors
/// A type that is not one of [`TYPES`], or a CPU without the instructions.
pub fn run(name: &str, count: usize) -> Result<(), String> {
    let dtype = Dtype::ALL.into_iter().find(|dtype| dtype.name() == name);
    let dtype = dtype.filter(|_| TYPES.contains(&name));
    let dtype = dtype.ok_or_else(|| format!("`{name}` is not one of {}", TYPES.join(", ")))?;
    let kernels = Kernels::by_name(ISA).ok_or_else(|| format!("this CPU has no {ISA}"))?;
    let blocks = COLS / SUPER_WEIGHTS;
    let mut codes = vec![0; blocks * TOKENS * CODE_WORDS];
    let mut sums = vec![0; blocks * TOKENS * SUM_WORDS];
    let mut scales = vec![0.0; blocks * TOKENS];
    let x: Vec<f32> = (0..SUPER_WEIGHTS).map(|i| (i * 37 % 101) as f32 - 50.0).collect();
    for (at, scale) in scales.iter_mut().enumerate() {
        let codes = &mut codes[at * CODE_WORDS..];
        let sums = &mut sums[at * SUM_WORDS..];
        *scale = kernels.run(Quantize256 { x: &x, codes, sums });
    }
    let x = Activations {
        codes: &codes,
        sums: &sums,
        scales: &scales,
        tokens: TOKENS,
        capacity: TOKENS,
    };
    let panel = panel(dtype);
    let mut out = vec![0.0; TOKENS * ROWS];
    for _ in 0..count {
        multiply_panel(kernels, dtype, black_box(&panel), x, &mut out);
    }
    black_box(out);
    Ok(())
}

/// A panel of codes of every value under scales that are finite.
fn panel(dtype: Dtype) -> Vec<u8> {
    let block_bytes = dtype.block_bytes();
    let mut row: Vec<u8> = (0..COLS / SUPER_WEIGHTS * block_bytes).map(|i| i as u8).collect();
    for block in row.chunks_exact_mut(block_bytes) {
        // f16 scales of 2^-8: Q6_K has its own at the end, Q4_K begins with two.
        let at = if dtype == Dtype::Q6_K { block_bytes - 2 } else { 0 };
        block[at..at + 2].copy_from_slice(&0x1c00_u16.to_le_bytes());
        if dtype != Dtype::Q6_K {
            block[2..4].copy_from_slice(&0x1c00_u16.to_le_bytes());
        }
    }
    let mut packed = vec![0; panel_bytes(dtype, COLS)];
    pack_panel(dtype, &[row.as_slice(); ROWS], COLS, &mut packed);
    packed
}
