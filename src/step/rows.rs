//! Operators over whole rows: embedding, norm, quantization, gathering.

use super::Program;
use crate::model::Matrix;
use crate::plan::{Act, Quantized, ROW_ITEM, Slot};
use dllm_arena::{Item, Phase, Span, View};
use dllm_cpu::decode::decode_row;
use dllm_cpu::dtype::SUPER_WEIGHTS;
use dllm_cpu::gemm::{CODE_WORDS, SUM_WORDS};
use dllm_cpu::ops::{Quantize32, Quantize256, RmsNorm};
use std::ops::Range;

/// The rows of an item, of which the last may have fewer than [`ROW_ITEM`].
fn item_rows(item: &Item<'_>, rows: usize) -> Range<usize> {
    let first = item.index() * ROW_ITEM;
    first..rows.min(first + ROW_ITEM)
}

pub(super) fn embed(
    program: &Program,
    phase: &Phase<'_>,
    rows: usize,
    (span, matrix): (Span, Matrix),
    (ids, x): (Slot, Slot),
) {
    let width = program.config.width;
    let embedding: &[u8] = phase.fixed(span);
    let row_bytes = embedding.len() / matrix.rows;
    let ids: &[u32] = phase.read(ids);
    while let Some(item) = phase.claim(rows.div_ceil(ROW_ITEM)) {
        let block = item.write::<f32>(x).into_only();
        for (row, to) in item_rows(&item, rows).zip(block.chunks_exact_mut(width)) {
            let from = &embedding[ids[row] as usize * row_bytes..][..row_bytes];
            decode_row(matrix.dtype, from, to);
        }
    }
}

pub(super) fn norm(
    program: &Program,
    phase: &Phase<'_>,
    rows: usize,
    weight: Span,
    from: Slot,
    to: &Act,
) {
    let width = program.config.width;
    let x: &[f32] = phase.read(from);
    let weight: &[f32] = phase.fixed(weight);
    let y = &mut program.scratch::<f32>(phase)[..width];
    while let Some(item) = phase.claim(rows.div_ceil(ROW_ITEM)) {
        let mut acts = ActViews::new(&item, to);
        let mut float = to.float.map(|slot| item.write::<f32>(slot).into_only());
        for (at, row) in item_rows(&item, rows).enumerate() {
            let x = &x[row * width..][..width];
            let epsilon = program.config.epsilon;
            program.kernels.run(RmsNorm { x, weight, epsilon, y });
            acts.quantize(program, at, y);
            if let Some(float) = &mut float {
                float[at * width..][..width].copy_from_slice(y);
            }
        }
    }
}

pub(super) fn quantize(
    program: &Program,
    phase: &Phase<'_>,
    rows: usize,
    (from, stride): (Slot, usize),
    to: &Act,
) {
    let x: &[f32] = phase.read(from);
    while let Some(item) = phase.claim(rows.div_ceil(ROW_ITEM)) {
        let mut acts = ActViews::new(&item, to);
        for (at, row) in item_rows(&item, rows).enumerate() {
            acts.quantize(program, at, &x[row * stride..][..to.cols]);
        }
    }
}

pub(super) fn gather(
    program: &Program,
    phase: &Phase<'_>,
    rows: usize,
    from: Slot,
    wanted: Slot,
    to: Slot,
) {
    let width = program.config.width;
    let x: &[f32] = phase.read(from);
    let wanted: &[u32] = phase.read(wanted);
    while let Some(item) = phase.claim(rows.div_ceil(ROW_ITEM)) {
        let block = item.write::<f32>(to).into_only();
        for (row, to) in item_rows(&item, rows).zip(block.chunks_exact_mut(width)) {
            to.copy_from_slice(&x[wanted[row] as usize * width..][..width]);
        }
    }
}

/// An item's part of quantized activations.
struct ActViews<'i> {
    per_256: Option<Views<'i>>,
    per_32: Option<Views<'i>>,
}

struct Views<'i> {
    codes: View<'i, i32>,
    sums: View<'i, i32>,
    scales: View<'i, f32>,
}

impl<'i> ActViews<'i> {
    fn new(item: &'i Item<'_>, act: &Act) -> ActViews<'i> {
        let views = |q: Quantized| Views {
            codes: item.write(q.codes),
            sums: item.write(q.sums),
            scales: item.write(q.scales),
        };
        ActViews { per_256: act.per_256.map(views), per_32: act.per_32.map(views) }
    }

    /// Quantizes the item's row `at` in every form that is asked for.
    fn quantize(&mut self, program: &Program, at: usize, row: &[f32]) {
        for (block, x) in row.chunks(SUPER_WEIGHTS).enumerate() {
            if let Some(views) = &mut self.per_256 {
                let codes = &mut views.codes.piece(block)[at * CODE_WORDS..];
                let sums = &mut views.sums.piece(block)[at * SUM_WORDS..];
                let scale = program.kernels.run(Quantize256 { x, codes, sums });
                views.scales.piece(block)[at] = scale;
            }
            if let Some(views) = &mut self.per_32 {
                let codes = &mut views.codes.piece(block)[at * CODE_WORDS..];
                let sums = &mut views.sums.piece(block)[at * SUM_WORDS..];
                let scales = &mut views.scales.piece(block)[at * 8..];
                program.kernels.run(Quantize32 { x, codes, sums, scales });
            }
        }
    }
}
