//! Who may touch which slot in which phase: the table that a region is sealed with, and the proof
//! that no two workers can meet in it.
//!
//! Everything here is plain arithmetic on numbers. `phase` hands out references by this table and
//! relies on `check` having accepted it.

use crate::memory::layout::{ALIGN, Span};

/// Slots that one phase may write, or use as scratch: the bits of the mask that remembers which
/// have been handed out.
pub const ACCESS_MAX: usize = 64;
/// Workers of a thread pool: far above any machine's cores, far below what the barrier can count.
pub const WORKERS_MAX: usize = 4096;

/// How a slot is divided among the items of a phase. All lengths are in bytes.
///
/// Item `first + i` may write `pieces` pieces of `chunk` bytes each; piece `j` starts at
/// `(i / inner) * outer_stride + (i % inner) * chunk + j * pitch` of the slot. So items lie side
/// by side in groups of `inner`, each group's pieces `pitch` apart, and groups `outer_stride`
/// apart. With `by_column` the same places are numbered otherwise: the first of every group, then
/// the second of every group, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Number of the first item that writes the slot.
    pub first: usize,
    /// How many items write it, from `first` on.
    pub items: usize,
    /// Items that lie side by side before the next group starts.
    pub inner: usize,
    /// Bytes from one group to the next.
    pub outer_stride: usize,
    /// Bytes of a piece.
    pub chunk: usize,
    /// Bytes from one piece of an item to its next.
    pub pitch: usize,
    /// Pieces of an item.
    pub pieces: usize,
    /// Whether items are numbered across the groups; all groups are full then.
    pub by_column: bool,
}

impl Partition {
    /// Item `i` writes the `block_bytes` from `i * block_bytes`: rows, or blocks of rows.
    pub fn blocks(items: usize, block_bytes: usize) -> Partition {
        Partition::columns(items, block_bytes, items.saturating_mul(block_bytes), 1)
    }

    /// Item `i` writes bytes `i * column_bytes..(i + 1) * column_bytes` of each of `rows` rows
    /// that lie `row_bytes` apart: stripes of a row-major matrix, or one token of
    /// `[super-block][token][256]` panels.
    pub fn columns(items: usize, column_bytes: usize, row_bytes: usize, rows: usize) -> Partition {
        Partition::grouped(1, items, column_bytes, row_bytes, rows)
    }

    /// `groups` matrices of `rows` rows of `row_bytes`, one behind the other, each in `inner`
    /// columns of `column_bytes`: item `g * inner + c` writes column `c` of matrix `g`.
    pub fn grouped(
        groups: usize,
        inner: usize,
        column_bytes: usize,
        row_bytes: usize,
        rows: usize,
    ) -> Partition {
        Partition {
            first: 0,
            items: groups.saturating_mul(inner),
            inner,
            outer_stride: row_bytes.saturating_mul(rows),
            chunk: column_bytes,
            pitch: row_bytes,
            pieces: rows,
            by_column: false,
        }
    }

    /// The same for items from `first` on.
    pub fn starting_at(self, first: usize) -> Partition {
        Partition { first, ..self }
    }

    /// The same with item `c * groups + g` where item `g * inner + c` was: a worker that claims one
    /// item after the other stays in a column.
    pub fn numbered_by_column(self) -> Partition {
        Partition { by_column: true, ..self }
    }

    /// Where the pieces of local item `at` (counted from `first`) begin, in bytes of the slot.
    pub(crate) fn base(&self, at: usize) -> usize {
        debug_assert!(at < self.items);
        let groups = self.items / self.inner;
        let at = if self.by_column { at % groups * self.inner + at / groups } else { at };
        (at / self.inner) * self.outer_stride + (at % self.inner) * self.chunk
    }

