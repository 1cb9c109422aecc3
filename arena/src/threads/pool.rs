//! The thread pool: a leader and its workers, which run the same phases over a sealed region.
//!
//! ```text
//!  leader                         worker (n - 1 of them)
//!  begin(job, phases) --------->  next_pass()           parked until then
//!   | next_phase: claim, write     | next_phase: claim, write
//!   + ========= barrier ========== +                    when the phase is dropped
//!   | next_phase ...               | next_phase ...
//!   + ========= barrier ========== +
//!  slot(), slot_mut()             next_pass()
//! ```
//!
//! ```
//! use dllm_arena::{Options, Partition, PhaseAccess, Region, Sealing, Span, Pass};
//!
//! fn run(mut pass: Pass<'_, u32>) {
//!     let factor = pass.job();
//!     while let Some(phase) = pass.next_phase() {
//!         while let Some(item) = phase.claim(4) {
//!             for value in item.write::<u32>(0).into_only() {
//!                 *value *= factor;
//!             }
//!         }
//!     }
//! }
//!
//! // Two threads, one slot of 64 words in four blocks, one phase that updates them in place.
//! let region = Region::reserve(256, &Options::default())?;
//! let slots = vec![Span { offset: 0, bytes: 256 }];
//! let writes = vec![(0, Partition::blocks(4, 64))];
//! let phases = vec![PhaseAccess { writes, ..PhaseAccess::default() }];
//! let sealing = Sealing { fixed_bytes: 0, slots, phases, workers: 2 };
//! let (mut leader, workers) = region.seal::<u32>(sealing)?;
//! for mut worker in workers {
//!     std::thread::spawn(move || {
//!         while let Some(pass) = worker.next_pass() {
//!             run(pass);
//!         }
//!     });
//! }
//! leader.slot_mut::<u32>(0).fill(7);
//! run(leader.begin(6, 0..1));
//! assert_eq!(leader.slot::<u32>(0), [42; 64]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Why this is sound
//!
//! *Between passes* the leader alone touches slots. Its accessors demand that it is idle, and it is
//! idle only before the first pass and after it has left the barrier of a pass's last phase. All
//! workers have arrived there, so each has dropped its [`Phase`], and with it every reference that
//! it had; it gets no new ones before the leader begins again. `slot` borrows the leader shared
//! and `slot_mut` and `begin` exclusively, so none of these references lives on into a pass.
//!
//! *In a phase* references come from [`Phase`] only: `phase` says why they can't meet.
//!
//! *One phase at a time.* A phase borrows its pass exclusively, and a pass its worker. Where one is
//! leaked (`mem::forget`) its borrow ends without its `Drop`, so without arriving at the barrier.
//! The worker that leaked it has an `Activity` that is not idle; its next call panics and breaks
//! the pool, and the others never get past the barrier that it did not arrive at.
//!
//! *The order of a pass* (job and phases) is in a cell. The leader writes it while idle, then
//! advances `start` with release; workers read it after having seen that with acquire, and before
//! they first arrive at the barrier. The leader writes the next order only after it has left the
//! last barrier, which each worker's arrival happens before. A pass without phases, in which
//! nobody would arrive, is not published at all.
//!
//! *Panics.* A worker that unwinds out of a pass or phase breaks the pool instead of arriving. It
//! stays broken: a barrier opens only when all have arrived, and one never will. So a worker that
//! is still in its phase, not knowing yet, keeps its references to itself, and the leader's
//! accessors panic. The memory is the last owner's to unmap.

use crate::memory::access::{self, SealError, Sealing};
use crate::memory::region::Region;
use crate::threads::phase::Phase;
use crate::threads::shared::{Activity, BROKEN, Core};
use crate::threads::sync::UnsafeCell;
use bytemuck::Pod;
use std::ops::Range;
use std::sync::Arc;

/// What is left to do of a pass.
#[derive(Clone, Copy)]
struct Order<J> {
    job: J,
    next_phase: usize,
    end_phase: usize,
}

struct Shared<J> {
    core: Core,
    order: UnsafeCell<Option<Order<J>>>,
}

