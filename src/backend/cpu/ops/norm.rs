//! RMS normalization into activations.

use crate::backend::cpu::activations::{Act, ActViews};
use crate::backend::cpu::turn::{Slot, Turn, row_partition};
use dllm_arena::{PhaseAccess, Span};
use dllm_cpu::ops::RmsNorm;

/// RMS normalization, quantized as its consumers need it.
#[derive(Clone, Debug)]
pub struct Norm {
    /// f32 `[width]`
    pub weight: Span,
    pub epsilon: f32,
    /// f32 `[rows][width]`: the residual stream.
    pub from: Slot,
    pub to: Act,
    /// Per worker: a row.
    pub row: Slot,
}

impl Norm {
    pub(super) fn access(&self) -> PhaseAccess {
        let mut writes = self.to.quantized_writes();
        let rows = || row_partition(self.to.rows, 4 * self.to.cols);
        writes.extend(self.to.float.map(|slot| (slot, rows())));
        PhaseAccess { reads: vec![self.from], writes, scratch: vec![self.row] }
    }

    pub(super) fn run(&self, turn: &Turn<'_>) {
        let (width, epsilon) = (self.to.cols, self.epsilon);
        let x: &[f32] = turn.phase.read(self.from);
        let weight: &[f32] = turn.phase.fixed(self.weight);
        let y = &mut turn.phase.scratch::<f32>(self.row)[..width];
        while let Some(item) = turn.claim_rows() {
            let mut acts = ActViews::new(&item, &self.to);
            let mut float = self.to.float.map(|slot| item.write::<f32>(slot).into_only());
            for (at, row) in turn.rows_of(&item).enumerate() {
                let x = &x[row * width..][..width];
                turn.kernels.run(RmsNorm { x, weight, epsilon, y });
                acts.quantize(turn, at, y);
                if let Some(float) = &mut float {
                    float[at * width..][..width].copy_from_slice(y);
                }
            }
        }
    }
}
