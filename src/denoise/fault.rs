//! What can be wrong with a request's settings or prompt.
use crate::sample::{Algorithm, Kind, TOKEN_SET_MAX};
use std::fmt;

/// Why a request is refused. Each message names the setting and what would fix it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// The setting has a value outside its range.
    OutOfRange {
        /// Its name, as on the command line without the dashes.
        setting: &'static str,
        /// The value given.
        value: f64,
        /// The values that are allowed, in words.
        allowed: &'static str,
    },
    /// The algorithm belongs to the other kind of model.
    WrongAlgorithm {
        /// The one asked for.
        algorithm: Algorithm,
        /// The model's kind.
        kind: Kind,
    },
    /// The setting means nothing for this kind of model.
    NotForKind {
        /// Its name.
        setting: &'static str,
        /// The model's kind.
        kind: Kind,
    },
    /// `alg_temp` with the algorithm that picks positions by chance alone.
    AlgTempWithOrigin,
    /// `threshold` or `factor` with what picks positions by chance.
    PaceByChance {
        /// The algorithm's or setting's name.
        other: &'static str,
    },
    /// A growing canvas in Dream's plain loop, which knows no blocks.
    GrowWithoutBlocks,
    /// `refresh` without a cache.
    RefreshWithoutCache,
    /// A cache under classifier-free guidance, whose second pass has other keys.
    CacheWithGuidance,
    /// A prompt token is not in the vocabulary.
    PromptToken {
        /// Where in the prompt.
        position: usize,
        /// The id.
        token: u32,
        /// Ids run below this.
        vocab_size: u32,
    },
    /// The mask token is not in the vocabulary.
    MaskToken {
        /// The id.
        token: u32,
        /// Ids run below this.
        vocab_size: u32,
    },
    /// Neither a prompt nor anything to generate.
    Empty,
    /// Prompt and generated part together exceed `CANVAS_MAX`.
    TooLong {
        /// Positions asked for.
        positions: usize,
        /// The most there can be.
        positions_max: usize,
    },
    /// More end tokens than a rule holds.
    EndTokens {
        /// How many were given.
        count: usize,
    },
    /// The mask token and the forbidden ends are the whole vocabulary.
    NothingAllowed,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::OutOfRange { setting, value, allowed } => {
                write!(f, "{setting} is {value}; it must be {allowed}")
            }
            Fault::WrongAlgorithm { algorithm, kind } => {
                write!(f, "algorithm {algorithm} is for {} models", algorithm.kind())?;
                write!(f, ", and this one is {kind}; use one of")?;
                for (i, known) in kind.algorithms().iter().enumerate() {
                    write!(f, "{} {known}", if i == 0 { "" } else { "," })?;
                }
                Ok(())
            }
            Fault::NotForKind { setting, kind } => {
                write!(f, "{setting} has no meaning for {kind} models; leave it out")
            }
            Fault::AlgTempWithOrigin => f.write_str(
                "alg-temp has no meaning for algorithm origin, which commits positions by chance; \
                 leave it out or use entropy, maskgit_plus or topk_margin",
            ),
            Fault::PaceByChance { other } => write!(
                f,
                "threshold and factor go by how sure the model is, and {other} picks positions by \
                 chance; leave one of them out (a preset's with --preset exact)"
            ),
            Fault::GrowWithoutBlocks => f.write_str(
                "a canvas grows by blocks, which Dream's plain loop has none of; give a threshold \
                 or a factor as well",
            ),
            Fault::RefreshWithoutCache => {
                f.write_str("refresh says how long a cache is kept; give --cache prefix or dual")
            }
            Fault::CacheWithGuidance => f.write_str(
                "cfg-scale needs a second pass with keys of its own, which no cache holds; leave \
                 cfg-scale out, or the cache (--cache none)",
            ),
            Fault::PromptToken { position, token, vocab_size } => write!(
                f,
                "prompt token {token} at position {position} is not below the vocabulary's size \
                 {vocab_size}"
            ),
            Fault::MaskToken { token, vocab_size } => write!(
                f,
                "mask token {token} is not below the vocabulary's size {vocab_size}; give the \
                 right one (--mask-token)"
            ),
            Fault::Empty => f.write_str(
                "the prompt is empty and max-tokens is 0; give a prompt or tokens to generate",
            ),
            Fault::TooLong { positions, positions_max } => write!(
                f,
                "prompt and generated part are {positions} positions; at most {positions_max} fit"
            ),
            Fault::EndTokens { count } => {
                write!(f, "{count} end tokens; at most {TOKEN_SET_MAX} are supported")
            }
            Fault::NothingAllowed => f.write_str(
                "no token is left to choose: the mask token and the forbidden end tokens are the \
                 whole vocabulary",
            ),
        }
    }
}

impl std::error::Error for Fault {}
