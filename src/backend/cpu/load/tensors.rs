//! Tensors of the file, read in pieces: rows of matrices, vectors, the rotary tables.

use crate::gguf::Gguf;
use crate::model::{Error, Matrix, Network, Vector};
use dllm_cpu::decode::{decode_row, first_nonfinite};
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::pack::{pack_panel, panel_bytes};
use std::ops::Range;

/// The rows of a matrix, read in groups of 16. Whatever is checked and used is a copy: another
/// process may be writing to the file.
pub struct MatrixRows<'a> {
    gguf: &'a Gguf,
    matrix: Matrix,
    bytes: &'a [u8],
    row_bytes: usize,
}

impl<'a> MatrixRows<'a> {
    pub fn new(gguf: &'a Gguf, matrix: Matrix) -> MatrixRows<'a> {
        let bytes = gguf.data(&gguf.tensors()[matrix.tensor]);
        MatrixRows { gguf, matrix, bytes, row_bytes: bytes.len() / matrix.rows }
    }

    /// Bytes of a group in the file.
    pub fn group_bytes(&self) -> usize {
        PANEL_ROWS * self.row_bytes
    }

    /// Bytes of a group's panel.
    pub fn panel_bytes(&self) -> usize {
        panel_bytes(self.matrix.dtype, self.matrix.cols)
    }

    /// Copies the rows from group `first_group` on, as many as `to` takes, as they are.
    pub fn copy(&self, first_group: usize, to: &mut [u8]) -> Result<(), Error> {
        let start = first_group * self.group_bytes();
        let range = start..start + to.len();
        to.copy_from_slice(&self.bytes[range.clone()]);
        self.check(to, start)?;
        self.release(range);
        Ok(())
    }

    /// Packs the rows from group `first_group` on, as many as `to` takes: a panel a group. `group`
    /// is the thread's own and holds one group at a time, which stays in its cache.
    pub fn pack(
        &self,
        first_group: usize,
        group: &mut Vec<u8>,
        to: &mut [u8],
    ) -> Result<(), Error> {
        let start = first_group * self.group_bytes();
        let mut end = start;
        for panel in to.chunks_exact_mut(self.panel_bytes()) {
            let rows = &self.bytes[end..self.bytes.len().min(end + self.group_bytes())];
            group.clear();
            group.extend_from_slice(rows);
            self.check(group, end)?;
            let mut rows = [&group[..0]; PANEL_ROWS];
            let count = group.len() / self.row_bytes;
            for (row, bytes) in rows.iter_mut().zip(group.chunks_exact(self.row_bytes)) {
                *row = bytes;
            }
            pack_panel(self.matrix.dtype, &rows[..count], self.matrix.cols, panel);
            end += group.len();
        }
        self.release(start..end);
        Ok(())
    }

    /// Refuses whole rows, `offset` bytes into the data, of which one is not finite.
    fn check(&self, rows: &[u8], offset: usize) -> Result<(), Error> {
        let dtype = self.matrix.dtype;
        let Some(block) = first_nonfinite(dtype, rows) else { return Ok(()) };
        let row = (offset + block * dtype.block_bytes()) / self.row_bytes;
        Err(not_finite(self.gguf, self.matrix.tensor, row))
    }

    /// Drops the pages of the file that these bytes of the data lie in.
    fn release(&self, range: Range<usize>) {
        self.gguf.release_part(&self.gguf.tensors()[self.matrix.tensor], range);
    }
}

/// The values of a vector from `first` on.
pub fn read_vector(gguf: &Gguf, vector: Vector, first: usize, to: &mut [f32]) -> Result<(), Error> {
    let value_bytes = vector.dtype.block_bytes();
    let bytes = gguf.data(&gguf.tensors()[vector.tensor]);
    decode_row(vector.dtype, &bytes[first * value_bytes..][..to.len() * value_bytes], to);
    match to.iter().position(|value| !value.is_finite()) {
        // A float's block is one value, which is what a vector's rows are.
        Some(index) => Err(not_finite(gguf, vector.tensor, first + index)),
        None => Ok(()),
    }
}

fn not_finite(gguf: &Gguf, tensor: usize, row: usize) -> Error {
    Error::NotFinite { name: gguf.tensors()[tensor].name.clone(), row }
}

/// The frequencies from which both tables are made.
pub struct RopeTable {
    frequencies: Vec<f64>,
}

impl RopeTable {
    /// `theta^(-2 i / dimensions) / factor[i]` for each pair of dimensions, in f64.
    ///
    /// # Errors
    /// A factor in the file that is not positive.
    pub fn new(gguf: &Gguf, model: &Network) -> Result<RopeTable, Error> {
        let rope = &model.config.rope;
        let factors = factors(gguf, model, rope.dimensions / 2)?;
        let frequency = |(i, factor): (usize, &f32)| {
            let exponent = -2.0 * i as f64 / rope.dimensions as f64;
            libm::pow(f64::from(rope.theta), exponent) / f64::from(*factor)
        };
        Ok(RopeTable { frequencies: factors.iter().enumerate().map(frequency).collect() })
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.frequencies.len() * size_of::<f32>()
    }

    /// Rows of `f(position * frequency)`, from position `first` on: as many as `to` takes.
    pub fn fill(&self, f: fn(f64) -> f64, first: usize, to: &mut [f32]) {
        let rows = to.chunks_exact_mut(self.frequencies.len().max(1));
        for (position, row) in (first..).zip(rows) {
            for (value, frequency) in row.iter_mut().zip(&self.frequencies) {
                *value = f(position as f64 * frequency) as f32;
            }
        }
    }
}

/// What the file divides the frequencies by; ones where it does not say.
fn factors(gguf: &Gguf, model: &Network, half: usize) -> Result<Vec<f32>, Error> {
    let mut factors = vec![1.0f32; half];
    let Some(vector) = model.rope_factors else { return Ok(factors) };
    read_vector(gguf, vector, 0, &mut factors)?;
    match factors.iter().position(|factor| *factor <= 0.0) {
        None => Ok(factors),
        Some(index) => Err(Error::Value {
            key: format!("{}[{index}]", gguf.tensors()[vector.tensor].name),
            found: factors[index].to_string(),
            need: "positive".into(),
        }),
    }
}
