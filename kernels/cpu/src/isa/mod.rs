//! Instruction sets as zero-sized proofs, and the few vector operations that the kernels need.
//!
//! A value of [`Scalar`], [`Avx2`], [`AvxVnni`] or [`Avx512Vnni`] proves that the CPU has the
//! instructions: its only constructor checks. Algorithms are generic over [`Isa`], always inlined,
//! and carry no target feature; the shims in `table.rs` do.
//!
//! A float vector is eight f32 lanes (or four f64) in every instruction set, also in scalar code,
//! and every operation is correctly rounded, so the same program gives the same bits everywhere.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;
mod simd;
#[cfg(target_arch = "x86_64")]
mod vnni;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
pub use scalar::Scalar;
pub use simd::*;
#[cfg(target_arch = "x86_64")]
pub use vnni::{Avx512Vnni, AvxVnni};
