//! Matrix multiplications: an item is a panel of 16 output rows against all tokens.
//!
//! The panel's products go to a tile of the worker's own, `[tokens][16]`, that stays in L1 over
//! all of K; from there to the item's columns of the output, a cache line a token.

use super::{Program, Segments};
use crate::plan::{Act, GROUP_PANELS, MatrixPlan, Part, Quantized, Slot};
use crate::sample;
use crate::sample::stats::Record;
use dllm_arena::{Phase, Span, View};
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::gemm::{ActivationKind, Activations, GemmPanelF32, activation_kind, multiply_panel};
use dllm_cpu::ops::{GROUP_LOGITS, SiluMul};

pub(super) fn project(
    program: &Program,
    phase: &Phase<'_>,
    (segments, rows): (&Segments, usize),
    x: &Act,
    parts: &[Part],
    add: bool,
) {
    let inputs = Inputs::new(program, phase, rows, x);
    let tile = &mut program.scratch::<f32>(phase)[..rows * PANEL_ROWS];
    let items = parts.iter().map(|p| p.matrix.panels()).sum();
    while let Some(item) = phase.claim(items) {
        // Parts are in order of their first item, and the first one starts at 0.
        let after = parts.partition_point(|p| p.first_item <= item.index());
        let part = &parts[after - 1];
        inputs.multiply(&part.matrix, item.index() - part.first_item, tile);
        let mut out = item.write(part.out);
        if !part.by_position {
            store(&mut out, 0, tile, add);
            continue;
        }
        for segment in segments.iter() {
            let rows = segment.own_rows();
            let own = &tile[rows.start * PANEL_ROWS..rows.end * PANEL_ROWS];
            store(&mut out, segment.own_keys().start, own, add);
        }
    }
}

pub(super) fn gate_up(
    program: &Program,
    phase: &Phase<'_>,
    rows: usize,
    x: &Act,
    (gate, up): (&MatrixPlan, &MatrixPlan),
    out: Slot,
) {
    let inputs = Inputs::new(program, phase, rows, x);
    let tiles = &mut program.scratch::<f32>(phase)[..2 * rows * PANEL_ROWS];
    let (gate_tile, up_tile) = tiles.split_at_mut(rows * PANEL_ROWS);
    while let Some(item) = phase.claim(gate.panels()) {
        inputs.multiply(gate, item.index(), gate_tile);
        inputs.multiply(up, item.index(), up_tile);
        program.kernels.run(SiluMul { gate: gate_tile, up: up_tile });
        store(&mut item.write(out), 0, gate_tile, false);
    }
}

pub(super) fn lm_head(
    program: &Program,
    phase: &Phase<'_>,
    rows: usize,
    x: &Act,
    matrix: &MatrixPlan,
    out: Slot,
) {
    let inputs = Inputs::new(program, phase, rows, x);
    let tile = &mut program.scratch::<f32>(phase)[..rows * PANEL_ROWS];
    while let Some(item) = phase.claim(matrix.panels()) {
        inputs.multiply(matrix, item.index(), tile);
        store(&mut item.write(out), 0, tile, false);
    }
}

/// Statistics of the logits of [`GROUP_PANELS`] panels an item; no logits are stored.
pub(super) fn lm_head_records(
    program: &Program,
    phase: &Phase<'_>,
    segments: &Segments,
    x: &Act,
    matrix: &MatrixPlan,
    records: Slot,
) {
    let rows = segments.wanted();
    let inputs = Inputs::new(program, phase, rows, x);
    let tile_floats = rows * PANEL_ROWS;
    let tiles = &mut program.scratch::<f32>(phase)[..GROUP_PANELS * tile_floats];
    while let Some(item) = phase.claim(matrix.panels().div_ceil(GROUP_PANELS)) {
        let first = item.index() * GROUP_PANELS;
        let panels = first..matrix.panels().min(first + GROUP_PANELS);
        for (panel, tile) in panels.zip(tiles.chunks_exact_mut(tile_floats)) {
            inputs.multiply(matrix, panel, tile);
        }
        let first = first * PANEL_ROWS;
        let count = (matrix.rows - first).min(GROUP_LOGITS);
        let records = item.write::<Record>(records).into_only();
        for (row, record) in records.iter_mut().take(rows).enumerate() {
            let mut logits = [f32::NEG_INFINITY; GROUP_LOGITS];
            for (to, tile) in logits.chunks_exact_mut(PANEL_ROWS).zip(tiles.chunks(tile_floats)) {
                to.copy_from_slice(&tile[row * PANEL_ROWS..][..PANEL_ROWS]);
            }
            // A padded panel has rows, and a last group panels, that are no token's.
            logits[count..].fill(f32::NEG_INFINITY);
            let Some((rule, _)) = &segments.of_wanted(row).sampling else {
                unreachable!("a pass stores logits or makes choices")
            };
            // Tokens are numbered with 32 bits, in files too.
            *record = sample::record(program.kernels, rule, first as u32, &mut logits);
        }
    }
}

/// A tile to an item's columns from a row on: copied, or added to what is there.
fn store(out: &mut View<'_, f32>, first: usize, tile: &[f32], add: bool) {
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

/// What the matrices of an operator multiply.
struct Inputs<'p> {
    program: &'p Program,
    phase: &'p Phase<'p>,
    rows: usize,
    per_256: Option<Activations<'p>>,
    per_32: Option<Activations<'p>>,
    float: Option<(&'p [f32], usize)>,
}

impl<'p> Inputs<'p> {
    fn new(program: &'p Program, phase: &'p Phase<'p>, rows: usize, x: &Act) -> Inputs<'p> {
        let quantized = |q: Quantized| Activations {
            codes: phase.read(q.codes),
            sums: phase.read(q.sums),
            scales: phase.read(q.scales),
            tokens: rows,
            capacity: program.row_capacity,
        };
        Inputs {
            program,
            phase,
            rows,
            per_256: x.per_256.map(quantized),
            per_32: x.per_32.map(quantized),
            float: x.float.map(|slot| (phase.read(slot), x.float_stride)),
        }
    }

    /// `out[token][row]` for the 16 rows of a panel, bias included.
    fn multiply(&self, matrix: &MatrixPlan, panel: usize, out: &mut [f32]) {
        let kernels = self.program.kernels;
        let offset = matrix.span.offset + panel * matrix.panel_bytes;
        let span = Span { offset, bytes: matrix.panel_bytes };
        match (activation_kind(matrix.dtype), self) {
            (ActivationKind::Per256, Inputs { per_256: Some(x), .. })
            | (ActivationKind::Per32, Inputs { per_32: Some(x), .. }) => {
                multiply_panel(kernels, matrix.dtype, self.phase.fixed(span), *x, out);
            }
            (ActivationKind::Float, &Inputs { float: Some((x, stride)), rows, .. }) => {
                let panel = self.phase.fixed(span);
                kernels.run(GemmPanelF32 { panel, x, stride, tokens: rows, out });
            }
            (kind, _) => unreachable!("the plan gives {} no {kind:?} activations", matrix.dtype),
        }
        if let Some(bias) = matrix.bias {
            let bias: &[f32] = self.phase.fixed(bias);
            let first = panel * PANEL_ROWS;
            add_bias(&bias[first..bias.len().min(first + PANEL_ROWS)], out);
        }
    }
}

/// Adds one bias a row of the panel to every token.
fn add_bias(bias: &[f32], out: &mut [f32]) {
    for token in out.chunks_exact_mut(PANEL_ROWS) {
        for (to, b) in token.iter_mut().zip(bias) {
            *to += b;
        }
    }
}
