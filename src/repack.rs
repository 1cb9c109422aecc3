//! Tensors of the file to the arena: packed panels, embedding rows, f32 vectors, rotary tables.
//!
//! Tensors are done one after the other, each by all threads, and its pages of the file are
//! dropped as soon as it is packed: the model is resident once. Afterwards nothing reads the file.

use crate::gguf::Gguf;
use crate::model::{Fault, Matrix, Model, Vector};
use crate::plan::{Plan, WeightKind, WeightPlan};
use dllm_arena::Region;
use dllm_cpu::decode::{decode_row, first_nonfinite};
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::pack::{pack_panel, panel_bytes};
use std::sync::Mutex;

/// Panels that a thread takes at a time: a few hundred kilobytes, so that tails are short.
const PANELS_PER_TASK: usize = 16;

/// Fills the read-only part of `region` as `plan` lays it out, on `threads` threads. `progress` is
/// called with the bytes filled so far, of `plan.fixed_bytes`.
///
/// # Errors
/// [`Fault::NotFinite`] for a scale, norm weight or bias that is NaN or infinite.
pub fn fill(
    gguf: &Gguf,
    model: &Model,
    plan: &Plan,
    region: &mut Region,
    threads: usize,
    progress: &mut dyn FnMut(usize),
) -> Result<(), Fault> {
    for weight in &plan.weights {
        fill_one(gguf, model, weight, region, threads)?;
        progress(weight.span.offset + weight.span.bytes);
    }
    Ok(())
}

fn fill_one(
    gguf: &Gguf,
    model: &Model,
    weight: &WeightPlan,
    region: &mut Region,
    threads: usize,
) -> Result<(), Fault> {
    match weight.kind {
        WeightKind::Embedding(matrix) => {
            let source = Source::new(gguf, matrix);
            source.check()?;
            region.span_mut::<u8>(weight.span).copy_from_slice(source.bytes);
            source.release();
        }
        WeightKind::Panels(matrix) => {
            let source = Source::new(gguf, matrix);
            source.check()?;
            source.pack(region.span_mut(weight.span), threads);
            source.release();
        }
        WeightKind::Vector(vector) => {
            let values = region.span_mut::<f32>(weight.span);
            read_vector(gguf, vector, values)?;
        }
        WeightKind::RopeCos => {
            rope_table(gguf, model, libm::cos, region.span_mut::<f32>(weight.span))?;
        }
        WeightKind::RopeSin => {
            rope_table(gguf, model, libm::sin, region.span_mut::<f32>(weight.span))?;
        }
    }
    Ok(())
}

/// A matrix of the file.
struct Source<'a> {
    gguf: &'a Gguf,
    matrix: Matrix,
    bytes: &'a [u8],
    row_bytes: usize,
}

impl<'a> Source<'a> {
    fn new(gguf: &'a Gguf, matrix: Matrix) -> Source<'a> {
        let bytes = gguf.data(&gguf.tensors()[matrix.tensor]);
        Source { gguf, matrix, bytes, row_bytes: bytes.len() / matrix.rows }
    }

    fn check(&self) -> Result<(), Fault> {
        check_finite(self.gguf, self.matrix.tensor, self.matrix.dtype, self.bytes, self.row_bytes)
    }

    /// Packs all panels into `to`.
    fn pack(&self, to: &mut [u8], threads: usize) {
        let panel_bytes = panel_bytes(self.matrix.dtype, self.matrix.cols);
        let tasks = to.chunks_mut(PANELS_PER_TASK * panel_bytes).enumerate();
        let tasks = Mutex::new(tasks);
        let work = || {
            // A poisoned lock means that another thread panicked, which the scope passes on.
            while let Some((task, panels)) = tasks.lock().ok().and_then(|mut t| t.next()) {
                for (at, panel) in panels.chunks_mut(panel_bytes).enumerate() {
                    self.pack_one(task * PANELS_PER_TASK + at, panel);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
    }

    fn pack_one(&self, panel: usize, to: &mut [u8]) {
        let mut rows = [&self.bytes[..0]; PANEL_ROWS];
        let first = panel * PANEL_ROWS;
        let count = (self.matrix.rows - first).min(PANEL_ROWS);
        for (at, row) in rows[..count].iter_mut().enumerate() {
            *row = &self.bytes[(first + at) * self.row_bytes..][..self.row_bytes];
        }
        pack_panel(self.matrix.dtype, &rows[..count], self.matrix.cols, to);
    }

    fn release(&self) {
        self.gguf.release(&self.gguf.tensors()[self.matrix.tensor]);
    }
}

fn check_finite(
    gguf: &Gguf,
    tensor: usize,
    dtype: dllm_cpu::dtype::Dtype,
    bytes: &[u8],
    row_bytes: usize,
) -> Result<(), Fault> {
    match first_nonfinite(dtype, bytes) {
        None => Ok(()),
        Some(block) => Err(Fault::NotFinite {
            name: gguf.tensors()[tensor].name.clone(),
            row: block * dtype.block_bytes() / row_bytes,
        }),
    }
}

fn read_vector(gguf: &Gguf, vector: Vector, to: &mut [f32]) -> Result<(), Fault> {
    let bytes = gguf.data(&gguf.tensors()[vector.tensor]);
    check_finite(gguf, vector.tensor, vector.dtype, bytes, bytes.len())?;
    decode_row(vector.dtype, bytes, to);
    Ok(())
}

/// `[rows][dimensions / 2]` of `f(position * theta^(-2 i / dimensions) / factor[i])`, in f64.
fn rope_table(gguf: &Gguf, model: &Model, f: fn(f64) -> f64, to: &mut [f32]) -> Result<(), Fault> {
    let rope = &model.config.rope;
    let half = rope.dimensions / 2;
    let mut factors = vec![1.0f32; half];
    if let Some(vector) = model.rope_factors {
        read_vector(gguf, vector, &mut factors)?;
        if factors.contains(&0.0) {
            let name = gguf.tensors()[vector.tensor].name.clone();
            return Err(Fault::NotFinite { name, row: 0 });
        }
    }
    let frequency = |(i, factor): (usize, &f32)| {
        let exponent = -2.0 * i as f64 / rope.dimensions as f64;
        libm::pow(f64::from(rope.theta), exponent) / f64::from(*factor)
    };
    let frequencies: Vec<f64> = factors.iter().enumerate().map(frequency).collect();
    for (position, row) in to.chunks_exact_mut(half).enumerate() {
        for (value, frequency) in row.iter_mut().zip(&frequencies) {
            *value = f(position as f64 * frequency) as f32;
        }
    }
    Ok(())
}
