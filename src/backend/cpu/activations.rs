//! Activations in the forms that matrices need: where they lie, how they are written and read.

use super::turn::{ROW_ITEM, Slot, Turn};
use super::weights::MatrixPlan;
use dllm_arena::{Item, Partition, Span, View};
use dllm_cpu::dtype::{PANEL_ROWS, SUPER_WEIGHTS};
use dllm_cpu::gemm::{
    ActivationKind, Activations, CODE_WORDS, GemmPanelF32, SUM_WORDS, activation_kind,
    multiply_panel,
};
use dllm_cpu::ops::{Quantize32, Quantize256};

/// Activations in the forms that their consumers need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    /// Rows that there is room for.
    pub rows: usize,
    /// Values a row.
    pub cols: usize,
    /// int8 with one scale per 256.
    pub per_256: Option<Quantized>,
    /// int8 with one scale per 32.
    pub per_32: Option<Quantized>,
    /// f32 rows, for float matrices.
    pub float: Option<Slot>,
    /// Floats between those rows.
    pub float_stride: usize,
}

/// The three buffers of quantized activations, see [`Activations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantized {
    /// Codes.
    pub codes: Slot,
    /// Sums.
    pub sums: Slot,
    /// Scales.
    pub scales: Slot,
}

impl Act {
    /// The forms that `kinds` need.
    pub(super) fn narrowed(self, kinds: &[ActivationKind]) -> Act {
        let keep = |kind: ActivationKind| kinds.contains(&kind);
        Act {
            per_256: self.per_256.filter(|_| keep(ActivationKind::Per256)),
            per_32: self.per_32.filter(|_| keep(ActivationKind::Per32)),
            float: self.float.filter(|_| keep(ActivationKind::Float)),
            ..self
        }
    }

    /// All buffers.
    pub(super) fn slots(&self) -> Vec<Slot> {
        let quantized = [self.per_256, self.per_32].into_iter().flatten();
        let mut slots: Vec<_> = quantized.flat_map(|q| [q.codes, q.sums, q.scales]).collect();
        slots.extend(self.float);
        slots
    }

    /// Writes of [`ROW_ITEM`] rows an item into the quantized `[super-block][rows][..]` buffers.
    pub(super) fn quantized_writes(&self) -> Vec<(Slot, Partition)> {
        let (rows, blocks) = (self.rows, self.cols.div_ceil(SUPER_WEIGHTS));
        let partition = |words: usize| {
            let row_bytes = 4 * words;
            Partition::columns(rows / ROW_ITEM, ROW_ITEM * row_bytes, rows * row_bytes, blocks)
        };
        let all = |q: Quantized, scales: usize| {
            let words = [(q.codes, CODE_WORDS), (q.sums, SUM_WORDS), (q.scales, scales)];
            words.map(|(slot, words)| (slot, partition(words)))
        };
        let per_256 = self.per_256.map(|q| all(q, 1));
        let per_32 = self.per_32.map(|q| all(q, 8));
        [per_256, per_32].into_iter().flatten().flatten().collect()
    }
}

/// An item's part of quantized activations.
pub(super) struct ActViews<'i> {
    per_256: Option<Views<'i>>,
    per_32: Option<Views<'i>>,
}

struct Views<'i> {
    codes: View<'i, i32>,
    sums: View<'i, i32>,
    scales: View<'i, f32>,
}

