//! Every interleaving (up to a bound on preemptions) of signal, barrier and thread pool:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p dllm-arena --release --test loom
//! ```
//!
//! `LOOM_MAX_PREEMPTIONS` sets another bound, for hours instead of a minute.
//! The checker's own cells stand for the memory: it reports two accesses that are not ordered. The
//! futex is modelled (`src/threads/sync.rs`): a wake-up that gets lost is reported as a deadlock.
#![cfg(loom)]

use dllm_arena::barrier::{Barrier, Ended, Signal};
use dllm_arena::{Lock, Options, Pass, PhaseAccess, Region, Sealing};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// Two or three forced switches find what is there to be found, as the checker's authors advise.
const PREEMPTIONS_MAX: usize = 3;

fn check(preemptions_max: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions_max));
    let tried = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counter = std::sync::Arc::clone(&tried);
    builder.check(move || {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    println!("{} interleavings", tried.load(std::sync::atomic::Ordering::Relaxed));
}

/// A value that the checker watches.
struct Watched(UnsafeCell<u32>);

// SAFETY: the checker reports accesses that are not ordered.
unsafe impl Sync for Watched {}
// SAFETY: a number may be moved to any thread.
unsafe impl Send for Watched {}

impl Watched {
    fn new() -> Watched {
        Watched(UnsafeCell::new(0))
    }

    fn get(&self) -> u32 {
        // SAFETY: the checker reports a write at the same time.
        self.0.with(|value| unsafe { *value })
    }

    fn add(&self, more: u32) {
        // SAFETY: the checker reports any other access at the same time.
        self.0.with_mut(|value| unsafe { *value += more })
    }
}

/// Runs `lead` here beside `others` threads with numbers from 1, which run `work`.
fn beside<S: Send + Sync + 'static>(
    others: u32,
    shared: S,
    work: impl Fn(&S, u32) + Copy + Send + 'static,
    lead: impl FnOnce(&S),
) {
    let shared = Arc::new(shared);
    let spawn = |number| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || work(&shared, number))
    };
    let handles: Vec<_> = (1..=others).map(spawn).collect();
    lead(&shared);
    handles.into_iter().for_each(|handle| handle.join().unwrap());
}

#[test]
fn a_signal_carries_what_came_before_it() {
    check(PREEMPTIONS_MAX, || {
        let waiter = |(signal, value): &(Signal, Watched), _| {
            signal.wait(0).unwrap();
            assert_eq!(value.get(), 1);
        };
        beside(2, (Signal::new(0), Watched::new()), waiter, |(signal, value)| {
            value.add(1);
            signal.advance();
        });
    });
}

#[test]
fn an_end_wakes_everyone() {
    check(PREEMPTIONS_MAX, || {
        let waiter = |signal: &Signal, _| assert_eq!(signal.wait(0), Err(Ended));
        beside(2, Signal::new(0), waiter, Signal::end);
    });
}

/// Each round, one member after the other owns the value: the barrier alone keeps them apart.
fn barrier_rounds(members: u32, rounds: u32, preemptions_max: usize) {
    check(preemptions_max, move || {
        let member = move |shared: &(Barrier, Watched, Watched), number: u32| {
            for round in 0..rounds {
                if round % members == number {
                    shared.1.add(1);
                }
                // What the last to arrive did is seen by all, like the counter that it resets.
                shared.0.arrive_and_wait(|| shared.2.add(1)).unwrap();
                assert_eq!((shared.1.get(), shared.2.get()), (round + 1, round + 1));
                shared.0.arrive_and_wait(|| {}).unwrap();
            }
        };
        let shared = (Barrier::new(members, 0), Watched::new(), Watched::new());
        beside(members - 1, shared, member, |shared| member(shared, 0));
    });
}

#[test]
fn a_barrier_of_two_orders_three_rounds() {
    barrier_rounds(2, 3, PREEMPTIONS_MAX);
}

#[test]
fn a_barrier_of_three_orders_a_round() {
    barrier_rounds(3, 1, 2);
}

#[test]
fn a_member_that_ends_the_barrier_releases_the_others() {
    check(PREEMPTIONS_MAX, || {
        let member = |barrier: &Barrier, _| {
            assert_eq!(barrier.arrive_and_wait(|| unreachable!()), Err(Ended))
        };
        beside(2, Barrier::new(3, 0), member, Barrier::end);
    });
}

/// One value for each item and one that each phase reads.
struct Watches {
    /// Two items are run: all that there are, or the first of `every` each.
    every: usize,
    items: [Watched; 2],
    between: Watched,
}

fn run(mut pass: Pass<'_, u32>, watches: &Watches) {
    let job = pass.job();
    while let Some(phase) = pass.next_phase() {
        // The leader changed this before the pass, and will again after it.
        assert_eq!(watches.between.get(), job);
        let every = watches.every;
        let claim = || match every {
            1 => phase.claim(2),
            _ => phase.claim_next(2 * every, |at| at.next_multiple_of(every)),
        };
        while let Some(item) = claim() {
            watches.items[item.index() / every].add(1);
        }
    }
}

/// The whole protocol: begin, next_pass, claims that start again with each phase, the leader's
/// turn between the passes, and its end.
fn pool_passes(workers: usize, passes: u32, phases: usize, every: usize, preemptions_max: usize) {
    check(preemptions_max, move || {
        let region = Region::reserve(1, &Options { huge_pages: false, lock: Lock::Off }).unwrap();
        let table = vec![PhaseAccess::default(); phases];
        let sealing = Sealing { phases: table, workers, ..Sealing::default() };
        let (mut leader, others) = region.seal::<u32>(sealing).unwrap();
        let items = [Watched::new(), Watched::new()];
        let watches = Arc::new(Watches { every, items, between: Watched::new() });
        let others: Vec<_> = others
            .into_iter()
            .map(|mut worker| {
                let watches = Arc::clone(&watches);
                thread::spawn(move || {
                    let mut taken = 0;
                    while let Some(pass) = worker.next_pass() {
                        run(pass, &watches);
                        taken += 1;
                    }
                    assert_eq!(taken, passes);
                })
            })
            .collect();
        for pass in 1..=passes {
            watches.between.add(1);
            run(leader.begin(pass, 0..phases), &watches);
            for item in &watches.items {
                assert_eq!(item.get(), pass * phases as u32);
            }
        }
        drop(leader);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn a_pool_of_two_runs_two_passes_and_two_phases() {
    pool_passes(2, 2, 1, 1, 2);
    pool_passes(2, 1, 2, 1, 2);
    pool_passes(2, 1, 2, 2, 2);
}

#[test]
fn a_pool_of_three_runs_a_pass() {
    pool_passes(3, 1, 1, 1, 1);
    pool_passes(3, 1, 1, 2, 1);
}
