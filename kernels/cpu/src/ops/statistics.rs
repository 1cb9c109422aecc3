//! What the choice of a token needs to know of a row of logits, 64 of them at a time.
//!
//! A row is cut into groups of [`GROUP_LOGITS`] whatever computes them, so that statistics taken
//! while the LM head makes the logits and those of a stored row are the same bits.

use crate::isa::{DOUBLES, Isa, LANES, Simd, VecF, max_lanes, sum_doubles};
use crate::math::exp_f64;
use crate::table::Op;

/// Logits of a group: four panels of the LM head. More make fewer records, and coarser work.
pub const GROUP_LOGITS: usize = 64;

/// A group's logits as they count: NaN is minus infinity, plus infinity the largest finite number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Sum of `exp(logit - largest)`, at least 1; 0 where all are minus infinity.
    pub sum: f64,
    /// The largest logit.
    pub largest: f32,
    /// The largest of the others, equal to `largest` when two share it.
    pub runner_up: f32,
    /// The first that is the largest; 0 where all are minus infinity.
    pub index: usize,
}

/// The [`Statistics`] of a group.
pub struct GroupStatistics<'a> {
    /// The logits; minus infinity for those that may not be chosen and those that do not exist.
    pub logits: &'a [f32; GROUP_LOGITS],
}

impl Op for GroupStatistics<'_> {
    type Output = Statistics;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Statistics {
        let s = isa.v();
        let lowest = s.splat(f32::NEG_INFINITY);
        let logits = clean(isa, self.logits);
        let (mut best, mut second) = (lowest, lowest);
        for &x in &logits {
            second = s.max(second, s.min(best, x));
            best = s.max(best, x);
        }
        let largest = max_lanes(s, best);
        if largest == f32::NEG_INFINITY {
            return Statistics { sum: 0.0, largest, runner_up: largest, index: 0 };
        }
        let mut equal = 0u64;
        for (i, &x) in logits.iter().enumerate() {
            equal |= u64::from(s.equal_lanes(x, s.splat(largest))) << (LANES * i);
        }
        let index = equal.trailing_zeros() as usize;
        let runner_up = runner_up(isa, best, second, index % LANES);
        Statistics { sum: weight_sum(isa, &logits, largest), largest, runner_up, index }
    }
}

/// No NaN, plus infinity or -0 is left.
#[inline(always)]
fn clean<I: Isa>(isa: I, logits: &[f32; GROUP_LOGITS]) -> [VecF<I>; GROUP_LOGITS / LANES] {
    let s = isa.v();
    let mut cleaned = [s.splat(0.0); GROUP_LOGITS / LANES];
    for (to, logits) in cleaned.iter_mut().zip(logits.chunks_exact(LANES)) {
        // max returns its second argument for NaN.
        let number = s.max(s.load(logits), s.splat(f32::NEG_INFINITY));
        *to = s.add(s.min(number, s.splat(f32::MAX)), s.splat(0.0));
    }
    cleaned
}

/// The second of the lane with the largest, or the best of another lane.
#[inline(always)]
fn runner_up<I: Isa>(isa: I, best: VecF<I>, second: VecF<I>, winner: usize) -> f32 {
    let s = isa.v();
    let (mut others, mut seconds) = ([0.0; LANES], [0.0; LANES]);
    s.store(&mut others, best);
    s.store(&mut seconds, second);
    others[winner] = seconds[winner];
    max_lanes(s, s.load(&others))
}

#[inline(always)]
fn weight_sum<I: Isa>(isa: I, logits: &[VecF<I>], largest: f32) -> f64 {
    let s = isa.v();
    let base = s.splat_f64(f64::from(largest));
    let mut sums = [s.splat_f64(0.0); 2];
    for &x in logits {
        for (sum, x) in sums.iter_mut().zip(s.to_f64(x)) {
            *sum = s.add_f64(*sum, exp_f64(s, s.sub_f64(x, base)));
        }
    }
    sum_doubles(s, s.add_f64(sums[0], sums[1]))
}

/// `exp((logit - largest) / temperature)` of a group of clean logits, in [0, 1]; 0 where the
/// exponent is -64 or less.
pub struct Weights<'a> {
    /// The logits; none above `largest`, NaN or plus infinity.
    pub logits: &'a [f32; GROUP_LOGITS],
    /// The row's largest, finite.
    pub largest: f32,
    /// Above 0.
    pub temperature: f64,
    /// Overwritten.
    pub weights: &'a mut [f64; GROUP_LOGITS],
}

impl Op for Weights<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let s = isa.v();
        let base = s.splat_f64(f64::from(self.largest));
        let heat = s.splat_f64(self.temperature);
        let halves = self.weights.chunks_exact_mut(LANES);
        for (to, logits) in halves.zip(self.logits.chunks_exact(LANES)) {
            let (low, high) = to.split_at_mut(DOUBLES);
            for (to, x) in [low, high].into_iter().zip(s.to_f64(s.load(logits))) {
                s.store_f64(to, exp_f64(s, s.div_f64(s.sub_f64(x, base), heat)));
            }
        }
    }
}
