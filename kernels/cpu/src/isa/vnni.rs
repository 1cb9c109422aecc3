//! The VNNI instruction sets: an exact u8 x i8 dot product into i32, on 256-bit vectors.
//!
//! AVX-VNNI and AVX512-VNNI are two encodings of one instruction; some CPUs have only one.

use super::{Avx2, Isa, Simd};
use core::arch::x86_64::*;

/// Proof that the CPU has AVX-VNNI (and AVX2, FMA).
#[derive(Clone, Copy, Debug)]
pub struct AvxVnni(Avx2);

impl AvxVnni {
    /// `None` where the CPU lacks it.
    pub fn new() -> Option<Self> {
        Avx2::new().filter(|_| std::is_x86_feature_detected!("avxvnni")).map(Self)
    }
}

/// Proof that the CPU has AVX512-VNNI with 256-bit vectors (and AVX2, FMA).
#[derive(Clone, Copy, Debug)]
pub struct Avx512Vnni(Avx2);

impl Avx512Vnni {
    /// `None` where the CPU lacks it.
    pub fn new() -> Option<Self> {
        let found = std::is_x86_feature_detected!("avx512vnni")
            && std::is_x86_feature_detected!("avx512vl");
        Avx2::new().filter(|_| found).map(Self)
    }
}

impl Isa for AvxVnni {
    type V = Avx2;

    const NAME: &'static str = "avxvnni";
    const UNSIGNED_MAX: u32 = 255;
    const SCALE_I32: bool = true;

    #[inline(always)]
    fn v(self) -> Avx2 {
        self.0
    }
    #[inline(always)]
    fn depth(_code_max: u32) -> usize {
        usize::MAX
    }
    #[inline(always)]
    fn dot(self, w: __m256i, x: __m256i) -> __m256i {
        self.dot_add(self.0.splat_i32(0), w, x)
    }
    #[inline(always)]
    fn dot_add(self, acc: __m256i, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX-VNNI.
        unsafe { _mm256_dpbusd_avx_epi32(acc, w, x) }
    }
    #[inline(always)]
    fn dot_signed(self, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        let (w, x) = unsafe { (_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)) };
        self.dot(w, x)
    }
    #[inline(always)]
    fn widen(self, acc: __m256i, scale: __m256i) -> __m256i {
        self.0.mul_i32(acc, scale)
    }
}

impl Isa for Avx512Vnni {
    type V = Avx2;

    const NAME: &'static str = "avx512vnni";
    const UNSIGNED_MAX: u32 = 255;
    const SCALE_I32: bool = true;

    #[inline(always)]
    fn v(self) -> Avx2 {
        self.0
    }
    #[inline(always)]
    fn depth(_code_max: u32) -> usize {
        usize::MAX
    }
    #[inline(always)]
    fn dot(self, w: __m256i, x: __m256i) -> __m256i {
        self.dot_add(self.0.splat_i32(0), w, x)
    }
    #[inline(always)]
    fn dot_add(self, acc: __m256i, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX512-VNNI and AVX512-VL.
        unsafe { _mm256_dpbusd_epi32(acc, w, x) }
    }
    #[inline(always)]
    fn dot_signed(self, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        let (w, x) = unsafe { (_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)) };
        self.dot(w, x)
    }
    #[inline(always)]
    fn widen(self, acc: __m256i, scale: __m256i) -> __m256i {
        self.0.mul_i32(acc, scale)
    }
}
