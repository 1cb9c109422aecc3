//! The VNNI instruction sets: an exact u8 x i8 dot product into i32, on 256-bit vectors.
//!
//! AVX-VNNI and AVX512-VNNI are two encodings of one instruction; some CPUs have only one.

use super::avx2::opaque_register;
use super::{Avx2, Isa, Simd};
use core::arch::x86_64::*;
use core::marker::PhantomData;

/// Proof that the CPU has AVX-VNNI (and AVX2, FMA).
pub type AvxVnni = Vnni<Vex>;

/// Proof that the CPU has AVX512-VNNI with 256-bit vectors (and AVX2, FMA).
pub type Avx512Vnni = Vnni<Evex>;

/// Proof that the CPU has the instruction in the encoding `E` (and AVX2, FMA).
#[derive(Clone, Copy, Debug)]
pub struct Vnni<E>(Avx2, PhantomData<E>);

impl<E: Encoding> Vnni<E> {
    /// `None` where the CPU lacks it.
    pub fn new() -> Option<Self> {
        Avx2::new().filter(|_| E::is_there()).map(|avx2| Self(avx2, PhantomData))
    }
}

/// An encoding of `vpdpbusd`.
pub trait Encoding: Copy + 'static {
    /// As `--isa` and the JSON spell the instruction set.
    const NAME: &'static str;
    /// As [`Isa::TOKEN_TILE`]: the older encoding reaches 16 registers, the EVEX one 32.
    const TOKEN_TILE: usize;
    /// Whether the CPU has it.
    fn is_there() -> bool;
    /// Per lane: `acc +` the dot product of 4 unsigned and 4 signed bytes.
    ///
    /// # Safety
    /// - The CPU has it.
    unsafe fn dot_add(acc: __m256i, w: __m256i, x: __m256i) -> __m256i;
    /// Per lane: `acc +` the dot product of two signed 16-bit pairs.
    ///
    /// # Safety
    /// - The CPU has it.
    unsafe fn dot_i16_add(acc: __m256i, a: __m256i, b: __m256i) -> __m256i;
}

/// The encoding of AVX-VNNI.
#[derive(Clone, Copy, Debug)]
pub struct Vex;

impl Encoding for Vex {
    const NAME: &'static str = "avxvnni";
    const TOKEN_TILE: usize = 3;

    fn is_there() -> bool {
        std::is_x86_feature_detected!("avxvnni")
    }
    #[inline(always)]
    unsafe fn dot_add(acc: __m256i, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: the caller knows that the CPU has AVX-VNNI.
        unsafe { _mm256_dpbusd_avx_epi32(acc, w, x) }
    }
    #[inline(always)]
    unsafe fn dot_i16_add(acc: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_dpwssd_avx_epi32(acc, a, b) }
    }
}

/// The encoding of AVX512-VNNI with AVX512-VL.
#[derive(Clone, Copy, Debug)]
pub struct Evex;

impl Encoding for Evex {
    const NAME: &'static str = "avx512vnni";
    const TOKEN_TILE: usize = 6;

    fn is_there() -> bool {
        std::is_x86_feature_detected!("avx512vnni") && std::is_x86_feature_detected!("avx512vl")
    }
    #[inline(always)]
    unsafe fn dot_add(acc: __m256i, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: the caller knows that the CPU has AVX512-VNNI and AVX512-VL.
        unsafe { _mm256_dpbusd_epi32(acc, w, x) }
    }
    #[inline(always)]
    unsafe fn dot_i16_add(acc: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_dpwssd_epi32(acc, a, b) }
    }
}

impl<E: Encoding> Isa for Vnni<E> {
    type V = Avx2;

    const NAME: &'static str = E::NAME;
    const UNSIGNED_MAX: u32 = 255;
    const SCALE_I32: bool = true;
    const TOKEN_TILE: usize = E::TOKEN_TILE;

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
        // SAFETY: `self` proves that the CPU has it.
        unsafe { E::dot_add(acc, w, x) }
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
    #[inline(always)]
    fn dot_i16_add(self, acc: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves that the CPU has it.
        unsafe { E::dot_i16_add(acc, a, b) }
    }
    #[inline(always)]
    fn prefetch(self, bytes: &[u8]) {
        self.0.prefetch(bytes);
    }
    #[inline(always)]
    fn opaque(self, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { opaque_register(x) }
    }
}
