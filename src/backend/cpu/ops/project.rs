//! Matrices over the same activations: queries, keys and values; attention's output; down.

use crate::backend::cpu::activations::{Act, Inputs, store};
use crate::backend::cpu::keys::KvRows;
use crate::backend::cpu::turn::{Slot, Turn};
use crate::backend::cpu::weights::MatrixPlan;
use dllm_arena::PhaseAccess;
use dllm_cpu::dtype::PANEL_ROWS;

/// One or more matrices over the same activations, one item a panel of 16 output rows.
#[derive(Clone, Debug)]
pub struct Project {
    pub x: Act,
    pub parts: Vec<Part>,
    /// Whether the products are added to what is there: the residual stream.
    pub add: bool,
    /// Per worker: a tile.
    pub tile: Slot,
}

/// One matrix of a [`Project`].
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub matrix: MatrixPlan,
    pub out: Slot,
    /// The operator's first item that belongs to it.
    pub first_item: usize,
    /// For keys and values how they lie, each row at its position; other outputs are row-major,
    /// one row a row of the pass.
    pub kv: Option<KvRows>,
}

impl Project {
    /// `rows`: those that row-major outputs have room for.
    pub(super) fn access(&self, rows: usize) -> PhaseAccess {
        let write = |part: &Part| {
            let partition = match part.kv {
                Some(kv) if kv.by_head => kv.panels_by_head(),
                _ => part.matrix.panel_columns(rows),
            };
            (part.out, partition.starting_at(part.first_item))
        };
        let writes = self.parts.iter().map(write).collect();
        PhaseAccess { reads: self.x.slots(), writes, scratch: vec![self.tile] }
    }

    pub(super) fn items(&self) -> usize {
        self.parts.iter().map(|part| part.matrix.panels()).sum()
    }

    pub(super) fn run(&self, turn: &Turn<'_>) {
        let inputs = Inputs::new(turn, &self.x);
        let tile = &mut turn.phase.scratch::<f32>(self.tile)[..turn.rows * PANEL_ROWS];
        let items = self.items();
        while let Some(item) = turn.phase.claim(items) {
            // Parts are in order of their first item, and the first one starts at 0.
            let after = self.parts.partition_point(|part| part.first_item <= item.index());
            let part = &self.parts[after - 1];
            inputs.multiply(&part.matrix, item.index() - part.first_item, tile);
            let mut out = item.write(part.out);
            if part.kv.is_none() {
                store(&mut out, 0, tile, self.add);
                continue;
            }
            for sequence in turn.pass.batch.iter() {
                let rows = sequence.own_rows();
                let own = &tile[rows.start * PANEL_ROWS..rows.end * PANEL_ROWS];
                store(&mut out, sequence.own_keys().start, own, self.add);
            }
        }
    }
}
