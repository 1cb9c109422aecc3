//! Tensors of the file to the arena: packed panels, embedding rows, f32 vectors, rotary tables.
//!
//! The arena is cut into tasks of half a megabyte. A thread that claims one makes its pages
//! present, which is most of the time that a load takes, fills them while they are warm in its
//! cache, and drops the pages of the file that they came from: the model is resident once.
//! Afterwards nothing reads the file.
//!
//! | file | what it holds |
//! |---|---|
//! | `tensors` | rows of matrices, vectors and rotary tables, checked and packed or decoded |
//! | `threads` | the threads, their queue of tasks, and the report of progress |

mod tensors;
mod threads;

pub use threads::Threads;

use super::plan::Plan;
use super::weights::{WeightKind, WeightPlan};
use crate::gguf::Gguf;
use crate::model::{Error, Network};
use dllm_arena::pages::{HUGE_PAGE_BYTES, PAGE_BYTES, prefault};
use dllm_arena::{Region, Span};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use tensors::{MatrixRows, RopeTable, read_vector};

/// Bytes of the arena that a thread fills at a time: with the bytes of the file that they come
/// from they stay in a core's second cache (a megabyte), and tails are short. Whole pages, so that
/// each page after the weights is some task's.
const TASK_BYTES: usize = 1 << 19;

/// Fills the read-only part of `region` from the tensors of the file, as `plan` lays it out, and
/// makes the rest of it present. `progress` is called with the bytes dealt with so far, of
/// `region.bytes()`.
///
/// # Errors
/// [`Error::NotFinite`] for a scale, norm weight or bias that is NaN or infinite; of several, the
/// first in the order of the plan.
pub fn fill(
    gguf: &Gguf,
    model: &Network,
    plan: &Plan,
    region: &mut Region,
    threads: &Threads<'_>,
    progress: &mut dyn FnMut(usize),
) -> Result<(), Error> {
    let table = RopeTable::new(gguf, model)?;
    if region.asks_for_huge_pages() {
        prefault_in_huge_pages(region, threads);
    }
    let rest = rest(plan.fixed_bytes, region.bytes());
    let spans: Vec<Span> = plan.weights.iter().map(|weight| weight.span).chain([rest]).collect();
    let mut parts = region.split_mut(&spans).into_iter();
    let mut tasks = Vec::with_capacity(spans.iter().map(|s| s.bytes / TASK_BYTES + 1).sum());
    for (weight, part) in plan.weights.iter().zip(&mut parts) {
        // Pieces start at a multiple of what can be filled by itself.
        let unit_bytes = match weight.kind {
            WeightKind::Embedding(matrix) => MatrixRows::new(gguf, matrix).group_bytes(),
            WeightKind::Panels(matrix) => MatrixRows::new(gguf, matrix).panel_bytes(),
            WeightKind::Vector(_) => size_of::<f32>(),
            WeightKind::RopeCos | WeightKind::RopeSin => table.row_bytes(),
        };
        let unit_bytes = unit_bytes.max(1);
        let units = (TASK_BYTES / unit_bytes).max(1);
        let piece = |(at, to)| Task { to, weight: Some(weight), first_unit: at * units };
        tasks.extend(part.chunks_mut(units * unit_bytes).enumerate().map(piece));
    }
    for to in parts.flat_map(|part| part.chunks_mut(TASK_BYTES)) {
        tasks.push(Task { to, weight: None, first_unit: 0 });
    }
    let work = |group: &mut Vec<u8>, task: Task<'_, '_>| task.run(gguf, &table, group);
    let result = threads.run(tasks, work, progress);
    // The pages of the file that two pieces had in common.
    for index in plan.weights.iter().filter_map(tensor) {
        gguf.release(&gguf.tensors()[index]);
    }
    result
}

