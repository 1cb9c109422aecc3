//! The VNNI instruction sets: an exact u8 x i8 dot product into i32, on 256-bit vectors.
//!
//! AVX-VNNI and AVX512-VNNI are two encodings of one instruction; some CPUs have only one.

use super::avx2::{Avx2, registers};
use super::simd::{Isa, Simd};
use core::arch::x86_64::*;
use std::is_x86_feature_detected as has;

/// The instruction set of one encoding: its features, tokens at a time, and the two dot products.
macro_rules! vnni {
    (
        $(#[$doc:meta])*
        $proof:ident = $name:literal if $is_there:expr, $features:literal, $tokens:literal,
        $dot_add:ident, $dot_i16_add:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $proof(Avx2);

        impl $proof {
            /// `None` where the CPU lacks it.
            pub fn new() -> Option<Self> {
                Avx2::new().filter(|_| $is_there).map(Self)
            }
        }

        impl Isa for $proof {
            type V = Avx2;

            const NAME: &'static str = $name;
            const UNSIGNED_MAX: u32 = 255;
            const SCALE_I32: bool = true;
            const TOKEN_TILE: usize = $tokens;

            registers! {
                $features:
                fn dot(w: __m256i, x: __m256i) -> __m256i {
                    $dot_add(_mm256_setzero_si256(), w, x)
                }
                fn dot_add(acc: __m256i, w: __m256i, x: __m256i) -> __m256i {
                    $dot_add(acc, w, x)
                }
                fn dot_signed(w: __m256i, x: __m256i) -> __m256i {
                    let (w, x) = (_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
                    $dot_add(_mm256_setzero_si256(), w, x)
                }
                fn dot_i16_add(acc: __m256i, a: __m256i, b: __m256i) -> __m256i {
                    $dot_i16_add(acc, a, b)
                }
            }

            #[inline(always)]
            fn v(self) -> Avx2 {
                self.0
            }
            #[inline(always)]
            fn depth(_code_max: u32) -> usize {
                usize::MAX
            }
            #[inline(always)]
            fn widen(self, acc: __m256i, scale: __m256i) -> __m256i {
                self.0.mul_i32(acc, scale)
            }
            #[inline(always)]
            fn prefetch(self, bytes: &[u8]) {
                self.0.prefetch(bytes);
            }
            #[inline(always)]
            fn opaque(self, x: __m256i) -> __m256i {
                self.0.opaque(x)
            }
        }
    };
}

vnni! {
    /// Proof that the CPU has AVX-VNNI (and AVX2, FMA). This encoding reaches 16 registers.
    AvxVnni = "avxvnni" if has!("avxvnni"), "avx2,fma,avxvnni", 3,
    _mm256_dpbusd_avx_epi32, _mm256_dpwssd_avx_epi32
}

vnni! {
    /// Proof that the CPU has AVX512-VNNI with 256-bit vectors (and AVX2, FMA). This encoding
    /// reaches 32 registers.
    Avx512Vnni = "avx512vnni" if has!("avx512vnni") && has!("avx512vl"),
    "avx2,fma,avx512vnni,avx512vl", 6,
    _mm256_dpbusd_epi32, _mm256_dpwssd_epi32
}
