//! The quantized GEMM: one panel of 16 weight rows against all tokens.
//!
//! For each super-block of 256 weights the panel's two groups of 8 rows are unpacked once into a
//! tile of unsigned bytes that stays in L1; all tokens stream past it, [`Isa::TOKEN_TILE`] at a
//! time. Lanes are rows, so no sum runs across a register. Everything inside a super-block is
//! integer (K-quants) or integer per 32 weights (types with one scale per 32), so exact; the f32
//! part is `out += dx * (d * codes - m * sum)`, a multiply and two fused multiply-adds in that
//! order. The result does not depend on the instruction set.

mod activations;
mod float;
mod multiply;
mod tile;

pub use activations::{ActivationKind, Activations, CODE_WORDS, SUM_WORDS, activation_kind};
pub use float::GemmPanelF32;
pub use multiply::TOKEN_TILE_MAX;
pub(crate) use multiply::chain_depth;
pub(crate) use tile::signed;

use crate::dtype::{Dtype, Format, PANEL_ROWS, Unpack, Visitor};
use crate::isa::Isa;
use crate::table::{Kernels, Op};
use core::marker::PhantomData;
use multiply::{Tokens, multiply_all};
use tile::{GROUPS, Tile};

/// [`multiply_panel`] for a type known at compile time.
struct GemmPanel<'a, F> {
    panel: &'a [u8],
    x: Activations<'a>,
    out: &'a mut [f32],
    format: PhantomData<F>,
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

/// Multiplies a packed panel of a quantized type by all tokens:
/// `out[token][row] = w[row] . x[token]`, where `panel` is as [`crate::pack::pack_panel`] lays it
/// out, `x` has the scales that [`activation_kind`] says, and `out`, `[tokens][16]`, is
/// overwritten.
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
    let multiplied = dtype.visit(Multiply { kernels, panel, x, out });
    assert!(multiplied.is_some(), "{dtype} is multiplied as f32");
}

struct Multiply<'a> {
    kernels: Kernels,
    panel: &'a [u8],
    x: Activations<'a>,
    out: &'a mut [f32],
}

impl Visitor for Multiply<'_> {
    type Output = ();

    fn visit<F: Unpack>(self) {
        let Multiply { kernels, panel, x, out } = self;
        kernels.run(GemmPanel::<F> { panel, x, out, format: PhantomData });
    }
}
