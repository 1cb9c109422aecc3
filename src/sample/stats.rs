//! Statistics of a row of logits: its best token and runner-up, and the sum of its exponentials.
//!
//! A row is taken in groups of [`GROUP_LOGITS`], which give a [`Record`] each; [`Row::add`] folds
//! them in order. The LM head makes the records while it has the logits at hand, and [`row`] those
//! of a stored row: the same ones.
use dllm_cpu::Kernels;
use dllm_cpu::ops::{GROUP_LOGITS, GroupStatistics, Weights};
use std::slice::Chunks;

/// What is kept of a group. Lies in the arena.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Record {
    /// Sum of `exp(logit - largest)`; 0 when all are minus infinity.
    sum: f64,
    largest: f32,
    runner_up: f32,
    token: u32,
    /// Keeps the size a multiple of the alignment without hidden bytes; 0.
    pad: u32,
}

impl Record {
    /// The record of the logits of the tokens from `first` on.
    pub fn new(kernels: Kernels, logits: &[f32; GROUP_LOGITS], first: u32) -> Record {
        let group = kernels.run(GroupStatistics { logits });
        // An index is below the group's length.
        let token = first + group.index as u32;
        Record { sum: group.sum, largest: group.largest, runner_up: group.runner_up, token, pad: 0 }
    }
}

/// The largest logits of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// The largest logit; minus infinity when the row has no larger one.
    pub logit: f32,
    /// The first token that has it; 0 when `logit` is minus infinity.
    pub token: u32,
    /// The largest logit among the other tokens, equal to `logit` when two tokens share it.
    pub runner_up: f32,
}

/// A row's statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Its largest logits.
    pub peak: Peak,
    /// Sum of `exp(logit - peak.logit)`: the softmax's denominator, at least 1; 0 when there is no
    /// logit above minus infinity.
    pub sum: f64,
}

impl Row {
    /// A row without logits.
    pub const EMPTY: Row = Row {
        peak: Peak { logit: f32::NEG_INFINITY, token: 0, runner_up: f32::NEG_INFINITY },
        sum: 0.0,
    };

    /// Takes one more group into account, of tokens higher than all before.
    pub fn add(&mut self, group: &Record) {
        let peak = &mut self.peak;
        if group.largest > peak.logit {
            self.sum = self.sum.mul_add(weight(peak.logit, group.largest, 0.0), group.sum);
            let runner_up = peak.logit.max(group.runner_up);
            *peak = Peak { logit: group.largest, token: group.token, runner_up };
        } else if group.largest > f32::NEG_INFINITY {
            self.sum = group.sum.mul_add(weight(group.largest, peak.logit, 0.0), self.sum);
            peak.runner_up = peak.runner_up.max(group.largest);
        }
    }
}

/// The statistics of a stored row.
pub fn row(kernels: Kernels, logits: &[f32]) -> Row {
    let mut row = Row::EMPTY;
    let mut first = 0;
    for group in Groups::new(logits) {
        row.add(&Record::new(kernels, &group, first));
        first += GROUP_LOGITS as u32;
    }
    row
}

/// A row's groups, the last one filled up with minus infinity.
#[derive(Clone, Debug)]
struct Groups<'a>(Chunks<'a, f32>);

impl<'a> Groups<'a> {
    fn new(logits: &'a [f32]) -> Groups<'a> {
        Groups(logits.chunks(GROUP_LOGITS))
    }
}

impl Iterator for Groups<'_> {
    type Item = [f32; GROUP_LOGITS];

    fn next(&mut self) -> Option<[f32; GROUP_LOGITS]> {
        let chunk = self.0.next()?;
        let mut group = [f32::NEG_INFINITY; GROUP_LOGITS];
        group[..chunk.len()].copy_from_slice(chunk);
        Some(group)
    }
}

/// Logits this far below the largest weigh nothing.
const NEGLIGIBLE: f64 = dllm_cpu::math::WEIGHT_MIN;

/// `exp((logit - largest) / temperature)`, in [0, 1]; a temperature of 0 counts as 1.
///
/// `logit` is not above `largest`, which is finite.
pub fn weight(logit: f32, largest: f32, temperature: f64) -> f64 {
    let below = f64::from(logit) - f64::from(largest);
    let below = if temperature > 0.0 { below / temperature } else { below };
    if below > NEGLIGIBLE { libm::exp(below) } else { 0.0 }
}

