//! One row of logits becomes a token and a confidence.
//!
//! Worker threads call [`choose`] for many rows of a step at once: nothing here allocates, scratch
//! comes from the caller, and the result depends on the arguments alone. Exponentials and
//! logarithms are the kernels' and the `libm` crate's, so the bits are the same on every machine.
//!
//! Nothing here knows which position commits; that is `denoise`.
mod dream;
mod filter;
mod llada;
pub mod rng;
mod rule;
pub mod stats;

pub use rule::{ALGORITHMS, Algorithm, Kind, Rule, TOKEN_SET_MAX, TokenSet, UnknownName};

use dllm_cpu::Kernels;
use dllm_cpu::ops::GROUP_LOGITS;
use rng::Stream;
use stats::{Record, Row};

/// What a row says: the token for its position and how sure the row is of it. Lies in the arena.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Choice {
    /// Comparable within one step only; its scale depends on the algorithm. Never NaN; minus
    /// infinity for a row whose largest allowed logit is not finite, which says nothing.
    pub confidence: f64,
    /// Below the vocabulary's size, and never the mask token.
    pub token: u32,
    /// Keeps the size a multiple of the alignment without hidden bytes; 0.
    pub pad: u32,
}

/// Words of scratch that [`choose`] needs for a row of `vocab` logits: 0, or `vocab` where top-p or
/// top-k are in use.
pub fn scratch_len(rule: &Rule, vocab: usize) -> usize {
    let dream = rule.algorithm.kind() == Kind::Dream;
    if dream && filter::is_used(rule, vocab) { vocab } else { 0 }
}

/// Chooses the token of `position` at `step` from its row of `logits` (`[vocab]`).
///
/// `unconditional` is the row of guidance's second pass (`[vocab]`); without it there is no
/// guidance. `logits` are overwritten: guided, the mask token and forbidden tokens at minus
/// infinity, a NaN at minus infinity, plus infinity at the largest finite number. Equal logits: the
/// lower token. Two positions that share a row each need their own copy only under guidance, which
/// must not be applied twice.
///
/// A row without any allowed logit above minus infinity gives the lowest allowed token.
///
/// # Panics
/// Where `scratch` is shorter than [`scratch_len`].
pub fn choose(
    kernels: Kernels,
    rule: &Rule,
    step: u32,
    position: u32,
    logits: &mut [f32],
    unconditional: Option<&[f32]>,
    scratch: &mut [u32],
) -> Choice {
    prepare(rule, logits, unconditional);
    let row = stats::row(kernels, logits);
    if rule.is_greedy() || row.peak.logit == f32::NEG_INFINITY {
        return choose_best(rule, step, position, &row);
    }
    let (token, confidence) = match rule.algorithm.kind() {
        Kind::Llada => llada::choose(rule, step, position, logits, &row),
        Kind::Dream => dream::choose(kernels, rule, step, position, logits, row.peak, scratch),
    };
    let confidence = if is_overflow(&row) { f64::NEG_INFINITY } else { confidence };
    Choice { confidence, token, pad: 0 }
}

/// Whether a row's largest logit was plus infinity, which is kept as the largest finite number.
fn is_overflow(row: &Row) -> bool {
    row.peak.logit == f32::MAX
}

/// What [`choose`] keeps of the logits of up to 64 tokens from `first` on. They are overwritten:
/// the mask token and forbidden tokens at minus infinity.
pub fn record(
    kernels: Kernels,
    rule: &Rule,
    first: u32,
    logits: &mut [f32; GROUP_LOGITS],
) -> Record {
    for token in refused(rule) {
        let index = token.wrapping_sub(first) as usize;
        if let Some(logit) = logits.get_mut(index) {
            *logit = f32::NEG_INFINITY;
        }
    }
    Record::new(kernels, logits, first)
}

/// As [`choose`], from the statistics of a row alone, for a rule that [is
/// greedy](Rule::is_greedy): the same token and the same bits of confidence.
pub fn choose_best(rule: &Rule, step: u32, position: u32, row: &Row) -> Choice {
    let stats::Peak { logit, token, runner_up } = row.peak;
    if logit == f32::NEG_INFINITY {
        return Choice { confidence: f64::NEG_INFINITY, token: lowest_allowed(rule), pad: 0 };
    }
    let confidence = match rule.algorithm {
        _ if is_overflow(row) => f64::NEG_INFINITY,
        _ if rule.distrust_end.contains(token) => 0.0,
        Algorithm::Random => rng::draw_uniform(rule.seed, step, position, Stream::Confidence),
        Algorithm::TopkMargin => (1.0 - stats::weight(runner_up, logit, 0.0)) / row.sum,
        _ => 1.0 / row.sum,
    };
    Choice { confidence, token, pad: 0 }
}

/// The tokens that are never chosen.
fn refused(rule: &Rule) -> impl Iterator<Item = u32> {
    rule.forbid_end.ids().iter().copied().chain([rule.mask_token])
}

/// Applies guidance and takes out what may not be chosen; no NaN, plus infinity or -0 is left.
fn prepare(rule: &Rule, logits: &mut [f32], unconditional: Option<&[f32]>) {
    if let Some(unconditional) = unconditional
        && rule.cfg_scale > 0.0
    {
        let weight = (rule.cfg_scale + 1.0) as f32;
        for (logit, &base) in logits.iter_mut().zip(unconditional) {
            *logit = weight.mul_add(*logit - base, base);
        }
    }
    for logit in logits.iter_mut() {
        // In this order a NaN becomes minus infinity; adding 0 turns -0 into +0.
        let number = if *logit > f32::NEG_INFINITY { *logit } else { f32::NEG_INFINITY };
        *logit = (if number < f32::MAX { number } else { f32::MAX }) + 0.0;
    }
    for token in refused(rule) {
        if let Some(logit) = logits.get_mut(token as usize) {
            *logit = f32::NEG_INFINITY;
        }
    }
}

fn lowest_allowed(rule: &Rule) -> u32 {
    // At most TOKEN_SET_MAX + 1 tokens are refused.
    (0..).find(|token| refused(rule).all(|refused| refused != *token)).unwrap_or(0)
}

/// A rule of plain settings, mask token 0.
#[cfg(test)]
pub(crate) fn test_rule(algorithm: Algorithm) -> Rule {
    Rule {
        algorithm,
        temperature: 0.0,
        top_p: 1.0,
        top_k: 0,
        mask_token: 0,
        seed: 42,
        cfg_scale: 0.0,
        forbid_end: TokenSet::default(),
        distrust_end: TokenSet::default(),
    }
}

#[cfg(test)]
mod tests;
