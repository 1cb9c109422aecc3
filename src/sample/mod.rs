//! One row of logits becomes a token and a confidence.
//!
//! Worker threads call [`choose`] for many rows of a step at once: nothing here allocates, scratch
//! comes from the caller, and the result depends on the arguments alone. Exponentials and
//! logarithms are the `libm` crate's, so the bits are the same on every machine.
//!
//! Nothing here knows which position commits; that is `denoise`.
mod dream;
mod filter;
mod llada;
pub mod rng;
mod rule;
pub mod stats;
mod sum;

pub use rule::{ALGORITHMS, Algorithm, Kind, Rule, TOKEN_SET_MAX, TokenSet, UnknownAlgorithm};

/// What a row says: the token for its position and how sure the row is of it. Lies in the arena.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Choice {
    /// Comparable within one step only; its scale depends on the algorithm. Never NaN; minus
    /// infinity for a row without a single finite or positive-infinite allowed logit.
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
    rule: &Rule,
    step: u32,
    position: u32,
    logits: &mut [f32],
    unconditional: Option<&[f32]>,
    scratch: &mut [u32],
) -> Choice {
    prepare(rule, logits, unconditional);
    let peak = stats::peak(logits);
    if peak.logit == f32::NEG_INFINITY {
        return Choice { confidence: f64::NEG_INFINITY, token: lowest_allowed(rule), pad: 0 };
    }
    let (token, confidence) = match rule.algorithm.kind() {
        Kind::Llada => llada::choose(rule, step, position, logits, peak),
        Kind::Dream => dream::choose(rule, step, position, logits, peak, scratch),
    };
    Choice { confidence, token, pad: 0 }
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
    for &token in rule.forbidden.ids().iter().chain([&rule.mask_token]) {
        if let Some(logit) = logits.get_mut(token as usize) {
            *logit = f32::NEG_INFINITY;
        }
    }
}

fn lowest_allowed(rule: &Rule) -> u32 {
    let allowed = |token: &u32| *token != rule.mask_token && !rule.forbidden.contains(*token);
    // At most TOKEN_SET_MAX + 1 tokens are not allowed.
    (0..).find(allowed).unwrap_or(0)
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
        forbidden: TokenSet::default(),
        distrusted: TokenSet::default(),
    }
}

#[cfg(test)]
mod tests;
