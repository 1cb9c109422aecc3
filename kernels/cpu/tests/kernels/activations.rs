//! Quantized activations built from their codes, in the layout that the GEMM reads.

use crate::blocks::Shape;
use crate::random::Random;
use dllm_cpu::Kernels;
use dllm_cpu::dtype::Dtype;
use dllm_cpu::gemm::{Activations, multiply_panel};

/// Codes and scales by token, and the buffers that hold them for a kernel.
pub struct Tokens {
    /// `[token][column]`
    pub codes: Vec<Vec<i8>>,
    /// `[token][block of 256 or 32]`
    pub factors: Vec<Vec<f32>>,
    pub capacity: usize,
    pub words: Vec<i32>,
    pub sums: Vec<i32>,
    pub scales: Vec<f32>,
}

/// Two bytes of -128, which no quantized activation has.
const NO_CODES: i32 = 0x8080_8080_u32.cast_signed();
/// Sums that would be seen in any result.
const NO_SUMS: i32 = 0x7ead_7bee;

impl Tokens {
    /// Lays out codes (columns a multiple of 32) and scales (one each `block` columns) for
    /// `capacity` tokens; what the GEMM has no business with is poisoned.
    pub fn new(
        codes: Vec<Vec<i8>>,
        factors: Vec<Vec<f32>>,
        block: usize,
        capacity: usize,
    ) -> Tokens {
        let supers = codes[0].len().div_ceil(256);
        let blocks = 256 / block;
        let mut all = Tokens {
            capacity,
            words: vec![NO_CODES; supers * capacity * 64],
            sums: vec![NO_SUMS; supers * capacity * 16],
            scales: vec![f32::NAN; supers * capacity * blocks],
            codes,
            factors,
        };
        for t in 0..all.codes.len() {
            for sb in 0..supers {
                let at = sb * capacity + t;
                let code = |k: usize| all.codes[t].get(sb * 256 + k).copied().unwrap_or(0);
                for k in 0..64 {
                    let four = [0, 1, 2, 3].map(|b| code(4 * k + b).cast_unsigned());
                    all.words[at * 64 + k] = i32::from_le_bytes(four);
                }
                let sum = |from: usize, n: usize| -> i32 {
                    (from..from + n).map(|k| i32::from(code(k))).sum()
                };
                for pair in 0..8 {
                    let word = two_shorts(sum(pair * 32, 16), sum(pair * 32 + 16, 16));
                    all.sums[at * 16 + pair] = word;
                }
                for pair in 0..4 {
                    let word = two_shorts(sum(pair * 64, 32), sum(pair * 64 + 32, 32));
                    all.sums[at * 16 + 8 + pair] = word;
                }
                for b in 0..blocks {
                    let factor = all.factors[t].get(sb * blocks + b).copied();
                    all.scales[at * blocks + b] = factor.unwrap_or(0.0);
                }
            }
        }
        all
    }

    /// Random codes up to the extremes and random scales.
    pub fn random(
        random: &mut Random,
        shape: &Shape,
        cols: usize,
        tokens: usize,
        capacity: usize,
    ) -> Tokens {
        let block = shape.activation_block();
        let codes = (0..tokens)
            .map(|_| (0..cols).map(|_| random.integer(-127, 127) as i8).collect::<Vec<_>>());
        let codes = codes.collect();
        let factors = (0..tokens)
            .map(|_| random.floats(cols.div_ceil(block), 0.1))
            .map(|row| row.into_iter().map(|x| x.abs() + 1e-4).collect::<Vec<_>>());
        Tokens::new(codes, factors.collect(), block, capacity)
    }

    /// As a kernel takes them.
    pub fn view(&self) -> Activations<'_> {
        Activations {
            codes: &self.words,
            sums: &self.sums,
            scales: &self.scales,
            tokens: self.codes.len(),
            capacity: self.capacity,
        }
    }
}

/// Two int16 in a word, the first in its low half.
fn two_shorts(low: i32, high: i32) -> i32 {
    let [low, high] = [low, high].map(|x| i16::try_from(x).unwrap().to_le_bytes());
    i32::from_le_bytes([low[0], low[1], high[0], high[1]])
}

/// `[tokens][16]` products, from a buffer that is longer and full of NaN.
pub fn multiply(kernels: Kernels, dtype: Dtype, panel: &[u8], x: &Tokens) -> Vec<f32> {
    let used = x.codes.len() * 16;
    let mut out = vec![f32::NAN; used + 16];
    multiply_panel(kernels, dtype, panel, x.view(), &mut out);
    assert!(out[used..].iter().all(|x| x.is_nan()), "{dtype}: written beyond the last token");
    out.truncate(used);
    out
}