/// The model's hash (see [`Gguf::hash_with`]), with all tensors of the file read by several threads
/// and dropped again. `progress` is called with the bytes read so far.
pub fn hash(gguf: &Gguf, threads: &Threads<'_>, progress: &mut dyn FnMut(usize)) -> String {
    let tensors = gguf.tensors();
    let hashes: Vec<[AtomicU64; 2]> = tensors.iter().map(|_| Default::default()).collect();
    // The largest first, so that the threads end together.
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(tensors[index].bytes), index));
    let read = |(): &mut (), index: usize| {
        let hash = gguf.tensor_hash_releasing(&tensors[index]);
        // The end of the threads orders these with the reading below.
        hashes[index][0].store(hash as u64, Ordering::Relaxed);
        hashes[index][1].store((hash >> 64) as u64, Ordering::Relaxed);
        Ok::<usize, Infallible>(tensors[index].bytes)
    };
    let Ok(()) = threads.run(order, read, progress);
    let whole = |[low, high]: [AtomicU64; 2]| {
        u128::from(low.into_inner()) | u128::from(high.into_inner()) << 64
    };
    let hashes: Vec<u128> = hashes.into_iter().map(whole).collect();
    gguf.hash_with(&hashes)
}

/// Makes all of the region present before it is filled: a task is less than a huge page, and two
/// threads that meet in one would both clear one for it.
fn prefault_in_huge_pages(region: &mut Region, threads: &Threads<'_>) {
    /// Enough that threads seldom meet, even where a page straddles two pieces.
    const PIECE_BYTES: usize = 4 * HUGE_PAGE_BYTES;
    let bytes = region.bytes();
    let whole = region.span_mut::<u8>(Span { offset: 0, bytes });
    let make_present = |(): &mut (), piece: &mut [u8]| {
        prefault(piece);
        Ok::<usize, Infallible>(0)
    };
    let Ok(()) = threads.run(whole.chunks_mut(PIECE_BYTES).collect(), make_present, &mut |_| ());
}

/// The whole pages after the weights; the one that the last weight ends in is that one's.
fn rest(fixed_bytes: usize, region_bytes: usize) -> Span {
    let offset = fixed_bytes.next_multiple_of(PAGE_BYTES).min(region_bytes);
    Span { offset, bytes: region_bytes - offset }
}

/// Which tensor a weight comes from; none for a table.
fn tensor(weight: &WeightPlan) -> Option<usize> {
    match weight.kind {
        WeightKind::Embedding(matrix) | WeightKind::Panels(matrix) => Some(matrix.tensor),
        WeightKind::Vector(vector) => Some(vector.tensor),
        WeightKind::RopeCos | WeightKind::RopeSin => None,
    }
}

/// A piece of the arena, and the weight that it is a piece of. Without one it only has to be
/// present.
struct Task<'a, 'p> {
    to: &'a mut [u8],
    weight: Option<&'p WeightPlan>,
    first_unit: usize,
}

impl Task<'_, '_> {
    /// Returns how many bytes it dealt with; `group` is the thread's own.
    fn run(self, gguf: &Gguf, table: &RopeTable, group: &mut Vec<u8>) -> Result<usize, Error> {
        let Task { to, weight, first_unit: first } = self;
        prefault(to);
        let bytes = to.len();
        let Some(weight) = weight else { return Ok(bytes) };
        match weight.kind {
            WeightKind::Embedding(matrix) => MatrixRows::new(gguf, matrix).copy(first, to)?,
            WeightKind::Panels(matrix) => MatrixRows::new(gguf, matrix).pack(first, group, to)?,
            WeightKind::Vector(vector) => {
                read_vector(gguf, vector, first, bytemuck::cast_slice_mut(to))?;
            }
            WeightKind::RopeCos => table.fill(libm::cos, first, bytemuck::cast_slice_mut(to)),
            WeightKind::RopeSin => table.fill(libm::sin, first, bytemuck::cast_slice_mut(to)),
        }
        Ok(bytes)
    }
}
