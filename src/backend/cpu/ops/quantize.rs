//! Rows of f32 quantized into activations.

use crate::backend::cpu::activations::{Act, ActViews};
use crate::backend::cpu::turn::{Slot, Turn};
use dllm_arena::PhaseAccess;

/// Quantization into activations.
#[derive(Clone, Debug)]
pub struct Quantize {
    /// f32 rows.
    pub from: Slot,
    pub stride: usize,
    /// The activations to fill; float matrices read `from` as it is.
    pub to: Act,
}

impl Quantize {
    pub(super) fn access(&self) -> PhaseAccess {
        let writes = self.to.quantized_writes();
        PhaseAccess { reads: vec![self.from], writes, scratch: vec![] }
    }

    pub(super) fn run(&self, turn: &Turn<'_>) {
        let x: &[f32] = turn.phase.read(self.from);
        while let Some(item) = turn.claim_rows() {
            let mut acts = ActViews::new(&item, &self.to);
            for (at, row) in turn.rows_of(&item).enumerate() {
                acts.quantize(turn, at, &x[row * self.stride..][..self.to.cols]);
            }
        }
    }
}
