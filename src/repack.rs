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
use std::sync::atomic::{AtomicUsize, Ordering};

/// Groups of 16 rows that a thread takes at a time: a few hundred kilobytes, so that tails are
/// short.
const GROUPS_PER_TASK: usize = 16;

/// Fills the read-only part of `region` as `plan` lays it out, on up to `threads` threads.
/// `progress` is called with the bytes filled so far, of `plan.fixed_bytes`.
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
    let available = std::thread::available_parallelism().map_or(1, |count| count.get());
    let threads = threads.min(available);
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
            let group_bytes = PANEL_ROWS * source.row_bytes;
            let copy = |rows: &[&[u8]], to: &mut [u8]| {
                for (to, row) in to.chunks_exact_mut(row_len(rows)).zip(rows) {
                    to.copy_from_slice(row);
                }
            };
            source.fill(region.span_mut(weight.span), group_bytes, threads, copy)
        }
        WeightKind::Panels(matrix) => {
            let Matrix { dtype, cols, .. } = matrix;
            let pack = |rows: &[&[u8]], to: &mut [u8]| pack_panel(dtype, rows, cols, to);
            let to = region.span_mut(weight.span);
            Source::new(gguf, matrix).fill(to, panel_bytes(dtype, cols), threads, pack)
        }
        WeightKind::Vector(vector) => read_vector(gguf, vector, region.span_mut(weight.span)),
        WeightKind::RopeCos => rope_table(gguf, model, libm::cos, region.span_mut(weight.span)),
        WeightKind::RopeSin => rope_table(gguf, model, libm::sin, region.span_mut(weight.span)),
    }
}

/// Bytes of a row of a group, which has one at least.
fn row_len(rows: &[&[u8]]) -> usize {
    rows.first().map_or(1, |row| row.len())
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

    /// Hands every 16 rows, and the `group_bytes` of `to` that they go to, to `put`; checks them;
    /// then drops the tensor's pages of the file.
    fn fill(
        &self,
        to: &mut [u8],
        group_bytes: usize,
        threads: usize,
        put: impl Fn(&[&[u8]], &mut [u8]) + Sync,
    ) -> Result<(), Fault> {
        let tasks = Mutex::new(to.chunks_mut(GROUPS_PER_TASK * group_bytes).enumerate());
        let bad_row = AtomicUsize::new(usize::MAX);
        let work = || {
            // A poisoned lock means that another thread panicked, which the scope passes on.
            while let Some((task, groups)) = tasks.lock().ok().and_then(|mut t| t.next()) {
                for (at, group) in groups.chunks_mut(group_bytes).enumerate() {
                    let first = (task * GROUPS_PER_TASK + at) * PANEL_ROWS;
                    bad_row.fetch_min(self.put_group(first, group, &put), Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // Where the system starts no more threads, those that there are do the work.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        self.gguf.release(&self.gguf.tensors()[self.matrix.tensor]);
        match bad_row.into_inner() {
            usize::MAX => Ok(()),
            row => Err(not_finite(self.gguf, self.matrix.tensor, row)),
        }
    }

    /// Puts up to 16 rows from `first` on; returns the first that is not finite, or `usize::MAX`.
    fn put_group(&self, first: usize, to: &mut [u8], put: impl Fn(&[&[u8]], &mut [u8])) -> usize {
        let count = (self.matrix.rows - first).min(PANEL_ROWS);
        let bytes = &self.bytes[first * self.row_bytes..][..count * self.row_bytes];
        let mut rows = [&bytes[..0]; PANEL_ROWS];
        for (row, bytes) in rows.iter_mut().zip(bytes.chunks_exact(self.row_bytes)) {
            *row = bytes;
        }
        put(&rows[..count], to);
        let dtype = self.matrix.dtype;
        let bad = first_nonfinite(dtype, bytes);
        bad.map_or(usize::MAX, |block| first + block * dtype.block_bytes() / self.row_bytes)
    }
}

fn not_finite(gguf: &Gguf, tensor: usize, row: usize) -> Fault {
    Fault::NotFinite { name: gguf.tensors()[tensor].name.clone(), row }
}

fn read_vector(gguf: &Gguf, vector: Vector, to: &mut [f32]) -> Result<(), Fault> {
    let bytes = gguf.data(&gguf.tensors()[vector.tensor]);
    // A float's block is one value, which is what a vector's rows are.
    if let Some(index) = first_nonfinite(vector.dtype, bytes) {
        return Err(not_finite(gguf, vector.tensor, index));
    }
    decode_row(vector.dtype, bytes, to);
    Ok(())
}

/// `[rows][dimensions / 2]` of `f(position * theta^(-2 i / dimensions) / factor[i])`, in f64.
fn rope_table(gguf: &Gguf, model: &Model, f: fn(f64) -> f64, to: &mut [f32]) -> Result<(), Fault> {
    let rope = &model.config.rope;
    let half = rope.dimensions / 2;
    let factors = rope_factors(gguf, model, half)?;
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

/// What the file divides the frequencies by; ones where it does not say.
fn rope_factors(gguf: &Gguf, model: &Model, half: usize) -> Result<Vec<f32>, Fault> {
    let mut factors = vec![1.0f32; half];
    let Some(vector) = model.rope_factors else { return Ok(factors) };
    read_vector(gguf, vector, &mut factors)?;
    match factors.iter().position(|factor| *factor <= 0.0) {
        None => Ok(factors),
        Some(index) => Err(Fault::Value {
            key: format!("{}[{index}]", gguf.tensors()[vector.tensor].name),
            found: factors[index].to_string(),
            need: "positive".into(),
        }),
    }
}
