//! Rows of a matrix of the file.

use super::tensors::not_finite;
use crate::gguf::Gguf;
use crate::model::{Fault, Matrix};
use dllm_cpu::decode::first_nonfinite;
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::pack::{pack_panel, panel_bytes};
use std::ops::Range;

/// A matrix of the file, read in groups of 16 rows.
pub struct Source<'a> {
    gguf: &'a Gguf,
    matrix: Matrix,
    bytes: &'a [u8],
    row_bytes: usize,
}

impl<'a> Source<'a> {
    pub fn new(gguf: &'a Gguf, matrix: Matrix) -> Source<'a> {
        let bytes = gguf.data(&gguf.tensors()[matrix.tensor]);
        Source { gguf, matrix, bytes, row_bytes: bytes.len() / matrix.rows }
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
    pub fn copy(&self, first_group: usize, to: &mut [u8]) -> Result<(), Fault> {
        let start = first_group * self.group_bytes();
        let range = start..start + to.len();
        to.copy_from_slice(&self.bytes[range.clone()]);
        // What was copied rather than the file, which somebody may be writing to.
        self.check(to, start)?;
        self.release(range);
        Ok(())
    }

    /// Packs the rows from group `first_group` on, as many as `to` takes: a panel a group.
    pub fn pack(&self, first_group: usize, to: &mut [u8]) -> Result<(), Fault> {
        let start = first_group * self.group_bytes();
        let mut end = start;
        for panel in to.chunks_exact_mut(self.panel_bytes()) {
            let group = &self.bytes[end..self.bytes.len().min(end + self.group_bytes())];
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
    fn check(&self, rows: &[u8], offset: usize) -> Result<(), Fault> {
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
