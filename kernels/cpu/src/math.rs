//! Elementary functions on vectors, the same bits in every instruction set.

use crate::isa::{ROUNDER, Simd};

/// Where `exp` stops: below, the result is not a normal number and counts as zero.
const EXP_MIN: f32 = -87.0;
/// Above, the result would not be finite.
const EXP_MAX: f32 = 88.0;
/// ln 2 in two parts; `n * LN2_HIGH` is exact for the exponents that occur (it has 9 bits).
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// `e^x`, relative error below 2 ulp; 0 below -87, capped above 88, NaN gives a finite number.
///
/// With `n = round(x / ln 2)` and `r = x - n ln 2`, |r| <= 0.347: the Taylor series of `e^r` to
/// the seventh power leaves less than 0.347^8 / 8! = 6e-9. Then the exponent is put together.
#[inline(always)]
pub fn exp<S: Simd>(s: S, x: S::F) -> S::F {
    // min and max return their second argument for NaN.
    let value = exp_inside(s, s.min(s.max(x, s.splat(EXP_MIN)), s.splat(EXP_MAX)));
    // 1 above the range's lower end, 0 at or below it, without a comparison.
    let above = s.mul(s.max(s.sub(x, s.splat(EXP_MIN)), s.splat(0.0)), s.splat(f32::MAX));
    s.mul(value, s.min(above, s.splat(1.0)))
}

/// `e^x` for x up to 88: as [`exp`], but not below `e^-87`, and so in fewer operations.
#[inline(always)]
pub fn exp_nonzero<S: Simd>(s: S, x: S::F) -> S::F {
    exp_inside(s, s.max(x, s.splat(EXP_MIN)))
}

/// `e^x` inside the range.
#[inline(always)]
fn exp_inside<S: Simd>(s: S, clamped: S::F) -> S::F {
    let n = s.to_i32(s.mul(clamped, s.splat(core::f32::consts::LOG2_E)));
    let whole = s.to_f32(n);
    let r = s.fnma(whole, s.splat(LN2_HIGH), clamped);
    let r = s.fnma(whole, s.splat(LN2_LOW), r);
    let mut p = s.splat(1.0 / 5040.0);
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = s.fma(p, r, s.splat(c));
    }
    s.mul(p, s.exp2_int(n))
}

/// `x / (1 + e^-x)`, the SiLU activation; within 6e-37 of zero below -88, where the exponential
/// is capped: there -88 stands for x, which keeps a huge negative x from showing through.
#[inline(always)]
pub fn silu<S: Simd>(s: S, x: S::F) -> S::F {
    // max returns its second argument for NaN, so a NaN stays one.
    let capped = s.max(s.splat(-EXP_MAX), x);
    let power = exp_nonzero(s, s.sub(s.splat(0.0), capped));
    s.div(capped, s.add(s.splat(1.0), power))
}

/// Where [`exp_f64`] stops: even 2^20 terms this small add less than 2^-72 to a sum of weights,
/// which is 1 at least.
pub const WEIGHT_MIN: f64 = -64.0;
/// ln 2 in two parts; the first has 21 trailing zero bits, so that its product with n is exact.
const LN2_HIGH_F64: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LOW_F64: f64 = 1.908_214_929_270_587_7e-10;

/// `e^x` for x up to 64, relative error below 1e-14; 0 at and below [`WEIGHT_MIN`] and for NaN.
///
/// As [`exp`]; the series ends with the eleventh power: 0.347^12 / 12! = 6.4e-15.
#[inline(always)]
pub fn exp_f64<S: Simd>(s: S, x: S::D) -> S::D {
    // max returns its second argument for NaN.
    let clamped = s.max_f64(x, s.splat_f64(WEIGHT_MIN));
    let rounder = s.splat_f64(ROUNDER);
    let shifted = s.fma_f64(clamped, s.splat_f64(std::f64::consts::LOG2_E), rounder);
    let n = s.sub_f64(shifted, rounder);
    let r = s.fnma_f64(n, s.splat_f64(LN2_HIGH_F64), clamped);
    let r = s.fnma_f64(n, s.splat_f64(LN2_LOW_F64), r);
    let mut p = s.splat_f64(INVERSE_FACTORIALS[0]);
    for c in &INVERSE_FACTORIALS[1..] {
        p = s.fma_f64(p, r, s.splat_f64(*c));
    }
    let value = s.mul_f64(p, s.exp2_f64(shifted));
    // 1 above the range's lower end, 0 at or below it, without a comparison.
    let above = s.max_f64(s.sub_f64(x, s.splat_f64(WEIGHT_MIN)), s.splat_f64(0.0));
    s.mul_f64(value, s.min_f64(s.mul_f64(above, s.splat_f64(f64::MAX)), s.splat_f64(1.0)))
}

/// 1/11!, 1/10!, .. 1/0!.
const INVERSE_FACTORIALS: [f64; 12] = {
    let mut values = [1.0; 12];
    let (mut at, mut factorial) = (11, 1.0);
    while at > 0 {
        at -= 1;
        factorial *= (11 - at) as f64;
        values[at] = 1.0 / factorial;
    }
    values
};