impl<'i> ActViews<'i> {
    pub fn new(item: &'i Item<'_>, act: &Act) -> ActViews<'i> {
        let views = |q: Quantized| Views {
            codes: item.write(q.codes),
            sums: item.write(q.sums),
            scales: item.write(q.scales),
        };
        ActViews { per_256: act.per_256.map(views), per_32: act.per_32.map(views) }
    }

    /// Quantizes the item's row `at` in every form that there is a buffer for.
    pub fn quantize(&mut self, turn: &Turn<'_>, at: usize, row: &[f32]) {
        for (block, x) in row.chunks(SUPER_WEIGHTS).enumerate() {
            if let Some(views) = &mut self.per_256 {
                let codes = &mut views.codes.piece(block)[at * CODE_WORDS..];
                let sums = &mut views.sums.piece(block)[at * SUM_WORDS..];
                let scale = turn.kernels.run(Quantize256 { x, codes, sums });
                views.scales.piece(block)[at] = scale;
            }
            if let Some(views) = &mut self.per_32 {
                let codes = &mut views.codes.piece(block)[at * CODE_WORDS..];
                let sums = &mut views.sums.piece(block)[at * SUM_WORDS..];
                let scales = &mut views.scales.piece(block)[at * 8..];
                turn.kernels.run(Quantize32 { x, codes, sums, scales });
            }
        }
    }
}

/// What the matrices of an operator multiply. An item is a panel of 16 output rows against all
/// rows: its products go to a tile of the worker's own, `[rows][16]`, that stays in L1 over all of
/// K, and from there to the item's columns of the output, a cache line a row.
pub(super) struct Inputs<'p> {
    turn: Turn<'p>,
    per_256: Option<Activations<'p>>,
    per_32: Option<Activations<'p>>,
    float: Option<(&'p [f32], usize)>,
}

impl<'p> Inputs<'p> {
    pub fn new(turn: &Turn<'p>, x: &Act) -> Inputs<'p> {
        let phase = turn.phase;
        let quantized = |q: Quantized| Activations {
            codes: phase.read(q.codes),
            sums: phase.read(q.sums),
            scales: phase.read(q.scales),
            tokens: turn.rows,
            capacity: x.rows,
        };
        Inputs {
            turn: *turn,
            per_256: x.per_256.map(quantized),
            per_32: x.per_32.map(quantized),
            float: x.float.map(|slot| (phase.read(slot), x.float_stride)),
        }
    }

    /// `out[row][column]` for the 16 columns of a panel, bias included.
    pub fn multiply(&self, matrix: &MatrixPlan, panel: usize, out: &mut [f32]) {
        let Turn { phase, kernels, rows, .. } = self.turn;
        let offset = matrix.span.offset + panel * matrix.panel_bytes;
        let span = Span { offset, bytes: matrix.panel_bytes };
        match (activation_kind(matrix.dtype), self) {
            (ActivationKind::Per256, Inputs { per_256: Some(x), .. })
            | (ActivationKind::Per32, Inputs { per_32: Some(x), .. }) => {
                multiply_panel(kernels, matrix.dtype, phase.fixed(span), *x, out);
            }
            (ActivationKind::Float, &Inputs { float: Some((x, stride)), .. }) => {
                let panel = phase.fixed(span);
                kernels.run(GemmPanelF32 { panel, x, stride, tokens: rows, out });
            }
            (kind, _) => unreachable!("the plan gives {} no {kind:?} activations", matrix.dtype),
        }
        if let Some(bias) = matrix.bias {
            let bias: &[f32] = phase.fixed(bias);
            let first = panel * PANEL_ROWS;
            add_bias(&bias[first..bias.len().min(first + PANEL_ROWS)], out);
        }
    }
}

/// Adds one bias a column of the panel to every row.
fn add_bias(bias: &[f32], out: &mut [f32]) {
    for row in out.chunks_exact_mut(PANEL_ROWS) {
        for (to, b) in row.iter_mut().zip(bias) {
            *to += b;
        }
    }
}

/// A tile to an item's columns from a row on: copied, or added to what is there.
pub(super) fn store(out: &mut View<'_, f32>, first: usize, tile: &[f32], add: bool) {
    for (row, from) in (first..).zip(tile.as_chunks::<PANEL_ROWS>().0) {
        let Some(to) = out.piece(row).first_chunk_mut::<PANEL_ROWS>() else { return };
        if add {
            for (to, from) in to.iter_mut().zip(from) {
                *to += from;
            }
        } else {
            *to = *from;
        }
    }
}
