//! What an instruction set is to the kernels: eight lanes, and an int8 dot product.

/// Lanes of a float vector: fixed, since reductions run over lanes in one order.
pub const LANES: usize = 8;

/// Lanes of a vector of doubles: half of [`LANES`].
pub const DOUBLES: usize = 4;

/// What is added to a number, and taken away again, to round it to the nearest integer, ties to
/// even: from here to 2^53 the f64 are the integers. Half as much again, for negative numbers.
pub const ROUNDER: f64 = (3u64 << 51) as f64;

/// Eight lanes of f32, i32 or 32 bytes; four of f64.
pub trait Simd: Copy + 'static {
    /// Eight f32.
    type F: Copy;
    /// Four f64.
    type D: Copy;
    /// Eight i32, or 16 i16, or 32 bytes.
    type I: Copy;

    /// The same f32 in every lane.
    fn splat(self, x: f32) -> Self::F;
    /// The eight f32 at the start of `src`; panics when there are fewer.
    fn load(self, src: &[f32]) -> Self::F;
    /// Writes the lanes to the start of `dst`; panics when it is shorter than eight.
    fn store(self, dst: &mut [f32], x: Self::F);
    /// `a + b`
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a - b`
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b`
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a / b`
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`, rounded once.
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `c - a * b`, rounded once.
    fn fnma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `if a > b { a } else { b }` per lane: `b` where either is NaN.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// `if a < b { a } else { b }` per lane: `b` where either is NaN.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// Lanes 2i and 2i+1 in each other's place.
    fn swap_pairs(self, a: Self::F) -> Self::F;
    /// The lower four lanes and the upper four, each lane twice.
    fn double_lanes(self, a: Self::F) -> [Self::F; 2];
    /// Lane i of vector j becomes lane j of vector i.
    fn transpose(self, a: [Self::F; 8]) -> [Self::F; 8];
    /// The absolute value.
    fn abs(self, a: Self::F) -> Self::F;
    /// To the nearest integer, ties to even; the value must fit an i32.
    fn to_i32(self, a: Self::F) -> Self::I;
    /// To f32, rounded to nearest.
    fn to_f32(self, a: Self::I) -> Self::F;
    /// `2^n` for n in -126..=127, built from the exponent bits.
    fn exp2_int(self, n: Self::I) -> Self::F;
    /// Bit i is set where lane i of both is equal; NaN equals nothing.
    fn equal_lanes(self, a: Self::F, b: Self::F) -> u32;

    /// The same f64 in every lane.
    fn splat_f64(self, x: f64) -> Self::D;
    /// The lower four lanes and the upper four as f64.
    fn to_f64(self, a: Self::F) -> [Self::D; 2];
    /// Writes four lanes to the start of `dst`; panics when it is shorter.
    fn store_f64(self, dst: &mut [f64], x: Self::D);
    /// `a + b`
    fn add_f64(self, a: Self::D, b: Self::D) -> Self::D;
    /// `a - b`
    fn sub_f64(self, a: Self::D, b: Self::D) -> Self::D;
    /// `a * b`
    fn mul_f64(self, a: Self::D, b: Self::D) -> Self::D;
    /// `a / b`
    fn div_f64(self, a: Self::D, b: Self::D) -> Self::D;
    /// `a * b + c`, rounded once.
    fn fma_f64(self, a: Self::D, b: Self::D, c: Self::D) -> Self::D;
    /// `c - a * b`, rounded once.
    fn fnma_f64(self, a: Self::D, b: Self::D, c: Self::D) -> Self::D;
    /// `if a > b { a } else { b }` per lane: `b` where either is NaN.
    fn max_f64(self, a: Self::D, b: Self::D) -> Self::D;
    /// `if a < b { a } else { b }` per lane: `b` where either is NaN.
    fn min_f64(self, a: Self::D, b: Self::D) -> Self::D;
    /// `2^n` for `t = ROUNDER + n`, n in -1022..=1023, built from the bits.
    fn exp2_f64(self, t: Self::D) -> Self::D;

    /// The same i32 in every lane.
    fn splat_i32(self, x: i32) -> Self::I;
    /// The 32 bytes at `src`.
    fn load_bytes(self, src: &[u8; 32]) -> Self::I;
    /// Writes 32 bytes.
    fn store_bytes(self, dst: &mut [u8; 32], x: Self::I);
    /// The eight i32 at `src`.
    fn load_i32(self, src: &[i32; 8]) -> Self::I;
    /// Writes eight i32.
    fn store_i32(self, dst: &mut [i32; 8], x: Self::I);
    /// The lanes of all four, each in -128..=127, as 32 bytes in order.
    fn pack_bytes(self, a: [Self::I; 4]) -> Self::I;
    /// i32 sum, wrapping.
    fn add_i32(self, a: Self::I, b: Self::I) -> Self::I;
    /// i32 difference, wrapping.
    fn sub_i32(self, a: Self::I, b: Self::I) -> Self::I;
    /// Low half of the i32 product.
    fn mul_i32(self, a: Self::I, b: Self::I) -> Self::I;
    /// Per lane: the sum of the products of its two i16 pairs.
    fn dot_i16(self, a: Self::I, b: Self::I) -> Self::I;
    /// The low nibbles of 32 bytes.
    fn low_nibbles(self, a: Self::I) -> Self::I;
    /// The high nibbles of 32 bytes, shifted down.
    fn high_nibbles(self, a: Self::I) -> Self::I;
    /// `table[a]` for each of 32 bytes, all below 16.
    fn look_up(self, table: &[u8; 16], a: Self::I) -> Self::I;
    /// Byte difference, wrapping.
    fn sub_bytes(self, a: Self::I, b: Self::I) -> Self::I;
    /// The eight unsigned bytes at `src` as i32.
    fn load_u8(self, src: &[u8; 8]) -> Self::I;
    /// The eight signed bytes at `src` as i32.
    fn load_i8(self, src: &[u8; 8]) -> Self::I;
    /// Per lane: the low 16 bits of `low`, then those of `high`.
    fn pair_i16(self, low: Self::I, high: Self::I) -> Self::I;
}

