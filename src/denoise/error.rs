//! What can be wrong with a request's parameters or prompt. Messages name fields in backticks.

use crate::sample::{Algorithm, Kind, TOKEN_SET_MAX};

/// Why a request is refused. Each message names the field and what would fix it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The field has a value outside its range.
    #[error("`{field}` is {value}; it must be {allowed}")]
    OutOfRange {
        /// Its name.
        field: &'static str,
        /// The value given.
        value: f64,
        /// The values that are allowed, in words.
        allowed: &'static str,
    },
    /// The algorithm belongs to the other kind of model.
    #[error(
        "`algorithm` {algorithm} is for {} models, and this one is {kind}; use one of {}",
        algorithm.kind(),
        kind.algorithms().iter().map(|a| a.name()).collect::<Vec<_>>().join(", ")
    )]
    WrongAlgorithm {
        /// The one asked for.
        algorithm: Algorithm,
        /// The model's kind.
        kind: Kind,
    },
    /// The field means nothing for this kind of model.
    #[error("`{field}` has no meaning for {kind} models; leave it out")]
    NotForKind {
        /// Its name.
        field: &'static str,
        /// The model's kind.
        kind: Kind,
    },
    /// Two fields of which one may be given.
    #[error("`threshold` and `factor` exclude each other; give one")]
    ThresholdAndFactor,
    /// `alg_temp` with the algorithm that picks positions by chance alone.
    #[error(
        "`alg_temp` has no meaning for `algorithm` origin, which commits positions by chance; \
         leave it out or use entropy, maskgit_plus or topk_margin"
    )]
    AlgTempWithOrigin,
    /// `threshold` or `factor` with what picks positions by chance.
    #[error(
        "`threshold` and `factor` go by how sure the model is, and {other} picks positions by \
         chance; leave one of them out (a preset's with `preset` exact)"
    )]
    PolicyByChance {
        /// The algorithm's or field's name.
        other: &'static str,
    },
    /// A growing canvas in Dream's plain loop, which knows no blocks.
    #[error(
        "`grow` appends blocks, which Dream's plain loop has none of; give `threshold` or \
         `factor` as well"
    )]
    GrowWithoutBlocks,
    /// `refresh` without a cache.
    #[error("`refresh` says how many passes a cache serves; give `cache` prefix or dual")]
    RefreshWithoutCache,
    /// A cache under classifier-free guidance, whose second pass has other keys.
    #[error(
        "`cfg_scale` needs a second pass with keys of its own, which no cache holds; leave \
         `cfg_scale` out, or give `cache` none"
    )]
    CacheWithGuidance,
    /// A prompt token is not in the vocabulary.
    #[error(
        "prompt token {token} at position {position} is not below the vocabulary's size \
         {vocab_size}"
    )]
    PromptToken {
        /// Where in the prompt.
        position: usize,
        /// The id.
        token: u32,
        /// Ids run below this.
        vocab_size: u32,
    },
    /// The mask token is not in the vocabulary.
    #[error(
        "`mask_token` {token} is not below the vocabulary's size {vocab_size}; give the right one"
    )]
    MaskToken {
        /// The id.
        token: u32,
        /// Ids run below this.
        vocab_size: u32,
    },
    /// Neither a prompt nor anything to generate.
    #[error("the prompt is empty and `max_tokens` is 0; give a prompt or tokens to generate")]
    Empty,
    /// Prompt and generated part together exceed `CANVAS_MAX`.
    #[error("prompt and generated part are {positions} positions; at most {positions_max} fit")]
    TooLong {
        /// Positions asked for.
        positions: usize,
        /// The most there can be.
        positions_max: usize,
    },
    /// More end tokens than a rule holds.
    #[error("{count} end tokens; at most {TOKEN_SET_MAX} are supported")]
    EndTokens {
        /// How many were given.
        count: usize,
    },
    /// The mask token and the forbidden ends are the whole vocabulary.
    #[error(
        "no token is left to choose: the mask token and the forbidden end tokens are the whole \
         vocabulary"
    )]
    NothingAllowed,
}
