//! Statistics of one row of logits: its best token and runner-up, and the sum of its exponentials.
use super::sum::ExactSum;

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

const EMPTY: Peak = Peak { logit: f32::NEG_INFINITY, token: 0, runner_up: f32::NEG_INFINITY };

/// Lanes of the scan: one AVX2 register of `f32`. Maxima are exact, so that the result does not
/// depend on it.
const LANES: usize = 8;

/// Finds the best token and the runner-up in one pass. A NaN is never either of them.
pub fn peak(logits: &[f32]) -> Peak {
    let mut lanes = [EMPTY; LANES];
    let blocks = logits.chunks_exact(LANES);
    let rest = blocks.remainder();
    let rest_start = logits.len() - rest.len();
    let mut start = 0;
    for block in blocks {
        for (lane, &logit) in lanes.iter_mut().zip(block) {
            lane.see(logit, start);
        }
        start += LANES as u32;
    }
    for (lane, peak) in lanes.iter_mut().enumerate() {
        // Blocks were counted by their first token.
        if peak.logit > f32::NEG_INFINITY {
            peak.token += lane as u32;
        }
    }
    let mut best = lanes.into_iter().fold(EMPTY, Peak::better);
    for (token, &logit) in (rest_start as u32..).zip(rest) {
        best.see(logit, token);
    }
    best
}

impl Peak {
    /// Takes one more logit into account, of a token higher than all before.
    fn see(&mut self, logit: f32, token: u32) {
        let wins = logit > self.logit;
        let loser = if wins { self.logit } else { logit };
        self.runner_up = if loser > self.runner_up { loser } else { self.runner_up };
        self.token = if wins { token } else { self.token };
        self.logit = if wins { logit } else { self.logit };
    }

    /// The peak of both parts together: the larger logit, then the lower token.
    fn better(self, other: Peak) -> Peak {
        let other_wins =
            other.logit > self.logit || (other.logit == self.logit && other.token < self.token);
        let (winner, loser) = if other_wins { (other, self) } else { (self, other) };
        Peak { runner_up: winner.runner_up.max(loser.logit), ..winner }
    }
}

/// Logits this far below the largest weigh nothing: even 2^20 of them add less than 2^-72 to a sum
/// that is 1 at least.
const NEGLIGIBLE: f64 = -64.0;

/// `exp((logit - largest) / temperature)`, in [0, 1]; a temperature of 0 counts as 1.
///
/// `logit` is not above `largest`, which is finite.
pub fn weight(logit: f32, largest: f32, temperature: f64) -> f64 {
    let below = f64::from(logit) - f64::from(largest);
    let below = if temperature > 0.0 { below / temperature } else { below };
    if below > NEGLIGIBLE { libm::exp(below) } else { 0.0 }
}

/// Sum of the [`weight`]s of a whole row: the softmax's denominator, at least 1. Order-independent.
pub fn weight_sum(logits: &[f32], largest: f32, temperature: f64) -> f64 {
    let weights = logits.iter().map(|&logit| weight(logit, largest, temperature));
    ExactSum::from_iter(weights).value()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for len in 0..70_u32 {
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
    fn the_first_of_equal_logits_wins_in_every_lane_order() {
        for first in 0..40 {
            for second in first + 1..40 {
                let mut logits = [0.0; 40];
                logits[first] = 3.0;
                logits[second] = 3.0;
                let expected = Peak { logit: 3.0, token: first as u32, runner_up: 3.0 };
                assert_eq!(peak(&logits), expected, "{first} {second}");
            }
        }
    }

    #[test]
    fn weights_at_the_ends() {
        assert_eq!(weight(2.0, 2.0, 0.0), 1.0);
        assert_eq!(weight(f32::NEG_INFINITY, 2.0, 1.0), 0.0);
        assert_eq!(weight(2.0, 2.0, f64::MIN_POSITIVE), 1.0);
        assert_eq!(weight(1.0, 2.0, f64::MIN_POSITIVE), 0.0);
        assert!((weight(1.0, 2.0, 0.5) - 0.1353352832366127).abs() < 1e-16);
        assert_eq!(weight_sum(&[1.0, 1.0, f32::NEG_INFINITY, 1.0], 1.0, 0.3), 3.0);
    }
}