    /// Whether no two pieces of any items can share a byte and all lie in `slot_bytes`.
    ///
    /// A piece is known by (group, piece, item in group) with the strides `outer_stride`, `pitch`
    /// and `chunk`. Items of one group fit into a pitch, and all pieces of a group fit before the
    /// next group: a number with mixed digits, so different digits mean disjoint bytes. Where all
    /// groups are full, numbering by column is a permutation of the items.
    fn check(&self, slot_bytes: usize) -> Result<(), PartitionError> {
        let counts = [self.items, self.inner, self.chunk, self.pieces];
        if counts.contains(&0) {
            return Err(PartitionError::Zero);
        }
        self.first.checked_add(self.items).ok_or(PartitionError::Items)?;
        if self.by_column && !self.items.is_multiple_of(self.inner) {
            return Err(PartitionError::Ragged);
        }
        let side_by_side = self.inner.min(self.items);
        let row = side_by_side.checked_mul(self.chunk).ok_or(PartitionError::Outside)?;
        if self.pieces > 1 && row > self.pitch {
            return Err(PartitionError::Pitch);
        }
        let pieces = (self.pieces - 1).checked_mul(self.pitch).ok_or(PartitionError::Outside)?;
        let group = pieces.checked_add(row).ok_or(PartitionError::Outside)?;
        let groups = self.items.div_ceil(self.inner);
        if groups > 1 && group > self.outer_stride {
            return Err(PartitionError::OuterStride);
        }
        // The last group reaches furthest, and it may have fewer items than the others.
        let last_items = self.items - (groups - 1) * self.inner;
        let last = (groups - 1).checked_mul(self.outer_stride);
        let end = last.and_then(|at| at.checked_add(pieces)?.checked_add(last_items * self.chunk));
        end.filter(|&end| end <= slot_bytes).map(|_| ()).ok_or(PartitionError::Outside)
    }
}

/// What one phase touches. Slots are numbers into [`Sealing::slots`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseAccess {
    /// Slots that every worker may read, whole.
    pub reads: Vec<usize>,
    /// Slots that items write, each its own part (which the item may read as well: an update in
    /// place is a write).
    pub writes: Vec<(usize, Partition)>,
    /// Slots of which each worker has an equal part to itself.
    pub scratch: Vec<usize>,
}

/// What a region is sealed with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sealing {
    /// The first bytes of the region, which nothing writes any more: weights and tables.
    pub fixed_bytes: usize,
    /// Everything else that is used, at multiples of [`ALIGN`]. Slots may share memory as long as
    /// no phase uses both.
    pub slots: Vec<Span>,
    /// The phases that passes are made of.
    pub phases: Vec<PhaseAccess>,
    /// Threads, the leader among them.
    pub workers: usize,
}

/// Why a partition is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// No items, groups of none, or pieces of no bytes.
    #[error("it has no items or no bytes")]
    Zero,
    /// The items side by side are longer than the pitch of their pieces.
    #[error("items side by side are longer than the pitch")]
    Pitch,
    /// The pieces of a group reach into the next group.
    #[error("a group's pieces are longer than the outer stride")]
    OuterStride,
    /// Items numbered by column whose last group is not full.
    #[error("its items are numbered by column, but the last group is not full")]
    Ragged,
    /// The last piece ends behind the slot.
    #[error("it ends behind the slot")]
    Outside,
    /// First and last item are beyond what can be counted.
    #[error("its items are beyond what can be counted")]
    Items,
}

/// Why a region can't be sealed like this. Phases and slots are given by number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant says what its fields are")]
pub enum SealError {
    /// No workers, or more than [`WORKERS_MAX`].
    #[error("{workers} workers (1 to {WORKERS_MAX})")]
    Workers { workers: usize },
    /// The fixed part is longer than the region.
    #[error("a fixed part of {fixed_bytes} bytes in a region of {region_bytes}")]
    Fixed { fixed_bytes: usize, region_bytes: usize },
    /// A slot whose place is unaligned, outside of the region or inside its fixed part.
    #[error(
        "slot {slot} at {span:?} is not at a multiple of {ALIGN} behind the fixed part and inside \
         the region"
    )]
    Slot { slot: usize, span: Span },
    /// A phase that names a slot that is not there.
    #[error("phase {phase} names slot {slot}: none")]
    Unknown { phase: usize, slot: usize },
    /// A phase that writes, or uses as scratch, more than [`ACCESS_MAX`] slots.
    #[error("phase {phase} writes more than {ACCESS_MAX} slots")]
    Many { phase: usize },
    /// Two uses of the same memory in a phase; the first of the two slots is written.
    #[error("phase {phase}: slots {} and {} share memory and one is written", slots[0], slots[1])]
    Overlap { phase: usize, slots: [usize; 2] },
    /// Items that could meet in the slot that they write, or leave it.
    #[error("phase {phase}: the partition of slot {slot} is none: {error}")]
    Partition { phase: usize, slot: usize, error: PartitionError },
    /// A scratch slot with less than [`ALIGN`] bytes for each worker.
    #[error("phase {phase}: scratch slot {slot} has less than {ALIGN} bytes a worker")]
    Scratch { phase: usize, slot: usize },
}