// SAFETY: `core` is Sync by itself, and a job may be shared. The leader alone writes the order, and
// only while no worker reads it: workers read it between the advance of `start`, which follows the
// writing, and their arrival at the pass's last barrier, which the next writing follows.
unsafe impl<J: Copy + Send + Sync> Sync for Shared<J> {}

impl Region {
    /// Ends loading. From now on the first `fixed_bytes` are read-only and the rest is touched by
    /// the table only; `J` is what a pass is told, the same for all workers.
    ///
    /// Returns the leader (worker 0, for the calling thread) and workers 1 to n - 1, each to be
    /// moved to a thread of its own. Call it before pinning the calling thread: where its cores are
    /// fewer than the workers, waiting does not spin.
    ///
    /// # Errors
    /// A table under which two workers could meet: see [`SealError`].
    pub fn seal<J: Copy + Send + Sync>(
        self,
        sealing: Sealing,
    ) -> Result<(Leader<J>, Vec<Worker<J>>), SealError> {
        access::check(&sealing, self.bytes())?;
        let core = Core::new(self, sealing);
        let (workers, first_epoch) = (core.workers, core.start.epoch());
        let shared = Arc::new(Shared { core, order: UnsafeCell::new(None) });
        let worker = |number| Worker {
            shared: Arc::clone(&shared),
            activity: Activity::Idle,
            number,
            seen_epoch: first_epoch,
        };
        let others = (1..workers).map(worker).collect();
        Ok((Leader { shared, activity: Activity::Idle }, others))
    }
}

/// Worker 0: begins passes, and owns the slots between them. Dropping it ends the workers.
pub struct Leader<J: Copy + Send + Sync> {
    shared: Arc<Shared<J>>,
    activity: Activity,
}

impl<J: Copy + Send + Sync> Leader<J> {
    /// The contents of a slot, between passes.
    ///
    /// # Panics
    /// No such slot, no whole number of `T`s, or a pass that was never finished.
    pub fn slot<T: Pod>(&self, slot: usize) -> &[T] {
        let part = self.part(slot);
        // SAFETY: the pointer is valid and aligned and any bytes are a `T`. The leader is idle,
        // so no worker has a reference, and is borrowed shared, so it has no exclusive one.
        unsafe { &*part }
    }

    /// The same, to be changed between passes.
    ///
    /// # Panics
    /// As [`Leader::slot`].
    pub fn slot_mut<T: Pod>(&mut self, slot: usize) -> &mut [T] {
        let part = self.part(slot);
        // SAFETY: the pointer is valid and aligned and any bytes are a `T`. The leader is idle,
        // so no worker has a reference, and is borrowed exclusively, so it has no other one.
        unsafe { &mut *part }
    }

    /// Fills everything behind the fixed part with a pattern (from the next multiple of four
    /// bytes on), for tests that nothing is read before it is written.
    ///
    /// # Panics
    /// A pass that was never finished.
    pub fn poison(&mut self, pattern: u32) {
        self.must_be_idle();
        let memory = &self.shared.core.memory;
        let rest = memory.part::<u32>(memory.beyond_fixed());
        // SAFETY: the pointer is valid and aligned and any bytes are a `u32`. The leader is idle,
        // so no worker has a reference to what is behind the fixed part, and is borrowed
        // exclusively, so it has none either.
        unsafe { &mut *rest }.fill(pattern);
    }

