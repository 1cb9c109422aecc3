//! Dream's choice: temperature, top-p, top-k, softmax; then a draw or the best token.
use super::rng::{self, Stream};
use super::stats::{self, Peak};
use super::{Algorithm, Rule, filter};
use dllm_cpu::Kernels;

/// Token and confidence for a row of clean logits whose largest is finite.
pub(super) fn choose(
    kernels: Kernels,
    rule: &Rule,
    step: u32,
    position: u32,
    logits: &[f32],
    peak: Peak,
    scratch: &mut [u32],
) -> (u32, f64) {
    let uniform = || rng::draw_uniform(rule.seed, step, position, Stream::Token);
    if !filter::is_used(rule, logits.len()) {
        let weights = stats::weights(kernels, logits, peak.logit, rule.temperature);
        return decide(rule, logits, peak, uniform, (0..).zip(weights));
    }
    let kept = filter::kept(kernels, rule, logits, peak.logit, scratch);
    let second = kept.get(1).map(|&token| logits[token as usize]);
    let runner_up = second.unwrap_or(f32::NEG_INFINITY);
    let weigh = |&token: &u32| stats::weight(logits[token as usize], peak.logit, rule.temperature);
    let weighted = kept.iter().map(|token| (*token, weigh(token)));
    decide(rule, logits, Peak { runner_up, ..peak }, uniform, weighted)
}

/// Draws from, or takes the best of, the distribution over tokens and weights, and measures it.
fn decide(
    rule: &Rule,
    logits: &[f32],
    peak: Peak,
    uniform: impl FnOnce() -> f64,
    weighted: impl Iterator<Item = (u32, f64)> + Clone,
) -> (u32, f64) {
    let weights = weighted.clone().map(|(_, weight)| weight);
    let total = weights.clone().sum::<f64>();
    let token = if rule.temperature > 0.0 {
        crossing(weighted, uniform() * total).unwrap_or(peak.token)
    } else {
        peak.token
    };
    let weigh = |logit: f32| stats::weight(logit, peak.logit, rule.temperature);
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
    let mut sum = 0.0;
    let mut last = None;
    for (token, weight) in weighted {
        if weight == 0.0 {
            continue;
        }
        sum += weight;
        last = Some(token);
        if sum > target {
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
    terms.sum()
}
