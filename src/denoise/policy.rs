//! Unmasking policies: which of a step's candidates commit, given how sure each row is.

use crate::sample::rng::{self, Stream};
use crate::sample::{Algorithm, Choice};
use std::cmp::Ordering;

/// How many of a step's candidates commit: the unmasking policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The kind's own loop: shares of the steps asked for, whatever the confidence.
    Steps,
    /// All whose certainty is at least this; always the surest one.
    Threshold(f64),
    /// As many of the surest as keep `(n + 1)(1 - certainty of the n-th)` within this; always one.
    Factor(f64),
}

/// A position that may get a token at this step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Where the token would go.
    pub position: u32,
    /// The row of logits that predicts it. Two positions may need the same row (0, when shifted).
    pub row: u32,
}

/// A step's way to select.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Selection {
    /// That many of the largest confidence.
    Best {
        /// Candidates to commit; all when there are fewer.
        count: u32,
    },
    /// That many drawn without replacement from `softmax(confidence / heat)`.
    Drawn {
        /// Candidates to commit; all when there are fewer.
        count: u32,
        /// `alg_temp`, above 0.
        heat: f64,
        /// Key of the random numbers.
        seed: u64,
        /// Index of the step.
        step: u32,
    },
    /// All that are at least that sure; always the best one.
    Sure {
        /// How confidence is measured.
        algorithm: Algorithm,
        /// From 0 to 1.
        threshold: f64,
    },
    /// The best n, n the largest with `(n + 1)(1 - certainty of the n-th) <= factor`; at least one.
    Within {
        /// How confidence is measured.
        algorithm: Algorithm,
        /// Above 0.
        factor: f64,
    },
}

/// Scratch for as many candidates as there can be; taken once.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    keys: Box<[f64]>,
    order: Box<[u32]>,
}

impl Scratch {
    /// For up to `candidates_max`.
    pub(super) fn new(candidates_max: usize) -> Scratch {
        Scratch { keys: touched(0.0, candidates_max), order: touched(0, candidates_max) }
    }
}

/// `count` times `value`, written now: memory that is only promised would fault in a step.
pub(super) fn touched<T: Copy>(value: T, count: usize) -> Box<[T]> {
    // An allocation of known zeros may be left to the system, so the value is hidden.
    std::iter::repeat_n(std::hint::black_box(value), count).collect()
}

impl Selection {
    /// The picked candidates' indices into `candidates` and `choices` (of one length), ascending.
    /// Equal confidence: the lower position, which is the lower index.
    pub(super) fn among<'s>(
        self,
        candidates: &[Candidate],
        choices: &[Choice],
        scratch: &'s mut Scratch,
    ) -> &'s [u32] {
        let most = candidates.len().min(choices.len());
        let keys = &mut scratch.keys[..most];
        let order = &mut scratch.order[..most];
        order.iter_mut().zip(0..).for_each(|(slot, index)| *slot = index);
        for ((key, candidate), choice) in keys.iter_mut().zip(candidates).zip(choices) {
            *key = self.key(candidate.position, choice.confidence);
        }
        let rank = |&a: &u32, &b: &u32| {
            let (a, b) = (a as usize, b as usize);
            larger(keys[a], keys[b])
                .then(larger(choices[a].confidence, choices[b].confidence))
                .then(a.cmp(&b))
        };
        let count = match self {
            Selection::Best { count } | Selection::Drawn { count, .. } => most.min(count as usize),
            Selection::Sure { threshold, .. } => {
                keys.iter().filter(|key| **key >= threshold).count().max(1).min(most)
            }
            Selection::Within { factor, .. } => {
                order.sort_unstable_by(rank);
                let holds = |&(n, index): &(usize, &u32)| {
                    (n + 1) as f64 * (1.0 - keys[*index as usize]) <= factor
                };
                let last = (1..).zip(order.iter()).filter(holds).last();
                last.map_or(1, |(n, _)| n).min(most)
            }
        };
        if count < most {
            order.select_nth_unstable_by(count, rank);
        }
        let picked = &mut order[..count];
        picked.sort_unstable();
        picked
    }

    /// What the candidates are ranked by. The largest of `c / heat` plus Gumbel noise are draws
    /// without replacement from the softmax (Kool, van Hoof, Welling, "Stochastic beams and where
    /// to find them", 2019).
    fn key(self, position: u32, confidence: f64) -> f64 {
        match self {
            Selection::Best { .. } => confidence,
            Selection::Sure { algorithm, .. } | Selection::Within { algorithm, .. } => {
                algorithm.certainty(confidence)
            }
            Selection::Drawn { heat, seed, step, .. } => {
                let words = rng::draw(seed, step, position, Stream::Position, 0);
                confidence / heat + rng::gumbel(rng::fraction_bits(words[0], words[1]))
            }
        }
    }
}

