//! Activations in the form that matrices multiply.

use crate::dtype::{Dtype, SUPER_WEIGHTS};

/// Activation codes of a super-block, four a word.
pub const CODE_WORDS: usize = SUPER_WEIGHTS / 4;
/// Words of integer sums a super-block: see [`Activations::sums`].
pub const SUM_WORDS: usize = 16;
/// First word of the sums over 32 activations.
pub(super) const SUMS_32_AT: usize = 8;

/// Quantized activations of up to `capacity` tokens, super-block-major so that the rows of
/// neighbouring tokens do not collide in L1.
#[derive(Clone, Copy)]
pub struct Activations<'a> {
    /// `[super-block][capacity][64]`: four int8 codes a word, little-endian, in -127..=127.
    pub codes: &'a [i32],
    /// `[super-block][capacity][16]`: two int16 sums a word; words 0..8 the sums of 16 codes,
    /// words 8..12 the sums of 32, the rest unused.
    pub sums: &'a [i32],
    /// One scale per 256: `[super-block][capacity]`; one per 32: `[super-block][capacity][8]`.
    pub scales: &'a [f32],
    /// Tokens present.
    pub tokens: usize,
    /// Tokens that the buffers are laid out for.
    pub capacity: usize,
}

/// The form of activations that a type's matrices multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivationKind {
    /// f32.
    Float,
    /// int8 with one scale per 32.
    Per32,
    /// int8 with one scale per 256.
    Per256,
}

/// The form that matrices of `dtype` multiply.
pub fn activation_kind(dtype: Dtype) -> ActivationKind {
    match dtype.block_weights() {
        1 => ActivationKind::Float,
        SUPER_WEIGHTS => ActivationKind::Per256,
        _ => ActivationKind::Per32,
    }
}
