//! `x[row] = embedding[ids[row]]`

use crate::backend::cpu::turn::{Slot, Turn, row_partition};
use crate::model::Matrix;
use dllm_arena::{PhaseAccess, Span};
use dllm_cpu::decode::decode_row;

/// Rows of the embedding, decoded.
#[derive(Clone, Debug)]
pub struct Embed {
    pub span: Span,
    pub matrix: Matrix,
    /// u32 `[rows]`: the tokens.
    pub ids: Slot,
    /// f32 `[rows][width]`: the residual stream.
    pub x: Slot,
}

impl Embed {
    pub(super) fn access(&self, rows: usize) -> PhaseAccess {
        let writes = vec![(self.x, row_partition(rows, 4 * self.matrix.cols))];
        PhaseAccess { reads: vec![self.ids], writes, scratch: vec![] }
    }

    pub(super) fn run(&self, turn: &Turn<'_>) {
        let Matrix { dtype, rows, cols, .. } = self.matrix;
        let embedding: &[u8] = turn.phase.fixed(self.span);
        let row_bytes = embedding.len() / rows;
        let ids: &[u32] = turn.phase.read(self.ids);
        while let Some(item) = turn.claim_rows() {
            let block = item.write::<f32>(self.x).into_only();
            for (row, to) in turn.rows_of(&item).zip(block.chunks_exact_mut(cols)) {
                decode_row(dtype, &embedding[ids[row] as usize * row_bytes..][..row_bytes], to);
            }
        }
    }
}