/// Bytes of each worker's part of a scratch slot: equal, and a multiple of [`ALIGN`].
pub(crate) fn scratch_chunk(slot_bytes: usize, workers: usize) -> usize {
    slot_bytes / workers / ALIGN * ALIGN
}

/// Accepts a table only where, in every phase, memory that one worker may write can't be touched
/// by another.
pub(crate) fn check(sealing: &Sealing, region_bytes: usize) -> Result<(), SealError> {
    let Sealing { fixed_bytes, slots, phases, workers } = sealing;
    if *workers == 0 || *workers > WORKERS_MAX {
        return Err(SealError::Workers { workers: *workers });
    }
    if *fixed_bytes > region_bytes {
        return Err(SealError::Fixed { fixed_bytes: *fixed_bytes, region_bytes });
    }
    for (slot, &span) in slots.iter().enumerate() {
        let aligned = span.offset.is_multiple_of(ALIGN);
        let inside = span.end().is_some_and(|end| end <= region_bytes);
        if !aligned || !inside || span.offset < *fixed_bytes {
            return Err(SealError::Slot { slot, span });
        }
    }
    for (phase, access) in phases.iter().enumerate() {
        check_phase(phase, access, slots, *workers)?;
    }
    Ok(())
}

fn check_phase(
    phase: usize,
    access: &PhaseAccess,
    slots: &[Span],
    workers: usize,
) -> Result<(), SealError> {
    if access.writes.len() > ACCESS_MAX || access.scratch.len() > ACCESS_MAX {
        return Err(SealError::Many { phase });
    }
    let bytes_of = |slot: usize| {
        slots.get(slot).map(|span| span.bytes).ok_or(SealError::Unknown { phase, slot })
    };
    for &slot in &access.reads {
        bytes_of(slot)?;
    }
    for &(slot, partition) in &access.writes {
        let checked = partition.check(bytes_of(slot)?);
        checked.map_err(|error| SealError::Partition { phase, slot, error })?;
    }
    for &slot in &access.scratch {
        if scratch_chunk(bytes_of(slot)?, workers) == 0 {
            return Err(SealError::Scratch { phase, slot });
        }
    }
    check_apart(phase, access, slots)
}

/// No slot that is written, or scratch, shares memory with any other use in the same phase.
fn check_apart(phase: usize, access: &PhaseAccess, slots: &[Span]) -> Result<(), SealError> {
    let written = access.writes.iter().map(|&(slot, _)| slot);
    let exclusive: Vec<usize> = written.chain(access.scratch.iter().copied()).collect();
    for (at, &slot) in exclusive.iter().enumerate() {
        let others = exclusive[at + 1..].iter().chain(&access.reads);
        for &other in others {
            if slot == other || slots[slot].overlaps(&slots[other]) {
                return Err(SealError::Overlap { phase, slots: [slot, other] });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two matrices of three rows in four columns: across the matrices first, then along the rows.
    #[test]
    fn numbers_by_column_run_across_the_groups() {
        let by_row = Partition::grouped(2, 4, 8, 32, 3);
        let by_column = by_row.numbered_by_column();
        let bases = |partition: Partition| (0..8).map(|at| partition.base(at)).collect::<Vec<_>>();
        assert_eq!(bases(by_row), [0, 8, 16, 24, 96, 104, 112, 120]);
        assert_eq!(bases(by_column), [0, 96, 8, 104, 16, 112, 24, 120]);
    }
}
