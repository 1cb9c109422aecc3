//! GGUF files of random weights at given shapes: models to measure with, not to talk to.
//!
//! A [`SyntheticFile`] is complete: it loads here and, since its keys and tensors are those that
//! their converters write, in llama.cpp and its relatives. Weights have mean zero and a standard
//! deviation of `1 / sqrt(columns)`, so that activations neither grow nor die over many layers.
//! The bytes depend on the recipe alone. Nothing that runs a model uses this module.
//!
//! | file | holds |
//! |---|---|
//! | `recipe` | sizes, the named ones, what they must be; types |
//! | `tensors` | the list of tensors |
//! | `tokens` | a vocabulary of any size |
//! | `header` | keys and tensor table as bytes |
//! | `blocks` | random blocks of every type |
//! | `file` | all of it, written a piece at a time |

mod blocks;
mod error;
mod file;
mod header;
mod recipe;
mod tensors;
mod tokens;

pub use blocks::fill_rows;
pub use error::Error;
pub use file::SyntheticFile;
pub use recipe::{Recipe, Shape, Types};
