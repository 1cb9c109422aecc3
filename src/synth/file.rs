//! The file that a recipe makes, written a piece at a time.

use super::blocks::{fill_bias, fill_norm, fill_rows, mix};
use super::error::Error;
use super::header;
use super::recipe::Recipe;
use super::tensors::{self, Content, Tensor};
use std::io::{self, Write};

/// Bytes made at a time: enough for a write to be cheap, few enough to stay in a cache.
const CHUNK_BYTES: usize = 1 << 18;

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
    /// [`Error`] naming the size that cannot be.
    pub fn new(recipe: Recipe) -> Result<SyntheticFile, Error> {
        recipe.shape.check(recipe.architecture)?;
        let tensors = tensors::list(&recipe)?;
        let (header, data_bytes) = header::header(&recipe, &tensors)?;
        let bytes = (header.len() as u64).checked_add(data_bytes).ok_or(Error::TooLarge)?;
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
            Content::Norm => fill_norm(key, chunk),
            Content::Bias => fill_bias(key, chunk),
        }
        out.write_all(chunk)?;
    }
    let bytes = tensor.rows * tensor.row_bytes;
    out.write_all(&[0; header::ALIGNMENT][..bytes.next_multiple_of(header::ALIGNMENT) - bytes])
}
