//! Times of passes and steps, kept without allocation.

use crate::backend::Split;
use serde::Serialize;

/// Steps whose times are kept; later ones overwrite the oldest. More than any run of a model that
/// is worth watching, and small: 512 KiB.
const STEPS_KEPT: usize = 1 << 16;

/// Milliseconds by kind of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SplitMs {
    /// Matrix multiplications but the LM head.
    pub gemm: f64,
    /// Attention.
    pub attention: f64,
    /// LM head.
    pub lm_head: f64,
    /// Choice of tokens and of positions.
    pub sampling: f64,
    /// The rest.
    pub other: f64,
}

/// Milliseconds a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Milliseconds {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The slowest.
    pub max: f64,
}

/// Sums over passes and the times of steps.
#[derive(Clone, Debug)]
pub struct StepStats {
    /// Forward passes.
    pub passes: u64,
    /// Rows of all passes.
    pub rows_computed: u64,
    /// Rows of logits of all passes.
    pub logit_rows: u64,
    /// Milliseconds of all passes by kind of work, in the order of [`Split`].
    split_ms: [f64; 5],
    steps_ms: Box<[f64]>,
    steps: usize,
}

impl StepStats {
    /// Nothing yet.
    pub(super) fn new() -> StepStats {
        StepStats {
            passes: 0,
            rows_computed: 0,
            logit_rows: 0,
            split_ms: [0.0; 5],
            // Written now: an allocation of zeros would be left to fault in a step.
            steps_ms: std::iter::repeat_n(f64::NAN, STEPS_KEPT).collect(),
            steps: 0,
        }
    }

    pub(super) fn reset(&mut self) {
        (self.passes, self.rows_computed, self.logit_rows, self.steps) = (0, 0, 0, 0);
        self.split_ms = [0.0; 5];
    }

    pub(super) fn record_operator(&mut self, split: Split, ms: f64) {
        self.split_ms[split as usize] += ms;
    }

    pub(super) fn record_step(&mut self, ms: f64) {
        self.steps_ms[self.steps % STEPS_KEPT] = ms;
        self.steps += 1;
    }

    /// Steps recorded.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Mean milliseconds a forward pass by kind of work.
    pub fn split_per_pass(&self) -> SplitMs {
        let factor = 1.0 / self.passes.max(1) as f64;
        let [gemm, attention, lm_head, sampling, other] = self.split_ms.map(|ms| ms * factor);
        SplitMs { gemm, attention, lm_head, sampling, other }
    }

    /// Milliseconds a step: nearest-rank percentiles of the steps kept. Allocates.
    pub fn milliseconds(&self) -> Milliseconds {
        let mut sorted = self.steps_ms[..self.steps.min(STEPS_KEPT)].to_vec();
        if sorted.is_empty() {
            return Milliseconds::default();
        }
        sorted.sort_unstable_by(f64::total_cmp);
        let rank = |p: f64| sorted[((p * sorted.len() as f64).ceil() as usize).max(1) - 1];
        Milliseconds {
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            p50: rank(0.5),
            p90: rank(0.9),
            p99: rank(0.99),
            max: rank(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut stats = StepStats::new();
        assert_eq!(stats.milliseconds(), Milliseconds::default());
        (1..=200).rev().for_each(|ms| stats.record_step(f64::from(ms)));
        let ms = stats.milliseconds();
        assert_eq!((ms.mean, ms.p50, ms.p90), (100.5, 100.0, 180.0));
        assert_eq!((ms.p99, ms.max), (198.0, 200.0));
    }

    #[test]
    fn splits_are_means_over_passes() {
        let mut stats = StepStats::new();
        stats.record_operator(Split::Gemm, 6.0);
        stats.passes = 3;
        assert_eq!(stats.split_per_pass().gemm, 2.0);
    }
}
