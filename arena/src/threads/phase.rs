//! A phase as one worker sees it: shared reads, its own scratch, and the items that it claims.
//!
//! # Why the references can't meet
//!
//! All that `Phase`, [`Item`] and [`View`] hand out borrows them, so it is gone when the phase is
//! dropped, before this worker arrives at the barrier. Between two barriers all workers are in the
//! same phase of the same table, which `access::check` has accepted, so:
//!
//! - memory that the phase reads is memory that it does not write, in this slot or another;
//! - a scratch slot is cut into one part a worker, worker numbers are given once, and a worker's
//!   part is handed out once a phase;
//! - an item's parts of a slot share no byte with another item's, since different (group, piece,
//!   item in group) lie apart; an item number is given out once a phase, because its worker has, in
//!   one atomic step, moved a counter from it or from below to above it, and that counter only
//!   grows until it is set to zero while everyone waits at the barrier; and an item hands out its
//!   part of a slot once;
//! - two slots that the phase writes share no byte.
//!
//! A reference that would outlive its phase is refused by the compiler:
//!
//! ```
//! fn sums(mut pass: dllm_arena::Pass<'_, ()>) -> u32 {
//!     let Some(phase) = pass.next_phase() else { return 0 };
//!     let kept = phase.read::<u32>(0);
//!     let sum = kept.iter().sum();
//!     drop(phase);
//!     sum
//! }
//! ```
//! ```compile_fail,E0505
//! fn sums(mut pass: dllm_arena::Pass<'_, ()>) -> u32 {
//!     let Some(phase) = pass.next_phase() else { return 0 };
//!     let kept = phase.read::<u32>(0);
//!     drop(phase);
//!     kept.iter().sum()
//! }
//! ```
//! So are two phases at once, and a slot kept by the leader over a pass:
//!
//! ```compile_fail,E0499
//! fn both(mut pass: dllm_arena::Pass<'_, ()>) {
//!     let first = pass.next_phase();
//!     let second = pass.next_phase();
//!     drop(first);
//! }
//! ```
//! ```compile_fail,E0502
//! fn keep(leader: &mut dllm_arena::Leader<()>) -> u32 {
//!     let kept = leader.slot::<u32>(0);
//!     while leader.begin((), 0..1).next_phase().is_some() {}
//!     kept[0]
//! }
//! ```
//!
//! What one worker wrote in a phase, another may read in the next: the barrier is between them
//! (`barrier` says what happens before what).

use crate::memory::access::{PhaseAccess, scratch_chunk};
use crate::memory::layout::Span;
use crate::memory::view::View;
use crate::threads::shared::{Activity, BROKEN, Core};
use crate::threads::sync::Ordering;
use bytemuck::Pod;
use std::cell::Cell;

/// One phase of a pass, for one worker. Dropping it waits until all workers have done so.
pub struct Phase<'s> {
    core: &'s Core,
    access: &'s PhaseAccess,
    index: usize,
    worker: usize,
    /// Whether the pass ends with this phase.
    last: bool,
    activity: &'s mut Activity,
    /// One bit for each scratch slot of the phase that has been handed out.
    scratch_taken: Cell<u64>,
}

impl<'s> Phase<'s> {
    pub(crate) fn new(
        core: &'s Core,
        index: usize,
        worker: usize,
        last: bool,
        activity: &'s mut Activity,
    ) -> Self {
        debug_assert_eq!(*activity, Activity::InPhase);
        let access = &core.phases[index];
        Phase { core, access, index, worker, last, activity, scratch_taken: Cell::new(0) }
    }

    /// The phase's number in the table.
    pub fn index(&self) -> usize {
        self.index
    }

    /// This worker's number; the leader is 0.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// The contents of a span of the fixed part.
    ///
    /// # Panics
    /// Where the span leaves the fixed part or is no whole number of aligned `T`s.
    pub fn fixed<T: Pod>(&self, span: Span) -> &[T] {
        self.core.memory.fixed(span)
    }

    /// The contents of a slot that the phase reads.
    ///
    /// # Panics
    /// A slot that the phase does not declare to read, or that is no whole number of `T`s.
    pub fn read<T: Pod>(&self, slot: usize) -> &[T] {
        let declared = self.access.reads.contains(&slot);
        assert!(declared, "phase {} does not declare to read slot {slot}", self.index);
        let part = self.core.memory.part(self.core.slots[slot]);
        // SAFETY: the pointer is valid and aligned and any bytes are a `T`; in this phase nobody
        // has an exclusive reference into a slot that is read.
        unsafe { &*part }
    }

