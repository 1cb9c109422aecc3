//! The two things that threads of a pool wait for: a signal that goes from one epoch to the next,
//! and a barrier on top of it.
//!
//! Waiting spins briefly, then yields, then parks on a futex, so idle threads use no CPU and more
//! threads than cores still get on. Nobody is woken by a system call unless somebody is parked.
//!
//! # What happens before what
//!
//! Arriving adds to `arrived` with acquire and release, so the last to arrive has seen all that
//! the others did before they arrived. It then stores the next epoch with release; everyone else
//! leaves only after reading that epoch with acquire. So **everything that any member did before
//! it arrived happens before everything that any member does after it has left**.
//!
//! # Why no wake-up is lost
//!
//! The first to park sets a bit in the very word that it parks on, and the kernel puts it to sleep
//! only while the word is what it was with that bit. Advancing and ending replace the word in one
//! atomic step and see in the old value whether the bit was set.

use crate::threads::sync::{AtomicU32, Futex, Ordering};
use crossbeam_utils::{Backoff, CachePadded};

/// The signal will not come any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended;

/// Set once nobody is to wait any more.
const ENDED: u32 = 1;
/// Set while somebody may be parked on the word.
const PARKED: u32 = 2;
/// The epoch is what is above the two flags. It may wrap: nobody is ever more than one behind.
const EPOCH_ONE: u32 = 4;
const EPOCH_MASK: u32 = !(ENDED | PARKED);

/// A counter of epochs that one thread advances and others wait for.
pub struct Signal {
    futex: Futex,
    /// Turns of spinning before anything slower.
    spin_turns: u32,
}

impl Signal {
    /// At its first epoch. Waiting spins for `spin_turns` pauses first: 0 where the threads are
    /// more than the cores, so that the one waited for gets a core.
    pub fn new(spin_turns: u32) -> Signal {
        let futex = Futex::new(0);
        Signal { futex, spin_turns }
    }

    /// The epoch now.
    pub fn epoch(&self) -> u32 {
        self.futex.word.load(Ordering::Relaxed) & EPOCH_MASK
    }

    /// Goes to the next epoch and wakes all that wait. What the caller did before happens before
    /// what they do after.
    pub fn advance(&self) {
        let next = |word: u32| Some((word & !PARKED).wrapping_add(EPOCH_ONE));
        let before = self.futex.word.fetch_update(Ordering::Release, Ordering::Relaxed, next);
        // The closure never refuses, so both arms carry the value that was there.
        let (Ok(word) | Err(word)) = before;
        if word & PARKED != 0 {
            self.futex.wake_all();
        }
    }

    /// Ends all waiting, now and in future.
    pub fn end(&self) {
        let word = self.futex.word.fetch_or(ENDED, Ordering::AcqRel);
        if word & PARKED != 0 {
            self.futex.wake_all();
        }
    }

    /// Whether [`Signal::end`] has been called.
    pub fn ended(&self) -> bool {
        self.futex.word.load(Ordering::Acquire) & ENDED != 0
    }

    /// Waits until the epoch is no longer `seen` and returns the one that it is.
    ///
    /// # Errors
    /// [`Ended`], also where there is a new epoch as well.
    pub fn wait(&self, seen: u32) -> Result<u32, Ended> {
        let word = &self.futex.word;
        let backoff = Backoff::new();
        let mut spin_turns = self.spin_turns;
        loop {
            let now = word.load(Ordering::Acquire);
            if now & ENDED != 0 {
                return Err(Ended);
            }
            if now & EPOCH_MASK != seen {
                return Ok(now & EPOCH_MASK);
            }
            if spin_turns > 0 {
                spin_turns -= 1;
                std::hint::spin_loop();
                continue;
            }
            // The model checker tries every interleaving anyway: no turn is spent waiting.
            if !cfg!(loom) && !backoff.is_completed() {
                backoff.snooze();
                continue;
            }
            let parked = now | PARKED;
            let relaxed = Ordering::Relaxed;
            if now == parked || word.compare_exchange(now, parked, relaxed, relaxed).is_ok() {
                self.futex.wait(parked);
            }
        }
    }
}

/// A barrier for a fixed number of members, over and over.
pub struct Barrier {
    members: u32,
    arrived: CachePadded<AtomicU32>,
    left: CachePadded<Signal>,
}

impl Barrier {
    /// A barrier that opens whenever `members` threads (at least one) have arrived; `spin_turns` as
    /// for [`Signal::new`].
    pub fn new(members: u32, spin_turns: u32) -> Barrier {
        debug_assert!(members > 0);
        Barrier {
            members,
            arrived: CachePadded::new(AtomicU32::new(0)),
            left: CachePadded::new(Signal::new(spin_turns)),
        }
    }

    /// Arrives and waits for the others. The last to arrive runs `last` while all the others
    /// wait.
    ///
    /// # Errors
    /// [`Ended`] where somebody ended the barrier instead of arriving: it never opens again.
    pub fn arrive_and_wait(&self, last: impl FnOnce()) -> Result<(), Ended> {
        // Can't change before the addition below: this member is still missing.
        let epoch = self.left.epoch();
        let before = self.arrived.fetch_add(1, Ordering::AcqRel);
        if before + 1 < self.members {
            return self.left.wait(epoch).map(|_| ());
        }
        self.arrived.store(0, Ordering::Relaxed);
        last();
        self.left.advance();
        Ok(())
    }

    /// Releases all that wait, now and in future. The caller must not arrive any more.
    pub fn end(&self) {
        self.left.end();
    }

    /// Whether [`Barrier::end`] has been called.
    pub fn ended(&self) -> bool {
        self.left.ended()
    }
}
