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
//! | `tensors` | the tensors of the file as the source of all weights |
//! | `threads` | the threads, their queue of tasks, and the report of progress |

mod matrix;
mod rope;
mod tensors;
mod threads;

pub use rope::Table;
pub use tensors::Tensors;
pub use threads::Threads;

use crate::gguf::Gguf;
use crate::model::{Fault, Model};
use crate::plan::{Plan, WeightKind, WeightPlan};
use dllm_arena::pages::{HUGE_PAGE_BYTES, PAGE_BYTES, populate};
use dllm_arena::{Region, Span};
use std::convert::Infallible;

/// Bytes of the arena that a thread fills at a time: with the bytes of the file that they come
/// from they stay in a core's second cache (a megabyte), and tails are short. Whole pages, so that
/// each page after the weights is some task's.
pub const TASK_BYTES: usize = 1 << 19;

/// Where weights come from, the tables aside: threads take pieces from it side by side.
pub trait Weights: Sync {
    /// Why a piece cannot be had.
    type Fault: Send;

    /// Bytes of the smallest piece of a weight that can be had by itself. Pieces start at a
    /// multiple of it.
    fn unit_bytes(&self, weight: &WeightPlan) -> usize;

    /// Fills `to` with the bytes of the weight, number `index` of the plan, from unit
    /// `first_unit` on.
    ///
    /// # Errors
    /// What is wrong with the piece.
    fn fill(
        &self,
        index: usize,
        weight: &WeightPlan,
        first_unit: usize,
        to: &mut [u8],
    ) -> Result<(), Self::Fault>;
}

/// Fills the read-only part of `region` from the tensors of the file, as `plan` lays it out, and
/// makes the rest of it present. `progress` is called with the bytes dealt with so far, of
/// `region.bytes()`.
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
    let tensors = Tensors::new(gguf);
    let result = fill_from(&tensors, &Table::new(gguf, model)?, plan, region, threads, progress);
    tensors.release(plan);
    result
}

/// As [`fill`], with weights from `weights`.
///
/// # Errors
/// That of the first weight, in the order of the plan, that cannot be had. The region may then be
/// filled anew.
pub fn fill_from<W: Weights>(
    weights: &W,
    table: &Table,
    plan: &Plan,
    region: &mut Region,
    threads: &Threads<'_>,
    progress: &mut dyn FnMut(usize),
) -> Result<(), W::Fault> {
    if region.asks_for_huge_pages() {
        populate_in_huge_pages(region, threads);
    }
    let rest = rest(plan.fixed_bytes, region.bytes());
    let spans: Vec<Span> = plan.weights.iter().map(|weight| weight.span).chain([rest]).collect();
    let mut parts = region.split_mut(&spans).into_iter();
    let mut tasks = Vec::with_capacity(spans.iter().map(|s| s.bytes / TASK_BYTES + 1).sum());
    for ((index, weight), part) in plan.weights.iter().enumerate().zip(&mut parts) {
        let unit_bytes = match weight.kind {
            WeightKind::RopeCos | WeightKind::RopeSin => table.row_bytes(),
            _ => weights.unit_bytes(weight),
        };
        let unit_bytes = unit_bytes.max(1);
        let units = (TASK_BYTES / unit_bytes).max(1);
        let piece = |(at, to)| Task { to, weight: Some((index, weight)), first_unit: at * units };
        tasks.extend(part.chunks_mut(units * unit_bytes).enumerate().map(piece));
    }
    for to in parts.flat_map(|part| part.chunks_mut(TASK_BYTES)) {
        tasks.push(Task { to, weight: None, first_unit: 0 });
    }
    threads.run(tasks, |task: Task<'_, '_>| task.run(weights, table), progress)
}

/// Makes all of the region present before it is filled: a task is less than a huge page, and two
/// threads that meet in one would both clear one for it.
fn populate_in_huge_pages(region: &mut Region, threads: &Threads<'_>) {
    /// Enough that threads seldom meet, even where a page straddles two pieces.
    const PIECE_BYTES: usize = 4 * HUGE_PAGE_BYTES;
    let bytes = region.bytes();
    let whole = region.span_mut::<u8>(Span { offset: 0, bytes });
    let make_present = |piece: &mut [u8]| {
        populate(piece);
        Ok::<usize, Infallible>(0)
    };
    let Ok(()) = threads.run(whole.chunks_mut(PIECE_BYTES).collect(), make_present, &mut |_| ());
}

/// The whole pages after the weights; the one that the last weight ends in is that one's.
fn rest(fixed_bytes: usize, region_bytes: usize) -> Span {
    let offset = fixed_bytes.next_multiple_of(PAGE_BYTES).min(region_bytes);
    Span { offset, bytes: region_bytes - offset }
}

/// A piece of the arena, and the weight that it is a piece of. Without one it only has to be
/// present.
struct Task<'a, 'p> {
    to: &'a mut [u8],
    weight: Option<(usize, &'p WeightPlan)>,
    first_unit: usize,
}

impl Task<'_, '_> {
    /// Returns how many bytes it dealt with.
    fn run<W: Weights>(self, weights: &W, table: &Table) -> Result<usize, W::Fault> {
        let Task { to, weight, first_unit } = self;
        populate(to);
        let bytes = to.len();
        let Some((index, weight)) = weight else { return Ok(bytes) };
        match weight.kind {
            WeightKind::RopeCos => table.fill(libm::cos, first_unit, bytemuck::cast_slice_mut(to)),
            WeightKind::RopeSin => table.fill(libm::sin, first_unit, bytemuck::cast_slice_mut(to)),
            _ => weights.fill(index, weight, first_unit, to)?,
        }
        Ok(bytes)
    }
}
