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
            let mut codes = all.codes[t].clone();
            codes.resize(supers * 256, 0);
            for (sb, codes) in codes.chunks_exact(256).enumerate() {
                let at = sb * capacity + t;
                for (word, four) in all.words[at * 64..].iter_mut().zip(codes.as_chunks().0) {
                    *word = i32::from_le_bytes(four.map(i8::cast_unsigned));
                }
                all.sums[at * 16..][..16].copy_from_slice(&sums(codes, NO_SUMS));
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

/// Sums of 16 and of 32 codes, two int16 a word, the first in its low half; the last four words,
/// which are not looked at, are `unused`.
pub fn sums(codes: &[i8], unused: i32) -> Vec<i32> {
    let runs = |n: usize| codes.chunks_exact(n).map(|run| run.iter().map(|&c| i64::from(c)).sum());
    let all: Vec<i64> = runs(16).chain(runs(32)).collect();
    let words = all.chunks_exact(2).map(|pair| {
        let [low, high] = [pair[0], pair[1]].map(|sum| i32::from(i16::try_from(sum).unwrap()));
        (low & 0xffff) | high << 16
    });
    words.chain([unused; 4]).collect()
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
