//! AVX2 and FMA: 256-bit vectors; the int8 dot product saturates, so its depth is bounded.

use super::simd::{DOUBLES, Isa, LANES, Simd};
use core::arch::x86_64::*;

/// Proof that the CPU has AVX2 and FMA.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

impl Avx2 {
    /// `None` where the CPU lacks AVX2 or FMA.
    pub fn new() -> Option<Self> {
        let found = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
        found.then_some(Self(()))
    }
}

/// Operations on values in registers. Each body is that of a safe function with the CPU features
/// that `self` proves, so the compiler itself keeps memory and other instructions out of it.
macro_rules! registers {
    (
        $features:literal:
        $(fn $name:ident($($arg:ident: $type:ty),+) -> $out:ty $body:block)+
    ) => {$(
        #[inline(always)]
        fn $name(self, $($arg: $type),+) -> $out {
            #[target_feature(enable = $features)]
            #[inline]
            fn registers($($arg: $type),+) -> $out $body
            // SAFETY: `registers` needs its features and nothing else, being safe apart from them;
            // `self` exists only where the CPU has them.
            unsafe { registers($($arg),+) }
        }
    )+};
}
pub(super) use registers;

impl Simd for Avx2 {
    type F = __m256;
    type D = __m256d;
    type I = __m256i;

