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
    fn run<I: Isa>(self, isa: I) {
        let half = self.cos.len();
        for head in self.x.chunks_exact_mut(self.head_width) {
            let head = &mut head[..2 * half];
            // Direct calls: through a pointer they would not take on the instruction set.
            match self.style {
                RopeStyle::Norm => turn_neighbours(isa, head, self.cos, self.sin),
                RopeStyle::Neox => turn_halves(isa, head, self.cos, self.sin),
            }
        }
    }
}

#[inline(always)]
fn turn_neighbours<I: Isa>(isa: I, x: &mut [f32], cos: &[f32], sin: &[f32]) {
    let s = isa.v();
    let signs = s.load(&[-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0]);
    let (blocks, rest) = x.as_chunks_mut::<{ 2 * LANES }>();
    let (cos, cos_rest) = cos.as_chunks::<LANES>();
    let (sin, sin_rest) = sin.as_chunks::<LANES>();
    for ((block, cos), sin) in blocks.iter_mut().zip(cos).zip(sin) {
        let angles = s.double_lanes(s.load(cos)).into_iter().zip(s.double_lanes(s.load(sin)));
        for (x, (cos, sin)) in block.chunks_exact_mut(LANES).zip(angles) {
            let pairs = s.load(x);
            let across = s.mul(s.swap_pairs(pairs), s.mul(sin, signs));
            s.store(x, s.fma(pairs, cos, across));
        }
    }
    for (pair, (c, s)) in rest.chunks_exact_mut(2).zip(cos_rest.iter().zip(sin_rest)) {
        (pair[0], pair[1]) = turn(pair[0], pair[1], *c, *s);
    }
}

#[inline(always)]
fn turn_halves<I: Isa>(isa: I, x: &mut [f32], cos: &[f32], sin: &[f32]) {
    let s = isa.v();
    let (low, high) = x.split_at_mut(cos.len());
    let (low, low_rest) = low.as_chunks_mut::<LANES>();
    let (high, high_rest) = high.as_chunks_mut::<LANES>();
    let (cos, cos_rest) = cos.as_chunks::<LANES>();
    let (sin, sin_rest) = sin.as_chunks::<LANES>();
    for ((low, high), (cos, sin)) in low.iter_mut().zip(high).zip(cos.iter().zip(sin)) {
        let (a, b, cos, sin) = (s.load(low), s.load(high), s.load(cos), s.load(sin));
        s.store(low, s.fma(a, cos, s.sub(s.splat(0.0), s.mul(b, sin))));
        s.store(high, s.fma(b, cos, s.mul(a, sin)));
    }
    for ((a, b), (c, s)) in low_rest.iter_mut().zip(high_rest).zip(cos_rest.iter().zip(sin_rest)) {
        (*a, *b) = turn(*a, *b, *c, *s);
    }
}

#[inline(always)]
fn turn(a: f32, b: f32, cos: f32, sin: f32) -> (f32, f32) {
    (a.mul_add(cos, -(b * sin)), b.mul_add(cos, a * sin))
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
