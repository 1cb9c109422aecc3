//! The LM head: logits of the output rows, stored or kept as statistics.

use crate::backend::cpu::activations::{Act, Inputs, store};
use crate::backend::cpu::turn::{Slot, Turn, record_row_bytes};
use crate::backend::cpu::weights::MatrixPlan;
use crate::sample;
use crate::sample::stats::Record;
use dllm_arena::{Partition, PhaseAccess};
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::ops::GROUP_LOGITS;

/// Panels that make a group of logits, of which statistics are kept.
const GROUP_PANELS: usize = GROUP_LOGITS / PANEL_ROWS;

/// Where a step needs no more, an item is a group of logits, of which it keeps statistics;
/// otherwise a panel, whose logits it stores.
#[derive(Clone, Debug)]
pub struct LmHead {
    pub x: Act,
    pub matrix: MatrixPlan,
    /// `[vocabulary / 64, rounded up][output rows]` statistics.
    pub records: Slot,
    /// f32 `[output rows][vocabulary, rounded up to 16]`
    pub logits: Option<Slot>,
    /// The same of a pass without the prompt.
    pub guide: Option<Slot>,
    /// Per worker: four tiles.
    pub tiles: Slot,
}

impl LmHead {
    pub(super) fn access(&self, outputs: usize) -> PhaseAccess {
        let groups = self.matrix.rows.div_ceil(GROUP_LOGITS);
        let columns = self.matrix.panel_columns(outputs);
        let mut writes = vec![(self.records, Partition::blocks(groups, record_row_bytes(outputs)))];
        writes.extend([self.logits, self.guide].into_iter().flatten().map(|slot| (slot, columns)));
        PhaseAccess { reads: self.x.slots(), writes, scratch: vec![self.tiles] }
    }

    /// Where logits are stored, or are not.
    pub(super) fn items(&self, stores: bool) -> usize {
        let panels = self.matrix.panels();
        if stores { panels } else { panels.div_ceil(GROUP_PANELS) }
    }

    pub(super) fn run(&self, turn: &Turn<'_>) {
        let inputs = Inputs::new(turn, &self.x);
        let out = if turn.pass.guide { self.guide } else { self.logits };
        match out.filter(|_| turn.pass.logits) {
            Some(out) => self.store_logits(turn, &inputs, out),
            None => self.keep_records(turn, &inputs),
        }
    }

    fn store_logits(&self, turn: &Turn<'_>, inputs: &Inputs<'_>, out: Slot) {
        let tile = &mut turn.phase.scratch::<f32>(self.tiles)[..turn.rows * PANEL_ROWS];
        while let Some(item) = turn.phase.claim(self.items(true)) {
            inputs.multiply(&self.matrix, item.index(), tile);
            store(&mut item.write(out), 0, tile, false);
        }
    }

    fn keep_records(&self, turn: &Turn<'_>, inputs: &Inputs<'_>) {
        let (matrix, rows) = (&self.matrix, turn.rows);
        let tile_floats = rows * PANEL_ROWS;
        let tiles = &mut turn.phase.scratch::<f32>(self.tiles)[..GROUP_PANELS * tile_floats];
        while let Some(item) = turn.phase.claim(self.items(false)) {
            let first = item.index() * GROUP_PANELS;
            let panels = first..matrix.panels().min(first + GROUP_PANELS);
            for (panel, tile) in panels.zip(tiles.chunks_exact_mut(tile_floats)) {
                inputs.multiply(matrix, panel, tile);
            }
            let first = first * PANEL_ROWS;
            let count = (matrix.rows - first).min(GROUP_LOGITS);
            let records = item.write::<Record>(self.records).into_only();
            for (row, record) in records.iter_mut().take(rows).enumerate() {
                let mut logits = [f32::NEG_INFINITY; GROUP_LOGITS];
                let to = logits.chunks_exact_mut(PANEL_ROWS);
                for (to, tile) in to.zip(tiles.chunks(tile_floats)) {
                    to.copy_from_slice(&tile[row * PANEL_ROWS..][..PANEL_ROWS]);
                }
                // A padded panel has rows, and a last group panels, that are no token's.
                logits[count..].fill(f32::NEG_INFINITY);
                let Some((rule, _)) = &turn.pass.batch.of_output(row).sampling else {
                    unreachable!("a pass stores logits or makes choices")
                };
                // Tokens are numbered with 32 bits, in files too.
                *record = sample::record(turn.kernels, rule, first as u32, &mut logits);
            }
        }
    }
}