    registers! {
        "avx2,fma":
        fn splat(x: f32) -> __m256 { _mm256_set1_ps(x) }
        fn add(a: __m256, b: __m256) -> __m256 { _mm256_add_ps(a, b) }
        fn sub(a: __m256, b: __m256) -> __m256 { _mm256_sub_ps(a, b) }
        fn mul(a: __m256, b: __m256) -> __m256 { _mm256_mul_ps(a, b) }
        fn div(a: __m256, b: __m256) -> __m256 { _mm256_div_ps(a, b) }
        fn fma(a: __m256, b: __m256, c: __m256) -> __m256 { _mm256_fmadd_ps(a, b, c) }
        fn fnma(a: __m256, b: __m256, c: __m256) -> __m256 { _mm256_fnmadd_ps(a, b, c) }
        fn max(a: __m256, b: __m256) -> __m256 { _mm256_max_ps(a, b) }
        fn min(a: __m256, b: __m256) -> __m256 { _mm256_min_ps(a, b) }
        fn swap_pairs(a: __m256) -> __m256 { _mm256_permute_ps::<0b10_11_00_01>(a) }
        fn double_lanes(a: __m256) -> [__m256; 2] {
            [
                _mm256_permutevar8x32_ps(a, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
                _mm256_permutevar8x32_ps(a, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7)),
            ]
        }
        fn transpose(a: [__m256; 8]) -> [__m256; 8] {
            let (mut pairs, mut fours, mut out) = (a, a, a);
            for i in [0, 2, 4, 6] {
                pairs[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
                pairs[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
            }
            // Of four vectors: lanes 0 and 4, 1 and 5, 2 and 6, 3 and 7.
            for i in [0, 1, 4, 5] {
                let (x, y) = (pairs[i], pairs[i + 2]);
                let at = i / 4 * 4 + i % 4 * 2;
                fours[at] = _mm256_shuffle_ps::<0b01_00_01_00>(x, y);
                fours[at + 1] = _mm256_shuffle_ps::<0b11_10_11_10>(x, y);
            }
            for i in 0..4 {
                out[i] = _mm256_permute2f128_ps::<0x20>(fours[i], fours[i + 4]);
                out[i + 4] = _mm256_permute2f128_ps::<0x31>(fours[i], fours[i + 4]);
            }
            out
        }
        fn abs(a: __m256) -> __m256 { _mm256_andnot_ps(_mm256_set1_ps(-0.0), a) }
        fn to_i32(a: __m256) -> __m256i { _mm256_cvtps_epi32(a) }
        fn to_f32(a: __m256i) -> __m256 { _mm256_cvtepi32_ps(a) }
        fn exp2_int(n: __m256i) -> __m256 {
            let biased = _mm256_add_epi32(n, _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
        }
        fn equal_lanes(a: __m256, b: __m256) -> u32 {
            _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_EQ_OQ>(a, b)) as u32
        }

        fn splat_f64(x: f64) -> __m256d { _mm256_set1_pd(x) }
        fn to_f64(a: __m256) -> [__m256d; 2] {
            [
                _mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(a)),
            ]
        }
        fn add_f64(a: __m256d, b: __m256d) -> __m256d { _mm256_add_pd(a, b) }
        fn sub_f64(a: __m256d, b: __m256d) -> __m256d { _mm256_sub_pd(a, b) }
        fn mul_f64(a: __m256d, b: __m256d) -> __m256d { _mm256_mul_pd(a, b) }
        fn div_f64(a: __m256d, b: __m256d) -> __m256d { _mm256_div_pd(a, b) }
        fn fma_f64(a: __m256d, b: __m256d, c: __m256d) -> __m256d { _mm256_fmadd_pd(a, b, c) }
        fn fnma_f64(a: __m256d, b: __m256d, c: __m256d) -> __m256d { _mm256_fnmadd_pd(a, b, c) }
        fn max_f64(a: __m256d, b: __m256d) -> __m256d { _mm256_max_pd(a, b) }
        fn min_f64(a: __m256d, b: __m256d) -> __m256d { _mm256_min_pd(a, b) }
        fn exp2_f64(t: __m256d) -> __m256d {
            // The lowest bits of `t` are n: shifted, they and the bias are all that is left.
            let biased = _mm256_add_epi64(_mm256_castpd_si256(t), _mm256_set1_epi64x(1023));
            _mm256_castsi256_pd(_mm256_slli_epi64::<52>(biased))
        }

        fn splat_i32(x: i32) -> __m256i { _mm256_set1_epi32(x) }
        fn pack_bytes(a: [__m256i; 4]) -> __m256i {
            // Each half packs its own lanes, so that words come out as 0 2 4 6 of both, then
            // 1 3 5 7.
            _mm256_permutevar8x32_epi32(
                _mm256_packs_epi16(_mm256_packs_epi32(a[0], a[1]), _mm256_packs_epi32(a[2], a[3])),
                _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7),
            )
        }
        fn add_i32(a: __m256i, b: __m256i) -> __m256i { _mm256_add_epi32(a, b) }
        fn sub_i32(a: __m256i, b: __m256i) -> __m256i { _mm256_sub_epi32(a, b) }
        fn mul_i32(a: __m256i, b: __m256i) -> __m256i { _mm256_mullo_epi32(a, b) }
        fn dot_i16(a: __m256i, b: __m256i) -> __m256i { _mm256_madd_epi16(a, b) }
        fn low_nibbles(a: __m256i) -> __m256i { _mm256_and_si256(a, _mm256_set1_epi8(15)) }
        fn high_nibbles(a: __m256i) -> __m256i {
            _mm256_and_si256(_mm256_srli_epi16::<4>(a), _mm256_set1_epi8(15))
        }
        fn look_up(table: &[u8; 16], a: __m256i) -> __m256i {
            let [low, high] = [0, 1].map(|half| i64::from_le_bytes(table.as_chunks().0[half]));
            _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_set_epi64x(high, low)), a)
        }
        fn sub_bytes(a: __m256i, b: __m256i) -> __m256i { _mm256_sub_epi8(a, b) }
        fn load_u8(src: &[u8; 8]) -> __m256i {
            _mm256_cvtepu8_epi32(_mm_set_epi64x(0, i64::from_le_bytes(*src)))
        }
        fn load_i8(src: &[u8; 8]) -> __m256i {
            _mm256_cvtepi8_epi32(_mm_set_epi64x(0, i64::from_le_bytes(*src)))
        }
        fn pair_i16(low: __m256i, high: __m256i) -> __m256i {
            _mm256_blend_epi16::<0b1010_1010>(low, _mm256_slli_epi32::<16>(high))
        }
    }

    #[inline(always)]
    fn load(self, src: &[f32]) -> __m256 {
        let src = &src[..LANES];
        debug_assert_eq!(size_of_val(src), size_of::<__m256>());
        // SAFETY: `self` proves AVX; `src` is 32 bytes that may be read, of any alignment.
        unsafe { _mm256_loadu_ps(src.as_ptr()) }
    }
    #[inline(always)]
    fn store(self, dst: &mut [f32], x: __m256) {
        let dst = &mut dst[..LANES];
        debug_assert_eq!(size_of_val(dst), size_of_val(&x));
        // SAFETY: `self` proves AVX; `dst` is 32 bytes that may be written, of any alignment.
        unsafe { _mm256_storeu_ps(dst.as_mut_ptr(), x) }
    }
    #[inline(always)]
    fn store_f64(self, dst: &mut [f64], x: __m256d) {
        let dst = &mut dst[..DOUBLES];
        debug_assert_eq!(size_of_val(dst), size_of_val(&x));
        // SAFETY: `self` proves AVX; `dst` is 32 bytes that may be written, of any alignment.
        unsafe { _mm256_storeu_pd(dst.as_mut_ptr(), x) }
    }
    #[inline(always)]
    fn load_bytes(self, src: &[u8; 32]) -> __m256i {
        debug_assert_eq!(size_of_val(src), size_of::<__m256i>());
        // SAFETY: `self` proves AVX; `src` is 32 bytes that may be read, of any alignment.
        unsafe { _mm256_loadu_si256(src.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store_bytes(self, dst: &mut [u8; 32], x: __m256i) {
        debug_assert_eq!(size_of_val(dst), size_of_val(&x));
        // SAFETY: `self` proves AVX; `dst` is 32 bytes that may be written, of any alignment.
        unsafe { _mm256_storeu_si256(dst.as_mut_ptr().cast(), x) }
    }
    #[inline(always)]
    fn load_i32(self, src: &[i32; 8]) -> __m256i {
        debug_assert_eq!(size_of_val(src), size_of::<__m256i>());
        // SAFETY: `self` proves AVX; `src` is 32 bytes that may be read, of any alignment.
        unsafe { _mm256_loadu_si256(src.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store_i32(self, dst: &mut [i32; 8], x: __m256i) {
        debug_assert_eq!(size_of_val(dst), size_of_val(&x));
        // SAFETY: `self` proves AVX; `dst` is 32 bytes that may be written, of any alignment.
        unsafe { _mm256_storeu_si256(dst.as_mut_ptr().cast(), x) }
    }
}

/// Keeps `x` in a register and hides from the compiler where it came from.
#[target_feature(enable = "avx2")]
#[inline]
fn opaque_register(mut x: __m256i) -> __m256i {
    // SAFETY: no instruction, so nothing is read, written or clobbered.
    unsafe {
        core::arch::asm!("/* {0} */", inout(ymm_reg) x, options(nomem, nostack, preserves_flags));
    }
    x
}

/// Bytes of a cache line of every x86-64 CPU.
const CACHE_LINE_BYTES: usize = 64;

/// The largest activation code: quantization clamps to it.
const ACTIVATION_MAX: u32 = 127;

impl Isa for Avx2 {
    type V = Avx2;

    const NAME: &'static str = "avx2";
    /// Two products of this and the largest activation still fit an i16.
    const UNSIGNED_MAX: u32 = i16::MAX as u32 / (2 * ACTIVATION_MAX);
    const SCALE_I32: bool = false;
    const TOKEN_TILE: usize = 4;

    #[inline(always)]
    fn v(self) -> Avx2 {
        self
    }
    #[inline(always)]
    fn depth(code_max: u32) -> usize {
        (i16::MAX as u32 / (2 * ACTIVATION_MAX * code_max)) as usize
    }
    registers! {
        "avx2,fma":
        fn dot(w: __m256i, x: __m256i) -> __m256i { _mm256_maddubs_epi16(w, x) }
        fn dot_add(acc: __m256i, w: __m256i, x: __m256i) -> __m256i {
            _mm256_add_epi16(acc, _mm256_maddubs_epi16(w, x))
        }
        fn dot_signed(w: __m256i, x: __m256i) -> __m256i {
            // |w| up to 128 and the sign moved to x: 2 x 128 x 127 fits an i16.
            _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w))
        }
        fn widen(acc: __m256i, scale: __m256i) -> __m256i { _mm256_madd_epi16(acc, scale) }
        fn opaque(x: __m256i) -> __m256i { opaque_register(x) }
    }
    #[inline(always)]
    fn prefetch(self, bytes: &[u8]) {
        for line in bytes.chunks(CACHE_LINE_BYTES) {
            // SAFETY: a hint, which faults at no address, of SSE, which is part of x86-64.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
        }
    }
}
