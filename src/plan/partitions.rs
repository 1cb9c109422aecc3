//! Which part of a buffer each item of an operator writes.

use super::ROW_ITEM;
use super::buffers::{Act, Quantized, Slot};
use super::heads::{KEY_ITEM, KeyRows};
use super::weights::MatrixPlan;
use dllm_arena::Partition;
use dllm_cpu::dtype::{PANEL_ROWS, SUPER_WEIGHTS};
use dllm_cpu::gemm::{ActivationKind, CODE_WORDS, SUM_WORDS};
use dllm_cpu::ops::QUERY_TILE;

/// The forms of `act` that `kinds` need.
pub(super) fn narrowed(act: Act, kinds: &[ActivationKind]) -> Act {
    let keep = |kind: ActivationKind| kinds.contains(&kind);
    Act {
        per_256: act.per_256.filter(|_| keep(ActivationKind::Per256)),
        per_32: act.per_32.filter(|_| keep(ActivationKind::Per32)),
        float: act.float.filter(|_| keep(ActivationKind::Float)),
        ..act
    }
}

pub(super) fn act_slots(act: Act) -> Vec<Slot> {
    let quantized = [act.per_256, act.per_32].into_iter().flatten();
    let mut slots: Vec<_> = quantized.flat_map(|q| [q.codes, q.sums, q.scales]).collect();
    slots.extend(act.float);
    slots
}

/// Writes of [`ROW_ITEM`] rows an item into `[super-block][rows][..]` buffers.
pub(super) fn act_writes(act: Act, rows: usize) -> Vec<(Slot, Partition)> {
    let blocks = act.cols.div_ceil(SUPER_WEIGHTS);
    let partition = |words: usize| {
        let row_bytes = 4 * words;
        Partition::columns(rows / ROW_ITEM, ROW_ITEM * row_bytes, rows * row_bytes, blocks)
    };
    let all = |q: Quantized, scales: usize| {
        [
            (q.codes, partition(CODE_WORDS)),
            (q.sums, partition(SUM_WORDS)),
            (q.scales, partition(scales)),
        ]
    };
    let per_256 = act.per_256.map(|q| all(q, 1));
    let per_32 = act.per_32.map(|q| all(q, 8));
    [per_256, per_32].into_iter().flatten().flatten().collect()
}

/// [`ROW_ITEM`] whole rows an item.
pub(super) fn row_items(rows: usize, row_bytes: usize) -> Partition {
    Partition::blocks(rows / ROW_ITEM, ROW_ITEM * row_bytes)
}

/// 16 columns of every row an item: a cache line each.
pub(super) fn panel_items(first: usize, matrix: &MatrixPlan, rows: usize) -> Partition {
    let column_bytes = 4 * PANEL_ROWS;
    let panels = matrix.panels();
    Partition::columns(panels, column_bytes, panels * column_bytes, rows).starting_at(first)
}

/// The columns of a panel of keys or values.
pub(super) fn key_panels(
    first: usize,
    matrix: &MatrixPlan,
    rows: usize,
    heads: KeyRows,
) -> Partition {
    if !heads.by_head {
        return panel_items(first, matrix, rows);
    }
    let head_panels = heads.head_width / PANEL_ROWS;
    let (panel_bytes, row_bytes) = (4 * PANEL_ROWS, 4 * heads.head_width);
    Partition::grouped(heads.count, head_panels, panel_bytes, row_bytes, rows).starting_at(first)
}

/// [`KEY_ITEM`] rows of a head an item, one head after the other.
pub(super) fn key_items(rows: usize, heads: KeyRows) -> Partition {
    let (blocks, head_bytes) = (rows / KEY_ITEM, 4 * heads.head_width);
    if heads.by_head {
        return Partition::grouped(heads.count * blocks, 1, head_bytes, head_bytes, KEY_ITEM);
    }
    let row_bytes = 4 * heads.row_stride;
    Partition::grouped(blocks, heads.count, head_bytes, row_bytes, KEY_ITEM).numbered_by_column()
}

/// 16 queries of a head an item, one head after the other.
pub(super) fn query_items(blocks: usize, heads: usize, head_width: usize) -> Partition {
    let (head_bytes, row_bytes) = (4 * head_width, 4 * heads * head_width);
    Partition::grouped(blocks, heads, head_bytes, row_bytes, QUERY_TILE).numbered_by_column()
}