/// A whole instruction set: the vectors and the int8 dot product.
///
/// A dot product not yet scaled lies in a vector of the set's own layout: one i32 a lane, or two
/// i16 a lane that are still to be added. [`Isa::widen`] makes i32 lanes of it.
pub trait Isa: Copy + 'static {
    /// The vectors that go with it.
    type V: Simd;
    /// As options and reports spell it.
    const NAME: &'static str;
    /// Weight codes up to this are taken unsigned; types with larger ones come with their offset
    /// subtracted, as signed bytes, and go through [`Isa::dot_signed`].
    const UNSIGNED_MAX: u32;
    /// Whether the scale factor of [`Isa::widen`] is one i32 a lane (else two equal i16).
    const SCALE_I32: bool;
    /// Tokens that the quantized GEMM takes at a time, 3, 4 or 6, as measured (`README.md` of this
    /// crate).
    const TOKEN_TILE: usize;

    /// The vectors.
    fn v(self) -> Self::V;
    /// How many products of weights up to `code_max` may be added before [`Isa::widen`].
    fn depth(code_max: u32) -> usize;
    /// Per lane: the dot product of 4 unsigned weights and 4 signed activations.
    fn dot(self, w: VecI<Self>, x: VecI<Self>) -> VecI<Self>;
    /// `acc +` the same.
    fn dot_add(self, acc: VecI<Self>, w: VecI<Self>, x: VecI<Self>) -> VecI<Self>;
    /// As [`Isa::dot`] for signed weights in -128..=127 and activations in -127..=127.
    fn dot_signed(self, w: VecI<Self>, x: VecI<Self>) -> VecI<Self>;
    /// The i32 sums times the scales.
    fn widen(self, acc: VecI<Self>, scale: VecI<Self>) -> VecI<Self>;
    /// `acc +` [`Simd::dot_i16`].
    #[inline(always)]
    fn dot_i16_add(self, acc: VecI<Self>, a: VecI<Self>, b: VecI<Self>) -> VecI<Self> {
        self.v().add_i32(acc, self.v().dot_i16(a, b))
    }
    /// Asks for these bytes to be brought to L1; does nothing where there is no such instruction.
    fn prefetch(self, bytes: &[u8]);
    /// The same value, of which the compiler knows nothing; no instruction where it is a register.
    fn opaque(self, x: VecI<Self>) -> VecI<Self>;

    /// Scale factors, one i32 a lane, as [`Isa::widen`] wants them.
    #[inline(always)]
    fn scale_lanes(self, scales: VecI<Self>) -> VecI<Self> {
        if Self::SCALE_I32 { scales } else { self.v().pair_i16(scales, scales) }
    }
}

/// The integer vector of an instruction set.
pub type VecI<I> = <<I as Isa>::V as Simd>::I;
/// The float vector of an instruction set.
pub type VecF<I> = <<I as Isa>::V as Simd>::F;

/// The sum of the lanes, always as ((0+4)+(2+6)) + ((1+5)+(3+7)).
#[inline(always)]
pub fn sum_lanes<S: Simd>(s: S, x: S::F) -> f32 {
    let mut a = [0.0; LANES];
    s.store(&mut a, x);
    ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
}

/// The sum of the lanes, always as (0+2) + (1+3).
#[inline(always)]
pub fn sum_doubles<S: Simd>(s: S, x: S::D) -> f64 {
    let mut a = [0.0; DOUBLES];
    s.store_f64(&mut a, x);
    (a[0] + a[2]) + (a[1] + a[3])
}

/// The largest lane; lanes must not be NaN.
#[inline(always)]
pub fn max_lanes<S: Simd>(s: S, x: S::F) -> f32 {
    let mut a = [0.0; LANES];
    s.store(&mut a, x);
    let mut best = a[0];
    for &v in &a[1..] {
        best = if v > best { v } else { best };
    }
    best
}
