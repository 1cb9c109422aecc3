//! The f32 GEMM, for F32, F16 and BF16 matrices.

use super::tile::GROUPS;
use crate::dtype::{GROUP_ROWS, PANEL_ROWS};
use crate::isa::{Isa, Simd};
use crate::table::Op;

/// Multiplies a panel of f32 weights by f32 activations.
pub struct GemmPanelF32<'a> {
    /// `[cols][16]` f32, little-endian.
    pub panel: &'a [f32],
    /// `[tokens][stride]`, of which the first `cols` of a row are used.
    pub x: &'a [f32],
    /// Floats between token rows.
    pub stride: usize,
    /// Tokens present.
    pub tokens: usize,
    /// `[tokens][16]`, overwritten.
    pub out: &'a mut [f32],
}

impl Op for GemmPanelF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let weights = self.panel.as_chunks::<PANEL_ROWS>().0;
        for first in (0..self.tokens).step_by(4) {
            let x = &self.x[first * self.stride..];
            let out = &mut self.out[first * PANEL_ROWS..];
            match self.tokens - first {
                1 => multiply_f32::<I, 1>(isa, weights, x, self.stride, out),
                2 => multiply_f32::<I, 2>(isa, weights, x, self.stride, out),
                3 => multiply_f32::<I, 3>(isa, weights, x, self.stride, out),
                _ => multiply_f32::<I, 4>(isa, weights, x, self.stride, out),
            }
        }
    }
}

#[inline(always)]
fn multiply_f32<I: Isa, const T: usize>(
    isa: I,
    weights: &[[f32; PANEL_ROWS]],
    x: &[f32],
    stride: usize,
    out: &mut [f32],
) {
    let v = isa.v();
    let mut rows = [&x[..0]; T];
    for t in 0..T {
        rows[t] = &x[t * stride..][..weights.len()];
    }
    let mut acc = [[v.splat(0.0); GROUPS]; T];
    for (k, w) in weights.iter().enumerate() {
        let w = [v.load(&w[..GROUP_ROWS]), v.load(&w[GROUP_ROWS..])];
        for t in 0..T {
            let broadcast = v.splat(rows[t][k]);
            for g in 0..GROUPS {
                acc[t][g] = v.fma(w[g], broadcast, acc[t][g]);
            }
        }
    }
    for t in 0..T {
        for g in 0..GROUPS {
            v.store(&mut out[t * PANEL_ROWS + g * GROUP_ROWS..], acc[t][g]);
        }
    }
}
