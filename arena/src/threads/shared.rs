//! What all workers of a thread pool share: the sealed memory, the table, and what they wait for.

use crate::memory::access::{PhaseAccess, Sealing};
use crate::memory::layout::Span;
use crate::memory::region::Region;
use crate::memory::view::Memory;
use crate::threads::barrier::{Barrier, Signal};
use crate::threads::sync::AtomicUsize;
use crossbeam_utils::CachePadded;

/// Pauses to spin where each worker can have a core: 10 to 25 microseconds (a pause takes 65 cycles
/// on Zen 3, 140 on Skylake and later), about what parking and being woken would cost. Spinning
/// for longer than that only hurts where other processes want the cores too.
const SPIN_TURNS: u32 = 500;

/// What everyone is told once one of them is gone.
pub(crate) const BROKEN: &str = "a worker of this thread pool panicked or went away in the middle \
                                 of a pass; the pool is unusable";

/// The thread pool, apart from the job of the pass.
pub(crate) struct Core {
    pub(crate) memory: Memory,
    pub(crate) slots: Box<[Span]>,
    pub(crate) phases: Box<[PhaseAccess]>,
    pub(crate) workers: usize,
    /// Advanced once a pass, after its order is in place.
    pub(crate) start: CachePadded<Signal>,
    /// All workers wait here at the end of each phase.
    pub(crate) barrier: Barrier,
    /// The next item of the phase. The last to arrive at the barrier sets it to zero.
    pub(crate) claims: CachePadded<AtomicUsize>,
}

impl Core {
    /// `sealing` has been accepted for this region.
    pub(crate) fn new(region: Region, sealing: Sealing) -> Core {
        let Sealing { fixed_bytes, slots, phases, workers } = sealing;
        // At most `WORKERS_MAX`.
        let members = workers as u32;
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let enough_cores = workers <= cores && !cfg!(loom);
        let spin_turns = if enough_cores { SPIN_TURNS } else { 0 };
        Core {
            memory: Memory::new(region, fixed_bytes),
            slots: slots.into(),
            phases: phases.into(),
            workers,
            start: CachePadded::new(Signal::new(spin_turns)),
            barrier: Barrier::new(members, spin_turns),
            claims: CachePadded::new(AtomicUsize::new(0)),
        }
    }

    /// Breaks the pool: all that wait, or will, panic instead of waiting for ever.
    pub(crate) fn fail(&self) {
        self.barrier.end();
        self.start.end();
    }

    /// Whether the pool is broken.
    pub(crate) fn failed(&self) -> bool {
        self.barrier.ended()
    }
}

/// What one worker is doing. It lives in the worker itself, so that a leaked pass or phase leaves
/// it behind and is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Between passes.
    Idle,
    /// In a pass, between its phases.
    InPass,
    /// In a phase.
    InPhase,
}
