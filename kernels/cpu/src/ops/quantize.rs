//! Activations to int8: round half to even of `x * (127 / max |x|)`, clamped to -127..=127.
//!
//! A block whose largest magnitude is zero, or so small that `127 / max` overflows, gets scale 0
//! and zero codes; if a NaN is among them scale NaN, so that it is not lost on the way to the
//! logits. Every code path shares this rule. The clamp comes before the conversion to integers, so
//! that a NaN beside numbers, too, gives a code in range: -127.

use crate::dtype::SUPER_WEIGHTS;
use crate::gemm::{CODE_WORDS, SUM_WORDS};
use crate::isa::{Isa, LANES, Simd, VecF, VecI, max_lanes};
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
        sum_codes(isa, codes, self.sums);
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
        sum_codes(isa, codes, self.sums);
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
    // Also true for largest = 0, where the factor is infinite, and where all are NaN.
    if !factor.is_finite() {
        codes.fill(0);
        return if x.iter().any(|x| x.is_nan()) { f32::NAN } else { 0.0 };
    }
    for (at, words) in codes.as_chunks_mut::<{ SUB / 4 }>().0.iter_mut().enumerate() {
        let mut lanes = [s.splat_i32(0); SUB / LANES];
        let x = &x[x.len().min(at * SUB)..];
        for (lanes, x) in lanes.iter_mut().zip(x.chunks_exact(LANES)) {
            *lanes = code(isa, s.load(x), factor);
        }
        s.store_i32(words, s.pack_bytes(lanes));
    }
    largest / CODE_MAX
}

#[inline(always)]
fn code<I: Isa>(isa: I, x: VecF<I>, factor: f32) -> VecI<I> {
    let s = isa.v();
    let scaled = s.mul(x, s.splat(factor));
    s.to_i32(s.min(s.max(scaled, s.splat(-CODE_MAX)), s.splat(CODE_MAX)))
}

/// The sums of 16 and of 32 codes, two int16 a word.
#[inline(always)]
fn sum_codes<I: Isa>(isa: I, codes: &[i32], sums: &mut [i32]) {
    let s = isa.v();
    let sums = &mut sums[..SUM_WORDS];
    // Four ones a word: the dot product with them is the sum of the word's codes.
    let (ones, once) = (s.splat_i32(0x0101_0101), isa.scale_lanes(s.splat_i32(1)));
    let mut of_16 = [0i32; SUPER_WEIGHTS / 16];
    for (sums, words) in of_16.chunks_exact_mut(2).zip(codes.as_chunks::<LANES>().0) {
        let mut of_4 = [0; LANES];
        s.store_i32(&mut of_4, isa.widen(isa.dot(ones, s.load_i32(words)), once));
        for (sum, of_4) in sums.iter_mut().zip(of_4.as_chunks::<4>().0) {
            *sum = (of_4[0] + of_4[1]) + (of_4[2] + of_4[3]);
        }
    }
    let pair = |low: i32, high: i32| (low & 0xffff) | (high << 16);
    for p in 0..8 {
        sums[p] = pair(of_16[2 * p], of_16[2 * p + 1]);
    }
    for p in 0..4 {
        let of_32 = |i: usize| of_16[2 * i] + of_16[2 * i + 1];
        sums[8 + p] = pair(of_32(2 * p), of_32(2 * p + 1));
    }
    sums[12..].fill(0);
}
