//! LLaDA's choice: the best token of the noised logits, and how likely the row itself finds it.
use super::rng::{self, Stream};
use super::stats::{self, Peak, Row};
use super::{Algorithm, Rule};

/// Token and confidence for a row of clean logits whose largest is finite.
pub(super) fn choose(
    rule: &Rule,
    step: u32,
    position: u32,
    logits: &[f32],
    row: &Row,
) -> (u32, f64) {
    let token = noisiest(rule, step, position, logits, row.peak);
    let confidence = if rule.distrust_end.contains(token) {
        0.0
    } else if rule.algorithm == Algorithm::Random {
        rng::draw_uniform(rule.seed, step, position, Stream::Confidence)
    } else {
        stats::weight(logits[token as usize], row.peak.logit, 0.0) / row.sum
    };
    (token, confidence)
}

/// Above the largest Gumbel noise that 52 random bits give, `-ln(2^-53)` = 36.74.
const GUMBEL_MAX: f64 = 37.0;

/// The token with the largest `l - T ln(-ln u)`, `u` drawn for each token by itself: a draw from
/// `softmax(l / T)`. Equal scores: the lower token.
///
/// Tokens that cannot win, whatever or given their random bits, are passed over before a logarithm
/// is taken; that changes no result.
fn noisiest(rule: &Rule, step: u32, position: u32, logits: &[f32], peak: Peak) -> u32 {
    let heat = rule.temperature;
    let words = |pair: u32| rng::draw(rule.seed, step, position, Stream::Noise, pair);
    let score = |logit: f32, bits: u64| f64::from(logit) + heat * rng::gumbel(bits);
    let start_bits = half(words(peak.token / 2), peak.token % 2);
    let mut best = (score(peak.logit, start_bits), peak.token);
    for (pair, two) in (0_u32..).zip(logits.chunks(2)) {
        let can_win = |&logit: &f32| f64::from(logit) + heat * GUMBEL_MAX >= best.0;
        if !two.iter().any(can_win) {
            continue;
        }
        let drawn = words(pair);
        for (side, &logit) in (0_u32..).zip(two) {
            let bits = half(drawn, side);
            if f64::from(logit) + heat * gumbel_bound(bits) < best.0 {
                continue;
            }
            let (token, score) = (2 * pair + side, score(logit, bits));
            if score > best.0 || (score == best.0 && token < best.1) {
                best = (score, token);
            }
        }
    }
    best.1
}

/// Random bits of the first or second token of a pair.
fn half(words: [u32; 4], side: u32) -> u64 {
    match side {
        0 => rng::fraction_bits(words[0], words[1]),
        _ => rng::fraction_bits(words[2], words[3]),
    }
}

/// Not below the Gumbel noise of `bits`, without a logarithm: `-ln u >= 1 - u`, and
/// `1 - u > 2^-(z + 1)` where z is the number of ones that `bits` leads with.
fn gumbel_bound(bits: u64) -> f64 {
    // Larger than ln 2 by more than the error of the logarithms in `gumbel`.
    const LN_2_ABOVE: f64 = std::f64::consts::LN_2 * (1.0 + 1e-9);
    let ones = (bits << (64 - rng::FRACTION_BITS)).leading_ones();
    f64::from(ones + 1) * LN_2_ABOVE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::test_rule;
    use dllm_cpu::Kernels;

    #[test]
    fn the_bound_is_never_below_the_noise() {
        let last = (1_u64 << rng::FRACTION_BITS) - 1;
        for shift in 0..rng::FRACTION_BITS {
            for bits in [last >> shift, !(last >> shift) & last, 1 << shift, last - (1 << shift)] {
                assert!(gumbel_bound(bits) >= rng::gumbel(bits), "{bits:x}");
                assert!(rng::gumbel(bits) < GUMBEL_MAX);
            }
        }
        for index in 0..20_000 {
            let bits = half(rng::draw(7, 0, 0, Stream::Noise, index), index % 2);
            assert!(gumbel_bound(bits) >= rng::gumbel(bits), "{bits:x}");
        }
    }

    #[test]
    fn passing_over_changes_nothing() {
        let mut rule = test_rule(Algorithm::LowConfidence);
        for (case, heat) in [0.01, 0.2, 1.0, 5.0, 1e6].into_iter().enumerate() {
            rule.temperature = heat;
            for step in 0..60 {
                let logits: Vec<f32> = (0..101)
                    .map(|i| rng::draw(case as u64, step, i, Stream::Token, 0)[0] as f32 * 5e-9)
                    .collect();
                let score = |token: u32| {
                    let words = rng::draw(rule.seed, step, 9, Stream::Noise, token / 2);
                    let u = rng::uniform(half(words, token % 2));
                    f64::from(logits[token as usize]) - heat * (-u.ln()).ln()
                };
                let plain = (0..101_u32).max_by(|a, b| score(*a).total_cmp(&score(*b)));
                let peak = stats::row(Kernels::best().unwrap(), &logits).peak;
                let quick = noisiest(&rule, step, 9, &logits, peak);
                assert_eq!(Some(quick), plain, "temperature {heat}, step {step}");
            }
        }
    }
}
