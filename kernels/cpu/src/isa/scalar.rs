//! Portable lanes: the definition that the other instruction sets must match bit for bit.

use super::simd::{DOUBLES, Isa, LANES, Simd};

/// Runs on every CPU.
#[derive(Clone, Copy, Debug)]
pub struct Scalar(());

impl Scalar {
    /// Always there.
    pub fn new() -> Option<Self> {
        Some(Self(()))
    }
}

/// Lanes of any kind from a function of the lane.
#[inline(always)]
fn lanes<T: Copy + Default, const N: usize>(f: impl Fn(usize) -> T) -> [T; N] {
    let mut out = [T::default(); N];
    for (i, o) in out.iter_mut().enumerate() {
        *o = f(i);
    }
    out
}

/// Operations lane by lane: in the body an argument stands for its lane at hand.
macro_rules! lane_by_lane {
    ($(fn $name:ident($($arg:ident: $type:ident),+) -> $out:ident $body:block)+) => {$(
        #[inline(always)]
        fn $name(self, $($arg: Self::$type),+) -> Self::$out {
            lanes(|i| {
                $(let $arg = $arg[i];)+
                $body
            })
        }
    )+};
}

#[inline(always)]
fn bytes(x: [i32; 8]) -> [u8; 32] {
    let mut out = [0; 32];
    for (o, v) in out.chunks_exact_mut(4).zip(x) {
        o.copy_from_slice(&v.to_le_bytes());
    }
    out
}

#[inline(always)]
fn words(x: [u8; 32]) -> [i32; 8] {
    lanes(|i| i32::from_le_bytes([x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]]))
}

#[inline(always)]
fn map_bytes(x: [i32; 8], f: impl Fn(u8) -> u8) -> [i32; 8] {
    words(bytes(x).map(f))
}

impl Simd for Scalar {
    type F = [f32; 8];
    type D = [f64; 4];
    type I = [i32; 8];

