//! Tensors of the file to the arena: packed panels, embedding rows, f32 vectors, rotary tables.
//!
//! The arena is cut into tasks of half a megabyte. A thread that claims one makes its pages
//! present, which is most of the time that a load takes, fills them while they are warm in its
//! cache, and drops the pages of the file that they came from: the model is resident once.
//! Afterwards nothing reads the file.
//!
//! | file | what it holds |
//! |---|---|
//! | `matrix` | rows of a matrix of the file, checked and packed or copied |
//! | `rope` | the rotary tables |
//! | `threads` | the threads, their queue of tasks, and the report of progress |

mod matrix;
mod rope;
mod threads;

pub use threads::Threads;

use crate::gguf::Gguf;
use crate::model::{Fault, Model, Vector};
use crate::plan::{Plan, WeightKind, WeightPlan};
use dllm_arena::pages::{PAGE_BYTES, populate};
use dllm_arena::{Region, Span};
use dllm_cpu::decode::{decode_row, first_nonfinite};
use matrix::Source;
use rope::Table;

/// Bytes of the arena that a thread fills at a time: with the bytes of the file that they come
/// from they stay in a core's second cache (a megabyte), and tails are short. Whole pages, so that
/// each page after the weights is some task's.
const TASK_BYTES: usize = 1 << 19;

/// Fills the read-only part of `region` as `plan` lays it out, and makes the rest of it present.
/// `progress` is called with the bytes dealt with so far, of `region.bytes()`.
///
/// # Errors
/// [`Fault::NotFinite`] for a scale, norm weight or bias that is NaN or infinite; of several, the
/// first in the order of the plan.
pub fn fill(
    gguf: &Gguf,
    model: &Model,
    plan: &Plan,
    region: &mut Region,
    threads: &Threads<'_>,
    progress: &mut dyn FnMut(usize),
) -> Result<(), Fault> {
    let table = Table::new(gguf, model)?;
    let rest = rest(plan.fixed_bytes, region.bytes());
    let spans: Vec<Span> = plan.weights.iter().map(|weight| weight.span).chain([rest]).collect();
    let mut parts = region.split_mut(&spans).into_iter();
    let mut tasks = Vec::with_capacity(spans.iter().map(|s| s.bytes / TASK_BYTES + 1).sum());
    for (weight, part) in plan.weights.iter().zip(&mut parts) {
        let unit_bytes = unit_bytes(gguf, weight, &table).max(1);
        let units = (TASK_BYTES / unit_bytes).max(1);
        let cut = |(at, to)| Task { to, source: Origin::Weight { weight, first_unit: at * units } };
        tasks.extend(part.chunks_mut(units * unit_bytes).enumerate().map(cut));
    }
    for to in parts.flat_map(|part| part.chunks_mut(TASK_BYTES)) {
        tasks.push(Task { to, source: Origin::Nothing });
    }
    let work = |task: Task<'_, '_>| task.run(gguf, &table);
    let result = threads.run(tasks, work, progress);
    // Pages that two tasks read parts of.
    plan.weights.iter().filter_map(tensor).for_each(|index| gguf.release(&gguf.tensors()[index]));
    result
}

/// The whole pages after the weights; the one that the last weight ends in is that one's.
fn rest(fixed_bytes: usize, region_bytes: usize) -> Span {
    let offset = fixed_bytes.next_multiple_of(PAGE_BYTES).min(region_bytes);
    Span { offset, bytes: region_bytes - offset }
}

/// A piece of the arena and what becomes of it.
struct Task<'a, 'p> {
    to: &'a mut [u8],
    source: Origin<'p>,
}

/// Where the contents of a piece come from.
enum Origin<'p> {
    /// The units (see [`unit_bytes`]) of a weight from `first_unit` on.
    Weight { weight: &'p WeightPlan, first_unit: usize },
    /// Nowhere: it only has to be present.
    Nothing,
}

impl Task<'_, '_> {
    /// Returns how many bytes it dealt with.
    fn run(self, gguf: &Gguf, table: &Table) -> Result<usize, Fault> {
        let to = self.to;
        populate(to);
        let bytes = to.len();
        let Origin::Weight { weight, first_unit } = self.source else { return Ok(bytes) };
        match weight.kind {
            WeightKind::Embedding(matrix) => Source::new(gguf, matrix).copy(first_unit, to)?,
            WeightKind::Panels(matrix) => Source::new(gguf, matrix).pack(first_unit, to)?,
            WeightKind::Vector(vector) => {
                read_vector(gguf, vector, first_unit, bytemuck::cast_slice_mut(to))?;
            }
            WeightKind::RopeCos => {
                table.fill(libm::cos, first_unit, bytemuck::cast_slice_mut(to));
            }
            WeightKind::RopeSin => {
                table.fill(libm::sin, first_unit, bytemuck::cast_slice_mut(to));
            }
        }
        Ok(bytes)
    }
}

/// The smallest piece of a weight that can be filled by itself: 16 rows of a matrix, a value of a
/// vector, a row of a table.
fn unit_bytes(gguf: &Gguf, weight: &WeightPlan, table: &Table) -> usize {
    match weight.kind {
        WeightKind::Embedding(matrix) => Source::new(gguf, matrix).group_bytes(),
        WeightKind::Panels(matrix) => Source::new(gguf, matrix).panel_bytes(),
        WeightKind::Vector(_) => size_of::<f32>(),
        WeightKind::RopeCos | WeightKind::RopeSin => table.row_bytes(),
    }
}

/// Which tensor a weight comes from; none for a table.
fn tensor(weight: &WeightPlan) -> Option<usize> {
    match weight.kind {
        WeightKind::Embedding(matrix) | WeightKind::Panels(matrix) => Some(matrix.tensor),
        WeightKind::Vector(vector) => Some(vector.tensor),
        WeightKind::RopeCos | WeightKind::RopeSin => None,
    }
}

fn not_finite(gguf: &Gguf, tensor: usize, row: usize) -> Fault {
    Fault::NotFinite { name: gguf.tensors()[tensor].name.clone(), row }
}

/// The values of a vector from `first` on, decoded.
fn read_vector(gguf: &Gguf, vector: Vector, first: usize, to: &mut [f32]) -> Result<(), Fault> {
    let value_bytes = vector.dtype.block_bytes();
    let bytes = gguf.data(&gguf.tensors()[vector.tensor]);
    let bytes = &bytes[first * value_bytes..][..to.len() * value_bytes];
    // A float's block is one value, which is what a vector's rows are.
    if let Some(index) = first_nonfinite(vector.dtype, bytes) {
        return Err(not_finite(gguf, vector.tensor, first + index));
    }
    decode_row(vector.dtype, bytes, to);
    Ok(())
}
