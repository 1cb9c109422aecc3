//! Operators without sums: rotary positions, SiLU times up.

use crate::isa::{Isa, LANES, Simd};
use crate::math;
use crate::table::Op;

/// Which two elements of a head turn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeStyle {
    /// Neighbours 2i and 2i+1, as files of `llada` store q and k.
    Norm,
    /// Elements i and i + dimensions/2, as files of `dream` do.
    Neox,
}

/// Turns one row of heads by its position's angles, in place
/// (Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021).
pub struct Rope<'a> {
    /// `[heads][head_width]`
    pub x: &'a mut [f32],
    /// Elements of a head; those from `2 * cos.len()` on stay as they are.
    pub head_width: usize,
    /// `[dimensions / 2]` cosines of this position.
    pub cos: &'a [f32],
    /// `[dimensions / 2]` sines of this position.
    pub sin: &'a [f32],
    /// The pairing.
    pub style: RopeStyle,
}

impl Op for Rope<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, _isa: I) {
        let half = self.cos.len();
        let angles = || self.cos.iter().zip(self.sin);
        for head in self.x.chunks_exact_mut(self.head_width) {
            let turned = &mut head[..2 * half];
            match self.style {
                RopeStyle::Norm => {
                    for (pair, (&c, &s)) in turned.chunks_exact_mut(2).zip(angles()) {
                        (pair[0], pair[1]) = turn(pair[0], pair[1], c, s);
                    }
                }
                RopeStyle::Neox => {
                    let (low, high) = turned.split_at_mut(half);
                    for ((a, b), (&c, &s)) in low.iter_mut().zip(high).zip(angles()) {
                        (*a, *b) = turn(*a, *b, c, s);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn turn(a: f32, b: f32, cos: f32, sin: f32) -> (f32, f32) {
    (a.mul_add(cos, -(b * sin)), a.mul_add(sin, b * cos))
}

/// `gate = silu(gate) * up`, the gated feed-forward (Shazeer, "GLU Variants Improve
/// Transformer", 2020).
pub struct SiluMul<'a> {
    /// A multiple of eight long; overwritten.
    pub gate: &'a mut [f32],
    /// As long.
    pub up: &'a [f32],
}

impl Op for SiluMul<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let s = isa.v();
        for (g, u) in self.gate.chunks_exact_mut(LANES).zip(self.up.chunks_exact(LANES)) {
            let value = s.mul(math::silu(s, s.load(g)), s.load(u));
            s.store(g, value);
        }
    }
}