    lane_by_lane! {
        fn add(a: F, b: F) -> F { a + b }
        fn sub(a: F, b: F) -> F { a - b }
        fn mul(a: F, b: F) -> F { a * b }
        fn div(a: F, b: F) -> F { a / b }
        fn fma(a: F, b: F, c: F) -> F { a.mul_add(b, c) }
        fn fnma(a: F, b: F, c: F) -> F { (-a).mul_add(b, c) }
        fn max(a: F, b: F) -> F { if a > b { a } else { b } }
        fn min(a: F, b: F) -> F { if a < b { a } else { b } }
        fn abs(a: F) -> F { a.abs() }
        fn to_i32(a: F) -> I { a.round_ties_even() as i32 }
        fn to_f32(a: I) -> F { a as f32 }
        fn exp2_int(n: I) -> F { f32::from_bits(((n + 127) as u32) << 23) }
        fn add_f64(a: D, b: D) -> D { a + b }
        fn sub_f64(a: D, b: D) -> D { a - b }
        fn mul_f64(a: D, b: D) -> D { a * b }
        fn div_f64(a: D, b: D) -> D { a / b }
        fn fma_f64(a: D, b: D, c: D) -> D { a.mul_add(b, c) }
        fn fnma_f64(a: D, b: D, c: D) -> D { (-a).mul_add(b, c) }
        fn max_f64(a: D, b: D) -> D { if a > b { a } else { b } }
        fn min_f64(a: D, b: D) -> D { if a < b { a } else { b } }
        fn exp2_f64(t: D) -> D { f64::from_bits(t.to_bits().wrapping_add(1023) << 52) }
        fn add_i32(a: I, b: I) -> I { a.wrapping_add(b) }
        fn sub_i32(a: I, b: I) -> I { a.wrapping_sub(b) }
        fn mul_i32(a: I, b: I) -> I { a.wrapping_mul(b) }
        fn pair_i16(low: I, high: I) -> I { (low & 0xffff) | (high << 16) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        [x; 8]
    }
    #[inline(always)]
    fn load(self, src: &[f32]) -> Self::F {
        lanes(|i| src[i])
    }
    #[inline(always)]
    fn store(self, dst: &mut [f32], x: Self::F) {
        dst[..LANES].copy_from_slice(&x);
    }
    #[inline(always)]
    fn swap_pairs(self, a: Self::F) -> Self::F {
        lanes(|i| a[i ^ 1])
    }
    #[inline(always)]
    fn double_lanes(self, a: Self::F) -> [Self::F; 2] {
        [lanes(|i| a[i / 2]), lanes(|i| a[4 + i / 2])]
    }
    #[inline(always)]
    fn transpose(self, a: [Self::F; 8]) -> [Self::F; 8] {
        std::array::from_fn(|i| lanes(|j| a[j][i]))
    }
    #[inline(always)]
    fn equal_lanes(self, a: Self::F, b: Self::F) -> u32 {
        (0..LANES).map(|i| u32::from(a[i] == b[i]) << i).sum()
    }

    #[inline(always)]
    fn splat_f64(self, x: f64) -> Self::D {
        [x; DOUBLES]
    }
    #[inline(always)]
    fn to_f64(self, a: Self::F) -> [Self::D; 2] {
        [lanes(|i| f64::from(a[i])), lanes(|i| f64::from(a[DOUBLES + i]))]
    }
    #[inline(always)]
    fn store_f64(self, dst: &mut [f64], x: Self::D) {
        dst[..DOUBLES].copy_from_slice(&x);
    }

    #[inline(always)]
    fn splat_i32(self, x: i32) -> Self::I {
        [x; 8]
    }
    #[inline(always)]
    fn load_bytes(self, src: &[u8; 32]) -> Self::I {
        words(*src)
    }
    #[inline(always)]
    fn store_bytes(self, dst: &mut [u8; 32], x: Self::I) {
        *dst = bytes(x);
    }
    #[inline(always)]
    fn load_i32(self, src: &[i32; 8]) -> Self::I {
        *src
    }
    #[inline(always)]
    fn store_i32(self, dst: &mut [i32; 8], x: Self::I) {
        *dst = x;
    }
    #[inline(always)]
    fn pack_bytes(self, a: [Self::I; 4]) -> Self::I {
        words(lanes(|i| a[i / LANES][i % LANES] as u8))
    }
    #[inline(always)]
    fn dot_i16(self, a: Self::I, b: Self::I) -> Self::I {
        let product = |x: i32, y: i32| x as i16 as i32 * (y as i16 as i32);
        lanes(|i| product(a[i], b[i]).wrapping_add(product(a[i] >> 16, b[i] >> 16)))
    }
    #[inline(always)]
    fn low_nibbles(self, a: Self::I) -> Self::I {
        map_bytes(a, |b| b & 15)
    }
    #[inline(always)]
    fn high_nibbles(self, a: Self::I) -> Self::I {
        map_bytes(a, |b| b >> 4)
    }
    #[inline(always)]
    fn look_up(self, table: &[u8; 16], a: Self::I) -> Self::I {
        map_bytes(a, |b| table[usize::from(b & 15)])
    }
    #[inline(always)]
    fn sub_bytes(self, a: Self::I, b: Self::I) -> Self::I {
        let (a, b) = (bytes(a), bytes(b));
        words(lanes(|i| a[i].wrapping_sub(b[i])))
    }
    #[inline(always)]
    fn load_u8(self, src: &[u8; 8]) -> Self::I {
        lanes(|i| i32::from(src[i]))
    }
    #[inline(always)]
    fn load_i8(self, src: &[u8; 8]) -> Self::I {
        lanes(|i| i32::from(src[i].cast_signed()))
    }
}

/// Per lane: the dot product of its 4 weights, read by `weight`, and its 4 signed activations.
#[inline(always)]
fn dot4(w: [i32; 8], x: [i32; 8], weight: impl Fn(u8) -> i32) -> [i32; 8] {
    let (w, x) = (bytes(w), bytes(x));
    lanes(|i| {
        let mut sum = 0;
        for b in 4 * i..4 * i + 4 {
            sum += weight(w[b]) * i32::from(x[b] as i8);
        }
        sum
    })
}

impl Isa for Scalar {
    type V = Scalar;

    const NAME: &'static str = "scalar";
    const UNSIGNED_MAX: u32 = 255;
    const SCALE_I32: bool = true;
    const TOKEN_TILE: usize = 3;

    #[inline(always)]
    fn v(self) -> Self::V {
        self
    }
    #[inline(always)]
    fn depth(_code_max: u32) -> usize {
        usize::MAX
    }
    #[inline(always)]
    fn dot(self, w: [i32; 8], x: [i32; 8]) -> [i32; 8] {
        dot4(w, x, i32::from)
    }
    #[inline(always)]
    fn dot_add(self, acc: [i32; 8], w: [i32; 8], x: [i32; 8]) -> [i32; 8] {
        self.add_i32(acc, self.dot(w, x))
    }
    #[inline(always)]
    fn dot_signed(self, w: [i32; 8], x: [i32; 8]) -> [i32; 8] {
        dot4(w, x, |b| i32::from(b as i8))
    }
    #[inline(always)]
    fn widen(self, acc: [i32; 8], scale: [i32; 8]) -> [i32; 8] {
        self.mul_i32(acc, scale)
    }
    #[inline(always)]
    fn prefetch(self, _bytes: &[u8]) {}
    #[inline(always)]
    fn opaque(self, x: [i32; 8]) -> [i32; 8] {
        std::hint::black_box(x)
    }
}
