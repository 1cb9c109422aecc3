//! A loaded model: load, seal, then run passes and steps.
//!
//! | file | what it holds |
//! |---|---|
//! | `load` | the engine, and how requests are laid out on it |
//! | `sequence` | a request |
//! | `step` | forward passes and denoising steps |
//! | `kv_cache` | which sequence holds which slot, and which rows a pass computes |
//! | `stats` | times |

mod kv_cache;
mod load;
mod sequence;
mod stats;
mod step;
#[cfg(test)]
mod tests;

pub use crate::backend::Counters;
pub use load::{Engine, kind_of};
pub use sequence::Sequence;
pub use stats::{Milliseconds, SplitMs, StepStats};
