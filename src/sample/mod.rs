//! One row of logits becomes a token and a confidence.
//!
//! Worker threads call [`choose`] for many rows of a step at once: nothing here allocates, scratch
//! comes from the caller, and the result depends on the arguments alone. Exponentials and
//! logarithms are the `libm` crate's, so the bits are the same on every machine.
//!
//! Nothing here knows which position commits; that is `denoise`.
pub mod rng;
mod rule;

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

/// Words of scratch that [`choose`] needs for a row of `vocab` logits: 0, or `vocab` when top-p or
/// top-k are in use.
pub fn scratch_len(rule: &Rule, vocab: usize) -> usize {
    let _ = rule;
    vocab
}

/// Chooses the token of `position` at `step` from its row of logits (`[vocab]`).
pub fn choose(
    rule: &Rule,
    step: u32,
    position: u32,
    logits: &mut [f32],
    unconditional: Option<&[f32]>,
    scratch: &mut [u32],
) -> Choice {
    let _ = (rule, step, position, logits, unconditional, scratch);
    Choice::default()
}
