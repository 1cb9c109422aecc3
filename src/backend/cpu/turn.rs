//! What operators stand on: slots of buffers, stages of a layer, a worker's turn at an operator.

use crate::backend::pass::Pass;
use crate::sample::stats::Record;
use dllm_arena::{Item, Partition, Phase};
use dllm_cpu::Kernels;
use std::ops::Range;

/// Rows of a work item of the row-wise operators (norms, quantization): enough for a call to be
/// cheap, few enough for short sequences to spread over threads.
pub const ROW_ITEM: usize = 4;

/// What a worker's part of an operator works with.
#[derive(Clone, Copy)]
pub(super) struct Turn<'p> {
    pub phase: &'p Phase<'p>,
    pub kernels: Kernels,
    pub pass: &'p Pass,
    /// The operator's rows in this pass.
    pub rows: usize,
}

impl<'p> Turn<'p> {
    /// The next item of a row-wise operator.
    pub fn claim_rows(&self) -> Option<Item<'p>> {
        self.phase.claim(row_items(self.rows))
    }

    /// The rows of such an item, of which the last may have fewer than [`ROW_ITEM`].
    pub fn rows_of(&self, item: &Item<'_>) -> Range<usize> {
        let first = item.index() * ROW_ITEM;
        first..self.rows.min(first + ROW_ITEM)
    }
}

/// Items of a row-wise operator over `rows` rows.
pub(super) fn row_items(rows: usize) -> usize {
    rows.div_ceil(ROW_ITEM)
}

/// [`ROW_ITEM`] whole rows an item, of as many rows as there is room for.
pub(super) fn row_partition(rows: usize, row_bytes: usize) -> Partition {
    Partition::blocks(rows / ROW_ITEM, ROW_ITEM * row_bytes)
}

/// Index of a buffer in [`Plan::buffers`](super::Plan::buffers), and of its slot in the arena.
pub type Slot = usize;

/// Records that fill whole cache lines, three of them.
const RECORDS_ALIGN: usize = 8;

/// Bytes of one group's records of all output rows: whole cache lines, so that no two workers
/// write one.
pub(super) fn record_row_bytes(outputs: usize) -> usize {
    outputs.next_multiple_of(RECORDS_ALIGN).saturating_mul(size_of::<Record>())
}

/// Stages of a layer, in order. The operators before the first layer and after the last have stages
/// of their own.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    Embed,
    AttnNorm,
    Qkv,
    Keys,
    Attend,
    /// Quantization of attention's output; residual rows gathered in the last layer.
    Attended,
    Output,
    FfnNorm,
    GateUp,
    /// Quantization of the hidden rows.
    Hidden,
    Down,
    OutputNorm,
    LmHead,
    Choose,
}

impl Stage {
    pub const COUNT: usize = Stage::Choose as usize + 1;
}
