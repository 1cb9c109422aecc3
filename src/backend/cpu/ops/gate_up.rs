//! `out = silu(gate x) * (up x)`

use crate::backend::cpu::activations::{Act, Inputs, store};
use crate::backend::cpu::turn::{Slot, Turn};
use crate::backend::cpu::weights::MatrixPlan;
use dllm_arena::PhaseAccess;
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::ops::SiluMul;

/// The two matrices before the feed-forward's middle, one item a panel of both.
#[derive(Clone, Debug)]
pub struct GateUp {
    pub x: Act,
    pub gate: MatrixPlan,
    pub up: MatrixPlan,
    /// f32 `[rows][ff_width, rounded up to 16]`
    pub out: Slot,
    /// Per worker: two tiles.
    pub tiles: Slot,
}

impl GateUp {
    pub(super) fn access(&self) -> PhaseAccess {
        let writes = vec![(self.out, self.gate.panel_columns(self.x.rows))];
        PhaseAccess { reads: self.x.slots(), writes, scratch: vec![self.tiles] }
    }

    pub(super) fn items(&self) -> usize {
        self.gate.panels()
    }

    pub(super) fn run(&self, turn: &Turn<'_>) {
        let inputs = Inputs::new(turn, &self.x);
        let tile_floats = turn.rows * PANEL_ROWS;
        let tiles = &mut turn.phase.scratch::<f32>(self.tiles)[..2 * tile_floats];
        let (gate_tile, up_tile) = tiles.split_at_mut(tile_floats);
        while let Some(item) = turn.phase.claim(self.items()) {
            inputs.multiply(&self.gate, item.index(), gate_tile);
            inputs.multiply(&self.up, item.index(), up_tile);
            turn.kernels.run(SiluMul { gate: gate_tile, up: up_tile });
            store(&mut item.write(self.out), 0, gate_tile, false);
        }
    }
}
