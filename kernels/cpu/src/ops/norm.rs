//! Root-mean-square normalization.

use crate::isa::{Isa, LANES, Simd, sum_lanes};
use crate::table::Op;

/// Sums that run beside each other: with one, every step would wait for the one before.
const CHAINS: usize = 4;

/// `y = x / sqrt(mean(x^2) + epsilon) * weight` for one row whose length is a multiple of eight
/// (Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019).
pub struct RmsNorm<'a> {
    /// `[width]`
    pub x: &'a [f32],
    /// `[width]`
    pub weight: &'a [f32],
    /// Added to the mean square.
    pub epsilon: f32,
    /// `[width]`, overwritten.
    pub y: &'a mut [f32],
}

impl Op for RmsNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let s = isa.v();
        let mut squares = [s.splat(0.0); CHAINS];
        for x in self.x.chunks(CHAINS * LANES) {
            for (squares, x) in squares.iter_mut().zip(x.chunks_exact(LANES)) {
                let x = s.load(x);
                *squares = s.fma(x, x, *squares);
            }
        }
        let [a, b, c, d] = squares;
        let squares = s.add(s.add(a, b), s.add(c, d));
        let mean = sum_lanes(s, squares) / self.x.len() as f32;
        let factor = s.splat(1.0 / (mean + self.epsilon).sqrt());
        let rows = self.x.chunks_exact(LANES).zip(self.weight.chunks_exact(LANES));
        for ((x, w), y) in rows.zip(self.y.chunks_exact_mut(LANES)) {
            s.store(y, s.mul(s.mul(s.load(x), factor), s.load(w)));
        }
    }
}
