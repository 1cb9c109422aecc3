//! GGUF files of random weights at given shapes: models to measure with, not to talk to.
//!
//! A [`SyntheticFile`] is complete: it loads here and, since its keys and tensors are those that
//! their converters write, in llama.cpp and its relatives. Weights have mean zero and a standard
//! deviation of `1 / sqrt(columns)`, so that activations neither grow nor die over many layers.
//! The bytes depend on the recipe alone. Nothing that runs a model uses this module.
//!
//! | file | holds |
//! |---|---|
//! | `shape` | sizes, the named ones, what they must be |
//! | `tensors` | the list of tensors and their types |
//! | `tokens` | a vocabulary of any size |
//! | `header` | keys and tensor table as bytes |
//! | `blocks` | random blocks of every type |

mod blocks;
mod fault;
mod header;
mod shape;
mod tensors;
mod tokens;

pub use blocks::fill_rows;
pub use fault::Fault;
pub use shape::Shape;
pub use tensors::Types;

use crate::model::Architecture;
use blocks::mix;
use std::io::{self, Write};
use tensors::{Content, Tensor};

/// Bytes made at a time: enough for a write to be cheap, few enough to stay in a cache.
const CHUNK_BYTES: usize = 1 << 18;

/// What a file is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Names the keys, and decides on biases, rotary positions and the vocabulary.
    pub architecture: Architecture,
    /// The sizes.
    pub shape: Shape,
    /// The types of the matrices.
    pub types: Types,
    /// Another seed gives other weights.
    pub seed: u64,
}

/// A file that can be written: its header, and what its tensors will be.
#[derive(Clone, Debug)]
pub struct SyntheticFile {
    recipe: Recipe,
    header: Vec<u8>,
    tensors: Vec<Tensor>,
    bytes: u64,
}

impl SyntheticFile {
    /// Lays out the file of a recipe.
    ///
    /// # Errors
    /// [`Fault`] naming the size that cannot be.
    pub fn new(recipe: Recipe) -> Result<SyntheticFile, Fault> {
        recipe.shape.check(recipe.architecture)?;
        let tensors = tensors::list(&recipe)?;
        let (header, data_bytes) = header::header(&recipe, &tensors)?;
        let bytes = (header.len() as u64).checked_add(data_bytes).ok_or(Fault::TooLarge)?;
        Ok(SyntheticFile { recipe, header, tensors, bytes })
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the file from its start to its end, a piece at a time.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.header)?;
        let mut chunk = Vec::new();
        for (index, tensor) in self.tensors.iter().enumerate() {
            let key = mix(self.recipe.seed ^ mix(index as u64));
            write_tensor(tensor, key, &mut chunk, out)?;
        }
        Ok(())
    }
}

/// The tensor's data, and zeros up to where the next one starts.
fn write_tensor(
    tensor: &Tensor,
    key: u64,
    chunk: &mut Vec<u8>,
    out: &mut impl Write,
) -> io::Result<()> {
    let rows_per_chunk = (CHUNK_BYTES / tensor.row_bytes).max(1);
    for (piece, first) in (0..tensor.rows).step_by(rows_per_chunk).enumerate() {
        let rows = rows_per_chunk.min(tensor.rows - first);
        chunk.resize(rows * tensor.row_bytes, 0);
        let key = mix(key ^ piece as u64);
        match tensor.content {
            Content::Weights => fill_rows(tensor.dtype, tensor.cols, key, chunk),
            Content::Norm => blocks::fill_norm(key, chunk),
            Content::Bias => blocks::fill_bias(key, chunk),
        }
        out.write_all(chunk)?;
    }
    let bytes = tensor.rows * tensor.row_bytes;
    out.write_all(&[0; header::ALIGNMENT][..bytes.next_multiple_of(header::ALIGNMENT) - bytes])
}
