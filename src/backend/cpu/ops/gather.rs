//! `to[i] = from[rows[i]]`: the residual stream narrowed to the output rows.

use crate::backend::cpu::turn::{Slot, Turn, row_partition};
use dllm_arena::PhaseAccess;

/// Copies of the output rows.
#[derive(Clone, Debug)]
pub struct Gather {
    /// f32 `[rows][width]`: all rows.
    pub from: Slot,
    /// u32 `[output rows]`: which.
    pub output_rows: Slot,
    /// f32 `[output rows][width]`
    pub to: Slot,
    pub width: usize,
}

impl Gather {
    pub(super) fn access(&self, outputs: usize) -> PhaseAccess {
        let writes = vec![(self.to, row_partition(outputs, 4 * self.width))];
        PhaseAccess { reads: vec![self.from, self.output_rows], writes, scratch: vec![] }
    }

    pub(super) fn run(&self, turn: &Turn<'_>) {
        let x: &[f32] = turn.phase.read(self.from);
        let output_rows: &[u32] = turn.phase.read(self.output_rows);
        while let Some(item) = turn.claim_rows() {
            let block = item.write::<f32>(self.to).into_only();
            for (row, to) in turn.rows_of(&item).zip(block.chunks_exact_mut(self.width)) {
                to.copy_from_slice(&x[output_rows[row] as usize * self.width..][..self.width]);
            }
        }
    }
}