/// The [`weight`]s of a whole row, in order, to within their rounding.
pub fn weights(
    kernels: Kernels,
    logits: &[f32],
    largest: f32,
    temperature: f64,
) -> impl Iterator<Item = f64> + Clone {
    let temperature = if temperature > 0.0 { temperature } else { 1.0 };
    let weigh = move |logits: [f32; GROUP_LOGITS]| {
        let mut weights = [0.0; GROUP_LOGITS];
        kernels.run(Weights { logits: &logits, largest, temperature, weights: &mut weights });
        weights
    };
    Groups::new(logits).flat_map(weigh).take(logits.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peak(logits: &[f32]) -> Peak {
        let kernels = Kernels::best().unwrap();
        row(kernels, logits).peak
    }

    /// Peak by sorting, which shares nothing with the scan.
    fn sorted_peak(logits: &[f32]) -> Peak {
        let mut order: Vec<usize> = (0..logits.len()).filter(|&i| !logits[i].is_nan()).collect();
        order.sort_by(|&a, &b| logits[b].partial_cmp(&logits[a]).unwrap().then(a.cmp(&b)));
        let at = |n: usize| order.get(n).map_or(f32::NEG_INFINITY, |&i| logits[i]);
        let token = if at(0) == f32::NEG_INFINITY { 0 } else { order[0] as u32 };
        Peak { logit: at(0), token, runner_up: at(1) }
    }

    #[test]
    fn peak_equals_sorting() {
        for len in (0..70_u32).chain([127, 128, 129, 200]) {
            for salt in 0..40 {
                let logit = |i: u32| {
                    let hash = (i + 71 * salt).wrapping_mul(0x9E37_79B9) >> 16;
                    match hash % 23 {
                        21 => f32::NAN,
                        22 => f32::NEG_INFINITY,
                        few => few as f32 - 11.0,
                    }
                };
                let logits: Vec<f32> = (0..len).map(logit).collect();
                assert_eq!(peak(&logits), sorted_peak(&logits), "{logits:?}");
            }
        }
    }

    #[test]
    fn the_first_of_equal_logits_wins_wherever_they_lie() {
        for first in 0..140 {
            for second in first + 1..140 {
                let mut logits = [0.0; 140];
                logits[first] = 3.0;
                logits[second] = 3.0;
                let expected = Peak { logit: 3.0, token: first as u32, runner_up: 3.0 };
                assert_eq!(peak(&logits), expected, "{first} {second}");
            }
        }
    }

    /// Against plain sums, over rising and falling rows: the largest is found at either end.
    #[test]
    fn sums_follow_the_largest() {
        let kernels = Kernels::best().unwrap();
        for len in [1, 63, 64, 65, 1000] {
            for slope in [-0.3, -1e-3, 0.0, 1e-3, 0.3] {
                let logits: Vec<f32> = (0..len).map(|i| i as f32 * slope).collect();
                let Row { peak, sum } = row(kernels, &logits);
                let below = |l: &f32| f64::from(*l) - f64::from(peak.logit);
                let expected: f64 = logits.iter().map(|l| below(l).exp()).sum();
                assert!((sum / expected - 1.0).abs() < 1e-13, "{len} {slope}: {sum} {expected}");
                let total: f64 = weights(kernels, &logits, peak.logit, 0.0).sum();
                assert!((total / expected - 1.0).abs() < 1e-13, "{len} {slope}");
            }
        }
        assert_eq!(row(kernels, &[]), Row::EMPTY);
        assert_eq!(row(kernels, &[f32::NEG_INFINITY; 70]), Row::EMPTY);
    }

    #[test]
    fn weights_at_the_ends() {
        assert_eq!(weight(2.0, 2.0, 0.0), 1.0);
        assert_eq!(weight(f32::NEG_INFINITY, 2.0, 1.0), 0.0);
        assert_eq!(weight(2.0, 2.0, f64::MIN_POSITIVE), 1.0);
        assert_eq!(weight(1.0, 2.0, f64::MIN_POSITIVE), 0.0);
        assert!((weight(1.0, 2.0, 0.5) - 0.1353352832366127).abs() < 1e-16);
        let all = |temperature| {
            let kernels = Kernels::best().unwrap();
            let logits = [2.0, f32::NEG_INFINITY, 1.0, 2.0];
            weights(kernels, &logits, 2.0, temperature).collect::<Vec<f64>>()
        };
        assert_eq!(all(f64::MIN_POSITIVE), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(all(1e6)[..2], [1.0, 0.0]);
        assert!((all(0.5)[2] - 0.1353352832366127).abs() < 1e-14);
    }
}