    /// This worker's part of a scratch slot, with whatever it held before.
    ///
    /// # Panics
    /// A slot that the phase does not declare as scratch, or whose part is no whole number of
    /// `T`s; the second time in a phase.
    #[expect(clippy::mut_from_ref, reason = "handed out once, as the bit remembers")]
    #[expect(clippy::panic, reason = "checks the caller, as documented")]
    pub fn scratch<T: Pod>(&self, slot: usize) -> &mut [T] {
        let Some(at) = self.access.scratch.iter().position(|&declared| declared == slot) else {
            panic!("phase {} does not declare slot {slot} as scratch", self.index);
        };
        take_once(&self.scratch_taken, at, "scratch", slot);
        let Span { offset, bytes } = self.core.slots[slot];
        let chunk = scratch_chunk(bytes, self.core.workers);
        let span = Span { offset: offset + self.worker * chunk, bytes: chunk };
        // SAFETY: the pointer is valid and aligned and any bytes are a `T`; this part is this
        // worker's alone in this phase and has not been handed out before.
        unsafe { &mut *self.core.memory.part(span) }
    }

    /// The next of `items` items that no worker has claimed yet; `None` when there is none left.
    /// All workers pass the same number.
    ///
    /// # Panics
    /// More items than may write anything in this phase.
    #[inline]
    pub fn claim(&self, items: usize) -> Option<Item<'_>> {
        self.must_have(items);
        let claims = &self.core.claims;
        // Looking first keeps the counter from running on, and so from ever coming round.
        if claims.load(Ordering::Relaxed) >= items {
            return None;
        }
        let index = claims.fetch_add(1, Ordering::Relaxed);
        (index < items).then(|| Item { phase: self, index, written: Cell::new(0) })
    }

    /// As [`Phase::claim`], of those items alone that are to be done: `next` gives the first of
    /// them from a number on; `items` or more where there is none. All workers pass the same:
    /// where they differ items may be missed, though none is given twice.
    ///
    /// # Panics
    /// As [`Phase::claim`]; where `next` gives a number below its argument.
    #[inline]
    pub fn claim_next(&self, items: usize, next: impl Fn(usize) -> usize) -> Option<Item<'_>> {
        self.must_have(items);
        let claims = &self.core.claims;
        let mut from = claims.load(Ordering::Relaxed);
        loop {
            let index = next(from);
            assert!(index >= from, "item {index} comes before item {from}");
            if index >= items {
                return None;
            }
            let relaxed = Ordering::Relaxed;
            match claims.compare_exchange_weak(from, index + 1, relaxed, relaxed) {
                Ok(_) => return Some(Item { phase: self, index, written: Cell::new(0) }),
                Err(now) => from = now,
            }
        }
    }

    fn must_have(&self, items: usize) {
        // No bound where the phase writes nothing.
        let ends = self.access.writes.iter().map(|(_, part)| part.first.saturating_add(part.items));
        let items_max = ends.max().unwrap_or(usize::MAX);
        let index = self.index;
        assert!(items <= items_max, "phase {index} has at most {items_max} items, not {items}");
    }
}

impl Drop for Phase<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.core.fail();
            return;
        }
        let core = self.core;
        let passed = core.barrier.arrive_and_wait(|| core.claims.store(0, Ordering::Relaxed));
        assert!(passed.is_ok(), "{BROKEN}");
        *self.activity = if self.last { Activity::Idle } else { Activity::InPass };
    }
}

/// One item of work, this worker's alone.
pub struct Item<'p> {
    phase: &'p Phase<'p>,
    index: usize,
    /// One bit for each written slot of the phase of which this item's part has been handed out.
    written: Cell<u64>,
}

impl Item<'_> {
    /// The item's number, from 0.
    #[inline]
    pub fn index(&self) -> usize {
        self.index
    }

    /// This item's part of a slot that the phase writes, with whatever it held before.
    ///
    /// # Panics
    /// A slot that the phase, or this item in it, does not declare to write; pieces that are no
    /// whole number of aligned `T`s; the second time for an item.
    #[expect(clippy::panic, reason = "checks the caller, as documented")]
    pub fn write<T: Pod>(&self, slot: usize) -> View<'_, T> {
        let writes = &self.phase.access.writes;
        let (phase, item) = (self.phase.index, self.index);
        let Some(at) = writes.iter().position(|&(declared, _)| declared == slot) else {
            panic!("phase {phase} does not declare to write slot {slot}");
        };
        let partition = &writes[at].1;
        let local = item.wrapping_sub(partition.first);
        assert!(local < partition.items, "phase {phase}: slot {slot} has no part for item {item}");
        take_once(&self.written, at, "written", slot);
        let first = self.phase.core.memory.part::<u8>(self.phase.core.slots[slot]).cast();
        // SAFETY: sealing has accepted the partition for this aligned slot, and this item's part
        // of it is handed out once, to the one worker that claimed the item.
        unsafe { View::new(first, partition, local, slot) }
    }
}

/// Marks bit `at`; panics where it is marked already.
fn take_once(taken: &Cell<u64>, at: usize, how: &str, slot: usize) {
    let bit = 1u64 << at;
    assert!(taken.get() & bit == 0, "slot {slot} has been {how} by this item or phase already");
    taken.set(taken.get() | bit);
}
