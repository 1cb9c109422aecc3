//! The quantized GEMM: one panel of 16 weight rows against all tokens.
//!
//! For each super-block of 256 weights the panel's two groups of 8 rows are unpacked once into a
//! tile of unsigned bytes that stays in L1; all tokens stream past it, [`Isa::TOKEN_TILE`] at a
//! time. Lanes are rows, so no sum runs across a register. Everything inside a super-block is
//! integer (K-quants) or integer per 32 weights (types with one scale per 32), so exact; the f32
//! part is `out += dx * (d * codes - m * sum)`, a multiply and two fused multiply-adds in that
//! order. The result does not depend on the instruction set.

mod float;
mod multiply;
mod tile;

pub use float::GemmPanelF32;

use crate::dtype::{self, Dtype, Format, GROUP_ROWS, PANEL_ROWS, SUPER_WEIGHTS};
use crate::isa::Isa;
use crate::table::{Kernels, Op};
use core::marker::PhantomData;
pub(crate) use multiply::chain_depth;
use multiply::{Tokens, multiply_all};
use tile::Tile;
pub(crate) use tile::signed;

/// The largest [`Isa::TOKEN_TILE`].
pub const TOKEN_TILE_MAX: usize = 6;
/// Activation codes of a super-block, four a word.
pub const CODE_WORDS: usize = SUPER_WEIGHTS / 4;
/// Words of integer sums a super-block: see [`Activations::sums`].
pub const SUM_WORDS: usize = 16;
/// First word of the sums over 32 activations.
const SUMS_32_AT: usize = 8;
const GROUPS: usize = PANEL_ROWS / GROUP_ROWS;

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

/// Multiplies a packed panel of format `F` by all tokens: `out[token][row] = w[row] . x[token]`.
pub struct GemmPanel<'a, F> {
    /// As [`crate::pack::pack_panel`] lays it out.
    pub panel: &'a [u8],
    /// The activations; scales per 256 or per 32 as `F::SUPER` says.
    pub x: Activations<'a>,
    /// `[tokens][16]`, overwritten.
    pub out: &'a mut [f32],
    /// The format.
    pub format: PhantomData<F>,
}

impl<F: Format> Op for GemmPanel<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let x = self.x;
        let out = &mut self.out[..x.tokens * PANEL_ROWS];
        out.fill(0.0);
        let scales_per_token = if F::SUPER { 1 } else { 8 };
        let codes = x.codes.as_chunks::<CODE_WORDS>().0;
        let sums = x.sums.as_chunks::<SUM_WORDS>().0;
        let mut tile = Tile::EMPTY;
        let block_bytes = GROUPS * F::BLOCK_BYTES;
        for (sb, blocks) in self.panel.chunks_exact(block_bytes).enumerate() {
            let next = (sb + 1) * block_bytes;
            let next = self.panel.get(next..next + block_bytes).unwrap_or_default();
            for (g, block) in blocks.chunks_exact(F::BLOCK_BYTES).enumerate() {
                tile.unpack::<I, F>(isa, g, block);
            }
            let first = sb * x.capacity;
            let tokens = Tokens {
                codes: &codes[first..first + x.tokens],
                sums: &sums[first..first + x.tokens],
                scales: &x.scales[first * scales_per_token..][..x.tokens * scales_per_token],
            };
            multiply_all::<I, F>(isa, &tile, tokens, next, out);
        }
    }
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
    match dtype {
        Dtype::F32 | Dtype::F16 | Dtype::BF16 => ActivationKind::Float,
        Dtype::Q4_0 | Dtype::Q4_1 | Dtype::Q5_0 | Dtype::Q5_1 => ActivationKind::Per32,
        Dtype::Q8_0 | Dtype::IQ4_NL => ActivationKind::Per32,
        Dtype::Q2_K | Dtype::Q3_K | Dtype::Q4_K | Dtype::Q5_K => ActivationKind::Per256,
        Dtype::Q6_K | Dtype::IQ4_XS => ActivationKind::Per256,
    }
}

/// [`GemmPanel`] for a quantized type known at run time.
///
/// # Panics
/// For float types, which have [`GemmPanelF32`].
pub fn multiply_panel(
    kernels: Kernels,
    dtype: Dtype,
    panel: &[u8],
    x: Activations<'_>,
    out: &mut [f32],
) {
    fn with<F: Format>(kernels: Kernels, panel: &[u8], x: Activations<'_>, out: &mut [f32]) {
        kernels.run(GemmPanel::<F> { panel, x, out, format: PhantomData });
    }
    match dtype {
        Dtype::Q4_0 => with::<dtype::Q4_0>(kernels, panel, x, out),
        Dtype::Q4_1 => with::<dtype::Q4_1>(kernels, panel, x, out),
        Dtype::Q5_0 => with::<dtype::Q5_0>(kernels, panel, x, out),
        Dtype::Q5_1 => with::<dtype::Q5_1>(kernels, panel, x, out),
        Dtype::Q8_0 => with::<dtype::Q8_0>(kernels, panel, x, out),
        Dtype::Q2_K => with::<dtype::Q2_K>(kernels, panel, x, out),
        Dtype::Q3_K => with::<dtype::Q3_K>(kernels, panel, x, out),
        Dtype::Q4_K => with::<dtype::Q4_K>(kernels, panel, x, out),
        Dtype::Q5_K => with::<dtype::Q5_K>(kernels, panel, x, out),
        Dtype::Q6_K => with::<dtype::Q6_K>(kernels, panel, x, out),
        Dtype::IQ4_NL => with::<dtype::IQ4_NL>(kernels, panel, x, out),
        Dtype::IQ4_XS => with::<dtype::IQ4_XS>(kernels, panel, x, out),
        Dtype::F32 | Dtype::F16 | Dtype::BF16 => panic!("{dtype} is multiplied as f32"),
    }
}
