//! What all workers of a crew share: the sealed memory, the table, and what they wait for.

use crate::access::{PhaseAccess, Sealing};
use crate::barrier::{Barrier, Signal};
use crate::layout::Span;
use crate::region::{Region, check_span};
use crate::sync::AtomicUsize;
use bytemuck::Pod;
use crossbeam_utils::CachePadded;
use memmap2::MmapMut;

/// Pauses to spin where each worker can have a core: 10 to 25 microseconds (a pause takes 65 cycles
/// on Zen 3, 140 on Skylake and later), about what parking and being woken would cost. Spinning
/// for longer than that only hurts where other processes want the cores too.
const SPIN_TURNS: u32 = 500;

/// What everyone is told once one of them is gone.
pub(crate) const BROKEN: &str =
    "a worker of this crew panicked or went away in the middle of a step; the crew is unusable";

/// The mapping, of which only pointers are used from now on.
pub(crate) struct Memory {
    /// Start of the region inside `map`, aligned to a page.
    start: *mut u8,
    bytes: usize,
    fixed_bytes: usize,
    /// Owns the memory; never turned into a slice again.
    _map: MmapMut,
}

// SAFETY: the pointer is into the mapping that the same struct owns, and plain memory may be used
// from any thread.
unsafe impl Send for Memory {}
// SAFETY: `&Memory` only gives out pointers. Whoever turns them into references says why those
// are exclusive, or shared with readers only.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn new(region: Region, fixed_bytes: usize) -> Memory {
        let (mut map, offset, bytes) = region.into_parts();
        assert!(offset + bytes <= map.len() && fixed_bytes <= bytes);
        let start = map[offset..].as_mut_ptr();
        Memory { start, bytes, fixed_bytes, _map: map }
    }

    /// Where the span's `T`s lie.
    ///
    /// # Panics
    /// Where the span leaves the region or is no whole number of aligned `T`s.
    pub(crate) fn part<T: Pod>(&self, span: Span) -> *mut [T] {
        check_span::<T>(span, self.bytes);
        // SAFETY: the span lies inside the mapping.
        let first = unsafe { self.start.add(span.offset) };
        std::ptr::slice_from_raw_parts_mut(first.cast(), span.bytes / size_of::<T>())
    }

    /// The contents of a span of the fixed part.
    ///
    /// # Panics
    /// Where the span leaves the fixed part or is no whole number of aligned `T`s.
    pub(crate) fn fixed<T: Pod>(&self, span: Span) -> &[T] {
        check_span::<T>(span, self.fixed_bytes);
        // SAFETY: the pointer is valid and aligned, any bytes are a `T`, and since sealing
        // nothing writes to the fixed part: slots start behind it, as sealing checked.
        unsafe { &*self.part(span) }
    }

    /// Everything behind the fixed part, from the next multiple of four.
    pub(crate) fn beyond_fixed(&self) -> Span {
        let offset = self.fixed_bytes.next_multiple_of(4).min(self.bytes);
        Span { offset, bytes: (self.bytes - offset) / 4 * 4 }
    }
}

/// The crew, apart from the job of the step.
pub(crate) struct Core {
    pub(crate) memory: Memory,
    pub(crate) slots: Box<[Span]>,
    pub(crate) phases: Box<[PhaseAccess]>,
    pub(crate) workers: usize,
    /// Advanced once a step, after its order is in place.
    pub(crate) start: CachePadded<Signal>,
    /// Passed once a phase.
    pub(crate) barrier: Barrier,
    /// The next item of the phase. Whoever arrives last at the barrier sets it to zero.
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

    /// Breaks the crew: whoever waits, or will, panics instead of waiting for ever.
    pub(crate) fn fail(&self) {
        self.barrier.end();
        self.start.end();
    }

    /// Whether the crew is broken.
    pub(crate) fn failed(&self) -> bool {
        self.barrier.ended()
    }
}

/// What one worker is doing. It lives in the worker itself, so that a leaked step or phase leaves
/// it behind and is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Between steps.
    Idle,
    /// In a step, between its phases.
    Stepping,
    /// In a phase.
    InPhase,
}
