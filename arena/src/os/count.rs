//! A counting allocator, and what the kernel counts of a thread: the proof that a step allocates
//! nothing and faults nowhere.
//!
//! The binary and the tests install it, the library never:
//!
//! ```
//! #![forbid(unsafe_code)]
//! use dllm_arena::count::CountingAllocator;
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator::new();
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Allocations and frees of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks handed out; a reallocation counts as one.
    pub allocations: u64,
    /// Blocks taken back; a reallocation counts as one.
    pub frees: u64,
}

impl Counts {
    /// What has been added since `earlier`.
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            allocations: self.allocations - earlier.allocations,
            frees: self.frees - earlier.frees,
        }
    }
}

thread_local! {
    // Constant and without a destructor, so that touching it allocates nothing and it can be
    // touched from a thread's last destructor.
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { allocations: 0, frees: 0 }) };
}

/// Bytes handed out and not yet taken back, over all threads.
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
/// The largest value of `LIVE_BYTES` since the last reset.
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counted.
#[derive(Debug, Default)]
pub struct CountingAllocator(());

impl CountingAllocator {
    /// For a `#[global_allocator]` static.
    pub const fn new() -> Self {
        Self(())
    }
}

// SAFETY: every method hands its arguments to the system's allocator unchanged and returns what
// that returns; the counting beside it neither allocates nor panics.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises on `layout` are those that the system's allocator asks for.
        counted(unsafe { System.alloc(layout) }, 0, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises on `layout` are those that the system's allocator asks for.
        counted(unsafe { System.alloc_zeroed(layout) }, 0, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller promises that `block` is one of ours, so the system's, of `layout`.
        unsafe { System.dealloc(block, layout) };
        note(0, 1);
        LIVE_BYTES.fetch_sub(layout.size(), Relaxed);
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `block` is one of ours, so the system's, of `layout`,
        // and that `size` makes a layout.
        let moved = counted(unsafe { System.realloc(block, layout, size) }, 1, size);
        if !moved.is_null() {
            // Both have been there at once at worst; the old block is gone by now.
            LIVE_BYTES.fetch_sub(layout.size(), Relaxed);
        }
        moved
    }
}

/// What the calling thread has allocated and freed; zeros where the allocator is not installed.
pub fn thread_counts() -> Counts {
    COUNTS.try_with(Cell::get).unwrap_or_default()
}

/// Bytes in use now, over all threads.
pub fn live_bytes() -> usize {
    LIVE_BYTES.load(Relaxed)
}

/// The most bytes in use at once since the start or the last [`reset_peak`]. A reallocation counts
/// with both its blocks.
pub fn peak_bytes() -> usize {
    PEAK_BYTES.load(Relaxed)
}

/// Starts [`peak_bytes`] again from what is in use now.
pub fn reset_peak() {
    PEAK_BYTES.store(live_bytes(), Relaxed);
}

/// Whether the allocator is the process's. It allocates a byte to find out, so ask outside of
/// what is being counted.
pub fn installed() -> bool {
    let before = thread_counts();
    drop(std::hint::black_box(Box::new(0u8)));
    thread_counts().since(&before).allocations > 0
}

fn note(allocations: u64, frees: u64) {
    // A thread so far gone that it has no storage is past anything worth counting.
    let _ = COUNTS.try_with(|counts| {
        let before = counts.get();
        counts.set(Counts {
            allocations: before.allocations.wrapping_add(allocations),
            frees: before.frees.wrapping_add(frees),
        });
    });
}

/// Counts a block of `bytes` that the system has given, with the `frees` that went with it.
fn counted(block: *mut u8, frees: u64, bytes: usize) -> *mut u8 {
    if !block.is_null() {
        note(1, frees);
        let live = LIVE_BYTES.fetch_add(bytes, Relaxed).wrapping_add(bytes);
        PEAK_BYTES.fetch_max(live, Relaxed);
    }
    block
}

/// What the kernel counts of one thread (Linux, `RUSAGE_THREAD`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults served without reading.
    pub minor_faults: u64,
    /// Page faults that read from disk.
    pub major_faults: u64,
    /// Times that the thread gave up its core: parked, or waited for something.
    pub voluntary_switches: u64,
    /// Times that its core was taken from it.
    pub involuntary_switches: u64,
}

impl Usage {
    /// What has been added since `earlier`.
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            minor_faults: self.minor_faults - earlier.minor_faults,
            major_faults: self.major_faults - earlier.major_faults,
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
        }
    }
}

/// The calling thread's usage since it began; zeros where the kernel does not say.
pub fn thread_usage() -> Usage {
    resources(libc::RUSAGE_THREAD).map_or_else(Usage::default, |usage| Usage {
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
    })
}

/// The most memory that the process has had resident, in bytes; 0 where the kernel does not say.
pub fn peak_rss_bytes() -> u64 {
    // Linux gives it in KiB.
    resources(libc::RUSAGE_SELF).map_or(0, |usage| count(usage.ru_maxrss) * 1024)
}

fn resources(who: libc::c_int) -> Option<libc::rusage> {
    // SAFETY: the struct holds integers only, so zeroes are a valid value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid place for the one struct that the call writes.
    (unsafe { libc::getrusage(who, &raw mut usage) } == 0).then_some(usage)
}

/// The kernel's counters never go below zero.
fn count(value: libc::c_long) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
