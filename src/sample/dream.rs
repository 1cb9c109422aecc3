//! Dream's choice: temperature, top-p, top-k, softmax; then a draw or the best token.
use super::rng::{self, Stream};
use super::stats::{self, Peak};
use super::sum::ExactSum;
use super::{Algorithm, Rule, filter};

/// Token and confidence for a row of clean logits whose largest is finite.
pub(super) fn choose(
    rule: &Rule,
    step: u32,
    position: u32,
    logits: &[f32],
    peak: Peak,
    scratch: &mut [u32],
) -> (u32, f64) {
    let uniform = || rng::draw_uniform(rule.seed, step, position, Stream::Token);
    if !filter::is_used(rule, logits.len()) {
        return decide(rule, logits, peak, uniform, 0..logits.len() as u32);
    }
    let kept = filter::kept(rule, logits, peak.logit, scratch);
    let second = kept.get(1).map(|&token| logits[token as usize]);
    let runner_up = second.unwrap_or(f32::NEG_INFINITY);
    decide(rule, logits, Peak { runner_up, ..peak }, uniform, kept.iter().copied())
}

/// Draws from, or takes the best of, the distribution over `tokens`, and measures it.
fn decide(
    rule: &Rule,
    logits: &[f32],
    peak: Peak,
    uniform: impl FnOnce() -> f64,
    tokens: impl Iterator<Item = u32> + Clone,
) -> (u32, f64) {
    let weigh = |logit: f32| stats::weight(logit, peak.logit, rule.temperature);
    let weights = tokens.clone().map(|token| weigh(logits[token as usize]));
    let total = ExactSum::from_iter(weights.clone()).value();
    let token = if rule.temperature > 0.0 {
        crossing(tokens.zip(weights.clone()), uniform() * total).unwrap_or(peak.token)
    } else {
        peak.token
    };
    let confidence = match rule.algorithm {
        Algorithm::Entropy => negative_entropy(weights, total),
        Algorithm::TopkMargin => (1.0 - weigh(peak.runner_up)) / total,
        _ => weigh(logits[token as usize]) / total,
    };
    (token, confidence)
}

/// The token at which the running sum of the weights first exceeds `target`; the last of any weight
/// where rounding keeps the sum from reaching it.
fn crossing(weighted: impl Iterator<Item = (u32, f64)>, target: f64) -> Option<u32> {
    let mut sum = ExactSum::default();
    let mut last = None;
    for (token, weight) in weighted {
        if weight == 0.0 {
            continue;
        }
        sum.add(weight);
        last = Some(token);
        if sum.value() > target {
            break;
        }
    }
    last
}

/// `sum p ln(p + 1e-10)`, Dream's form.
fn negative_entropy(weights: impl Iterator<Item = f64>, total: f64) -> f64 {
    let terms = weights.filter(|&weight| weight > 0.0).map(|weight| {
        let p = weight / total;
        p * libm::log(p + 1e-10)
    });
    ExactSum::from_iter(terms).value()
}