/// Larger numbers first; adding 0 makes both zeros the same.
fn larger(a: f64, b: f64) -> Ordering {
    (b + 0.0).total_cmp(&(a + 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(pick: Selection, confidences: &[f64]) -> Vec<u32> {
        let choice = |&confidence| Choice { confidence, token: 1, pad: 0 };
        let choices: Vec<Choice> = confidences.iter().map(choice).collect();
        let positions = 10..10 + confidences.len() as u32;
        let candidates: Vec<Candidate> =
            positions.map(|p| Candidate { position: p, row: p }).collect();
        let mut scratch = Scratch::new(confidences.len());
        pick.among(&candidates, &choices, &mut scratch).to_vec()
    }

    #[test]
    fn the_most_confident_then_the_lower_position() {
        let confidences = [0.2, 0.9, 0.5, 0.9, 0.5, 0.5];
        let best = |count| among(Selection::Best { count }, &confidences);
        assert!(best(0).is_empty());
        assert_eq!(best(1), [1]);
        assert_eq!(best(2), [1, 3]);
        assert_eq!(best(3), [1, 2, 3]);
        assert_eq!(best(5), [1, 2, 3, 4, 5]);
        assert_eq!(best(9), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn zeros_are_equal_and_minus_infinity_is_last() {
        assert_eq!(among(Selection::Best { count: 1 }, &[-0.0, 0.0]), [0]);
        assert_eq!(among(Selection::Best { count: 1 }, &[0.0, -0.0]), [0]);
        assert_eq!(among(Selection::Best { count: 1 }, &[f64::NEG_INFINITY, -5.0]), [1]);
        assert_eq!(among(Selection::Best { count: 2 }, &[f64::NEG_INFINITY; 3]), [0, 1]);
    }

    const MARGIN: Algorithm = Algorithm::TopkMargin;

    #[test]
    fn a_threshold_takes_all_that_reach_it_and_always_one() {
        let sure = |threshold, confidences: &[f64]| {
            among(Selection::Sure { algorithm: MARGIN, threshold }, confidences)
        };
        assert_eq!(sure(0.9, &[0.95, 0.2, 0.9, 0.89]), [0, 2]);
        assert_eq!(sure(0.9, &[0.1, 0.3, 0.2]), [1]);
        assert_eq!(sure(0.9, &[0.3, 0.3, 0.2]), [0]);
        assert_eq!(sure(1.0, &[1.0, 1.0]), [0, 1]);
        assert_eq!(sure(0.9, &[0.5]), [0]);
        assert_eq!(sure(0.9, &[f64::NEG_INFINITY; 2]), [0]);
        assert!(sure(0.9, &[]).is_empty());
    }

    #[test]
    fn a_factor_takes_the_longest_run_that_holds() {
        let within = |factor, confidences: &[f64]| {
            among(Selection::Within { algorithm: MARGIN, factor }, confidences)
        };
        // (n + 1)(1 - c_n) of the sorted ones: 0.2, 0.6, 1.6, 4.5.
        let confidences = [0.6, 0.9, 0.1, 0.8];
        assert_eq!(within(0.1, &confidences), [1]);
        assert_eq!(within(0.5, &confidences), [1]);
        assert_eq!(within(0.61, &confidences), [1, 3]);
        assert_eq!(within(1.61, &confidences), [0, 1, 3]);
        assert_eq!(within(5.0, &confidences), [0, 1, 2, 3]);
        // Of equals the lower position.
        assert_eq!(within(0.5, &[0.7, 0.7]), [0]);
        assert_eq!(within(1e-9, &[1.0, 1.0, 1.0]), [0, 1, 2]);
        assert_eq!(within(1.0, &[f64::NEG_INFINITY; 3]), [0]);
        assert!(within(1.0, &[]).is_empty());
    }

    #[test]
    fn entropies_count_as_probabilities() {
        let certainties = [0.95_f64, 0.5, 0.9];
        let entropies = certainties.map(f64::ln);
        let pick = Selection::Sure { algorithm: Algorithm::Entropy, threshold: 0.89 };
        assert_eq!(among(pick, &entropies), [0, 2]);
        let pick = Selection::Within { algorithm: Algorithm::Entropy, factor: 0.31 };
        assert_eq!(among(pick, &entropies), [0, 2]);
    }

    /// Draws two of four without replacement many times; the probability of each pair follows from
    /// drawing one after the other.
    #[test]
    fn draws_without_replacement_follow_the_softmax() {
        let confidences = [0.9_f64, 0.1, 0.5, 0.4];
        let heat = 0.4;
        let weights = confidences.map(|c| (c / heat).exp());
        let total: f64 = weights.iter().sum();
        let draws = 20_000;
        let mut counts = [[0_u32; 4]; 4];
        for step in 0..draws {
            let picked = among(Selection::Drawn { count: 2, heat, seed: 3, step }, &confidences);
            assert_eq!(picked.len(), 2);
            counts[picked[0] as usize][picked[1] as usize] += 1;
        }
        let mut chi = 0.0;
        for a in 0..4 {
            for b in a + 1..4 {
                let (first, second) = (weights[a] / total, weights[b] / total);
                let either = first * second / (1.0 - first) + second * first / (1.0 - second);
                let mean = either * f64::from(draws);
                chi += (f64::from(counts[a][b]) - mean).powi(2) / mean;
            }
        }
        // 99.9 % of chi-square with 5 degrees of freedom.
        assert!(chi < 20.52, "{chi}: {counts:?}");
    }

    #[test]
    fn a_tiny_heat_takes_the_best() {
        let confidences = [-0.5, -0.25, -0.75, -0.25];
        for heat in [1e-12, f64::MIN_POSITIVE] {
            let pick = Selection::Drawn { count: 2, heat, seed: 1, step: 0 };
            assert!(among(pick, &confidences).iter().all(|i| [1, 3].contains(i)), "{heat}");
        }
    }
}