    /// Begins a pass: tells all workers the job and to run these phases of the table, in order.
    /// The leader must run them too, through the pass that this returns.
    ///
    /// # Panics
    /// Phases that the table does not have; a broken pool; a pass that was never finished.
    pub fn begin(&mut self, job: J, phases: Range<usize>) -> Pass<'_, J> {
        self.must_be_idle();
        let core = &self.shared.core;
        assert!(!core.failed(), "{BROKEN}");
        assert!(
            phases.start <= phases.end && phases.end <= core.phases.len(),
            "a pass of phases {phases:?}, but there are {}",
            core.phases.len()
        );
        let order = Order { job, next_phase: phases.start, end_phase: phases.end };
        if !phases.is_empty() {
            // SAFETY: no worker reads the order now: each has arrived at the last barrier of the
            // pass before, if there was one, and has not seen this one begin.
            self.shared.order.with_mut(|place| unsafe { *place = Some(order) });
            self.activity = Activity::InPass;
            core.start.advance();
        }
        Pass { core, order, worker: 0, activity: &mut self.activity }
    }

    fn part<T: Pod>(&self, slot: usize) -> *mut [T] {
        self.must_be_idle();
        let slots = &self.shared.core.slots;
        assert!(slot < slots.len(), "slot {slot}, but there are {}", slots.len());
        self.shared.core.memory.part(slots[slot])
    }

    fn must_be_idle(&self) {
        assert!(self.activity == Activity::Idle, "a pass was left unfinished: {BROKEN}");
    }
}

impl<J: Copy + Send + Sync> Drop for Leader<J> {
    fn drop(&mut self) {
        if self.activity != Activity::Idle {
            self.shared.core.fail();
        }
        self.shared.core.start.end();
    }
}

/// One of the other workers, to be moved to its thread. Dropping it before the leader is dropped
/// breaks the pool.
pub struct Worker<J: Copy + Send + Sync> {
    shared: Arc<Shared<J>>,
    activity: Activity,
    number: usize,
    /// The epoch of `start` up to which this worker has taken part.
    seen_epoch: u32,
}

impl<J: Copy + Send + Sync> Worker<J> {
    /// Waits for the next pass, parked if that takes long; `None` once the leader is gone. The
    /// worker must run the pass's phases to their end.
    ///
    /// # Panics
    /// A broken pool, or a pass before this one that was never finished.
    pub fn next_pass(&mut self) -> Option<Pass<'_, J>> {
        let core = &self.shared.core;
        if self.activity != Activity::Idle {
            core.fail();
        }
        let begun = core.start.wait(self.seen_epoch);
        assert!(!core.failed(), "{BROKEN}");
        self.seen_epoch = begun.ok()?;
        // SAFETY: the leader wrote the order before it advanced the epoch, and will not write it
        // again before this worker has arrived at the pass's last barrier.
        let order = self.shared.order.with(|place| unsafe { *place })?;
        self.activity = Activity::InPass;
        Some(Pass { core, order, worker: self.number, activity: &mut self.activity })
    }
}

impl<J: Copy + Send + Sync> Drop for Worker<J> {
    fn drop(&mut self) {
        let core = &self.shared.core;
        if self.activity != Activity::Idle || !core.start.ended() {
            core.fail();
        }
    }
}

/// One worker's way through the phases of a pass. Dropping it before the last phase breaks the
/// pool.
pub struct Pass<'a, J: Copy> {
    core: &'a Core,
    order: Order<J>,
    worker: usize,
    activity: &'a mut Activity,
}

impl<J: Copy> Pass<'_, J> {
    /// What the pass is told.
    pub fn job(&self) -> J {
        self.order.job
    }

    /// This worker's number; the leader is 0.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// The next phase; `None` after the last. Dropping the phase waits for all the others.
    ///
    /// # Panics
    /// Where the phase before was leaked instead of dropped.
    #[expect(clippy::panic, reason = "only the caller can leak a phase")]
    pub fn next_phase(&mut self) -> Option<Phase<'_>> {
        let Order { next_phase, end_phase, .. } = &mut self.order;
        if next_phase == end_phase {
            return None;
        }
        if *self.activity != Activity::InPass {
            self.core.fail();
            panic!("a phase was leaked: {BROKEN}");
        }
        *self.activity = Activity::InPhase;
        let index = *next_phase;
        *next_phase += 1;
        let last = next_phase == end_phase;
        Some(Phase::new(self.core, index, self.worker, last, self.activity))
    }
}

impl<J: Copy> Drop for Pass<'_, J> {
    fn drop(&mut self) {
        if *self.activity != Activity::Idle {
            self.core.fail();
        }
    }
}
