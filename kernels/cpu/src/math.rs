//! Elementary functions on vectors, the same bits in every instruction set.

use crate::isa::Simd;

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
    let clamped = s.min(s.max(x, s.splat(EXP_MIN)), s.splat(EXP_MAX));
    let n = s.to_i32(s.mul(clamped, s.splat(core::f32::consts::LOG2_E)));
    let whole = s.to_f32(n);
    let r = s.fnma(whole, s.splat(LN2_HIGH), clamped);
    let r = s.fnma(whole, s.splat(LN2_LOW), r);
    let mut p = s.splat(1.0 / 5040.0);
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = s.fma(p, r, s.splat(c));
    }
    let value = s.mul(p, s.exp2_int(n));
    // 1 above the range's lower end, 0 at or below it, without a comparison.
    let above = s.mul(s.max(s.sub(x, s.splat(EXP_MIN)), s.splat(0.0)), s.splat(f32::MAX));
    s.mul(value, s.min(above, s.splat(1.0)))
}

/// `x / (1 + e^-x)`, the SiLU activation; within 6e-37 of zero below -88, where the exponential
/// is capped: there -88 stands for x, which keeps a huge negative x from showing through.
#[inline(always)]
pub fn silu<S: Simd>(s: S, x: S::F) -> S::F {
    let one = s.splat(1.0);
    // max returns its second argument for NaN, so a NaN stays one.
    let capped = s.max(s.splat(-EXP_MAX), x);
    s.div(capped, s.add(one, exp(s, s.sub(s.splat(0.0), x))))
}
