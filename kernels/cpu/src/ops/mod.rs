//! The float operators of a denoising step, each one struct of arguments with one body.
//!
//! Reductions run over eight lanes and end in one fixed tree; everything else is elementwise. No
//! operator allocates, and none knows which tokens other workers have.

mod attention;
mod elementwise;
mod norm;
mod quantize;
mod statistics;

pub use attention::{Attention, KEY_TILE, QUERY_TILE, attention_scratch_floats};
pub use elementwise::{Rope, RopeStyle, SiluMul};
pub use norm::RmsNorm;
pub use quantize::{Quantize32, Quantize256};
pub use statistics::{GROUP_LOGITS, GroupStatistics, Statistics, Weights};
