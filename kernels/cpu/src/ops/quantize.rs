//! Activations to int8: round half to even of `x * (127 / max |x|)`, clamped to -127..=127.
//!
//! A block whose largest magnitude is zero, or so small that `127 / max` overflows, gets scale 0
//! and zero codes. Every code path shares this rule. The clamp comes before the conversion to
//! integers, so that a NaN, too, gives a code in range: -127.

use crate::dtype::SUPER_WEIGHTS;
use crate::gemm::{CODE_WORDS, SUM_WORDS};
use crate::isa::{Isa, LANES, Simd, max_lanes};
use crate::table::Op;

/// The largest code: symmetric, so that a sign change cannot overflow.
const CODE_MAX: f32 = 127.0;
/// Activations under one scale where the weights have one scale per 32.
const SUB: usize = 32;

/// Quantizes up to 256 values with one scale. Returns the scale.
pub struct Quantize256<'a> {
    /// 1..=256 values, a multiple of eight; the rest of the block counts as zero.
    pub x: &'a [f32],
    /// Four codes a word.
    pub codes: &'a mut [i32],
    /// Sums of codes, as in [`crate::gemm::Activations::sums`].
    pub sums: &'a mut [i32],
}

impl Op for Quantize256<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f32 {
        let codes = &mut self.codes[..CODE_WORDS];
        let scale = quantize(isa, self.x, codes);
        sum_codes(codes, self.sums);
        scale
    }
}

/// Quantizes up to 256 values with one scale per 32.
pub struct Quantize32<'a> {
    /// 1..=256 values, a multiple of eight; the rest of the block counts as zero.
    pub x: &'a [f32],
    /// Four codes a word.
    pub codes: &'a mut [i32],
    /// Sums of codes, as in [`crate::gemm::Activations::sums`].
    pub sums: &'a mut [i32],
    /// `[8]` scales, overwritten.
    pub scales: &'a mut [f32],
}

impl Op for Quantize32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let codes = &mut self.codes[..CODE_WORDS];
        let blocks = codes.chunks_exact_mut(SUB / 4).zip(&mut self.scales[..SUPER_WEIGHTS / SUB]);
        for (i, (codes, scale)) in blocks.enumerate() {
            let start = (i * SUB).min(self.x.len());
            let end = ((i + 1) * SUB).min(self.x.len());
            *scale = quantize(isa, &self.x[start..end], codes);
        }
        sum_codes(codes, self.sums);
    }
}

/// Fills `codes`, zero beyond `x`; returns the scale.
#[inline(always)]
fn quantize<I: Isa>(isa: I, x: &[f32], codes: &mut [i32]) -> f32 {
    let s = isa.v();
    let mut largest = s.splat(0.0);
    for x in x.chunks_exact(LANES) {
        largest = s.max(s.abs(s.load(x)), largest);
    }
    let largest = max_lanes(s, largest);
    let factor = CODE_MAX / largest;
    codes.fill(0);
    // Also true for largest = 0, where the factor is infinite.
    if !factor.is_finite() {
        return 0.0;
    }
    let (factor, low, high) = (s.splat(factor), s.splat(-CODE_MAX), s.splat(CODE_MAX));
    for (x, words) in x.chunks_exact(LANES).zip(codes.chunks_exact_mut(2)) {
        let scaled = s.min(s.max(s.mul(s.load(x), factor), low), high);
        let mut lanes = [0; LANES];
        s.store_i32(&mut lanes, s.to_i32(scaled));
        for (word, c) in words.iter_mut().zip(lanes.as_chunks::<4>().0) {
            *word = i32::from_le_bytes([c[0] as u8, c[1] as u8, c[2] as u8, c[3] as u8]);
        }
    }
    largest / CODE_MAX
}

/// The sums of 16 and of 32 codes, two int16 a word.
#[inline(always)]
fn sum_codes(codes: &[i32], sums: &mut [i32]) {
    let sums = &mut sums[..SUM_WORDS];
    let mut of_16 = [0i32; SUPER_WEIGHTS / 16];
    for (sum, words) in of_16.iter_mut().zip(codes.chunks_exact(4)) {
        for word in words {
            *sum += word.to_le_bytes().iter().map(|&b| i32::from(b as i8)).sum::<i32>();
        }
    }
    let pair = |low: i32, high: i32| (low & 0xffff) | (high << 16);
    sums.fill(0);
    for p in 0..8 {
        sums[p] = pair(of_16[2 * p], of_16[2 * p + 1]);
    }
    for p in 0..4 {
        let of_32 = |i: usize| of_16[2 * i] + of_16[2 * i + 1];
        sums[8 + p] = pair(of_32(2 * p), of_32(2 * p + 1));
    }
}
