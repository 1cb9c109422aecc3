//! Every interleaving (up to a bound on preemptions) of the signal, the barrier and the crew:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p dllm-arena --release --test loom
//! ```
//!
//! `LOOM_MAX_PREEMPTIONS` sets another bound, for hours instead of a minute.
//! The checker's own cells stand for the memory: it reports two accesses that are not ordered. The
//! futex is modelled (`src/sync.rs`), so a wake-up that gets lost is reported as a deadlock.
#![cfg(loom)]

use dllm_arena::barrier::{Barrier, Ended, Signal};
use dllm_arena::{Item, Lock, Options, Phase, PhaseAccess, Region, Sealing, Step};
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

// SAFETY: the checker reports what would not be safe.
unsafe impl Sync for Watched {}
// SAFETY: as above.
unsafe impl Send for Watched {}

impl Watched {
    fn new() -> Watched {
        Watched(UnsafeCell::new(0))
    }

    fn get(&self) -> u32 {
        // SAFETY: the checker watches.
        self.0.with(|value| unsafe { *value })
    }

    fn add(&self, more: u32) {
        // SAFETY: the checker watches.
        self.0.with_mut(|value| unsafe { *value += more })
    }
}

#[test]
fn a_signal_carries_what_came_before_it() {
    check(PREEMPTIONS_MAX, || {
        let shared = Arc::new((Signal::new(0), Watched::new()));
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.0.wait(0).unwrap();
                    assert_eq!(shared.1.get(), 1);
                })
            })
            .collect();
        shared.1.add(1);
        shared.0.advance();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

#[test]
fn an_end_wakes_everyone() {
    check(PREEMPTIONS_MAX, || {
        let signal = Arc::new(Signal::new(0));
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let signal = Arc::clone(&signal);
                thread::spawn(move || assert_eq!(signal.wait(0), Err(Ended)))
            })
            .collect();
        signal.end();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

/// Each round, one member after the other owns the value: the barrier alone keeps them apart.
fn barrier_rounds(members: u32, rounds: u32, preemptions_max: usize) {
    check(preemptions_max, move || {
        let shared = Arc::new((Barrier::new(members, 0), Watched::new(), Watched::new()));
        let member = move |shared: &(Barrier, Watched, Watched), number: u32| {
            for round in 0..rounds {
                if round % members == number {
                    shared.1.add(1);
                }
                // What whoever came last did is seen by all, like the counter that it resets.
                shared.0.pass(|| shared.2.add(1)).unwrap();
                assert_eq!((shared.1.get(), shared.2.get()), (round + 1, round + 1));
                shared.0.pass(|| {}).unwrap();
            }
        };
        let others: Vec<_> = (1..members)
            .map(|number| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || member(&shared, number))
            })
            .collect();
        member(&shared, 0);
        others.into_iter().for_each(|other| other.join().unwrap());
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
        let barrier = Arc::new(Barrier::new(3, 0));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let barrier = Arc::clone(&barrier);
                thread::spawn(move || assert_eq!(barrier.pass(|| unreachable!()), Err(Ended)))
            })
            .collect();
        barrier.end();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

/// How two items are claimed.
#[derive(Clone, Copy)]
enum Claiming {
    /// One after the other.
    All,
    /// The first and the third of four, the others being left out.
    Some,
}

impl Claiming {
    fn stride(self) -> usize {
        match self {
            Claiming::All => 1,
            Claiming::Some => 2,
        }
    }

    fn next<'p>(self, phase: &'p Phase<'_>) -> Option<Item<'p>> {
        match self {
            Claiming::All => phase.claim(2),
            Claiming::Some => phase.claim_next(4, |at| at.next_multiple_of(2)),
        }
    }
}

/// One value for each item and one that each phase reads.
struct Watches {
    claiming: Claiming,
    items: [Watched; 2],
    between: Watched,
}

fn run(mut step: Step<'_, u32>, watches: &Watches) {
    let job = step.job();
    while let Some(phase) = step.next_phase() {
        // The leader changed this before the step, and will again after it.
        assert_eq!(watches.between.get(), job);
        while let Some(item) = watches.claiming.next(&phase) {
            watches.items[item.index() / watches.claiming.stride()].add(1);
        }
    }
}

/// The whole protocol: begin, next_step, claims that start again with each phase, the leader's
/// turn between the steps, and its end.
fn crew_steps(
    workers: usize,
    steps: u32,
    phases: usize,
    claiming: Claiming,
    preemptions_max: usize,
) {
    check(preemptions_max, move || {
        let region = Region::reserve(1, &Options { huge_pages: false, lock: Lock::Off }).unwrap();
        let table = vec![PhaseAccess::default(); phases];
        let sealing = Sealing { phases: table, workers, ..Sealing::default() };
        let (mut leader, others) = region.seal::<u32>(sealing).unwrap();
        let items = [Watched::new(), Watched::new()];
        let watches = Arc::new(Watches { claiming, items, between: Watched::new() });
        let others: Vec<_> = others
            .into_iter()
            .map(|mut worker| {
                let watches = Arc::clone(&watches);
                thread::spawn(move || {
                    let mut taken = 0;
                    while let Some(step) = worker.next_step() {
                        run(step, &watches);
                        taken += 1;
                    }
                    assert_eq!(taken, steps);
                })
            })
            .collect();
        for step in 1..=steps {
            watches.between.add(1);
            run(leader.begin(step, 0..phases), &watches);
            for item in &watches.items {
                assert_eq!(item.get(), step * phases as u32);
            }
        }
        drop(leader);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn a_crew_of_two_runs_two_steps() {
    crew_steps(2, 2, 1, Claiming::All, 2);
}

#[test]
fn a_crew_of_two_runs_a_step_of_two_phases() {
    crew_steps(2, 1, 2, Claiming::All, 2);
}

#[test]
fn a_crew_of_two_leaves_items_out() {
    crew_steps(2, 1, 2, Claiming::Some, 2);
}

#[test]
fn a_crew_of_three_runs_a_step() {
    crew_steps(3, 1, 1, Claiming::All, 1);
}

#[test]
fn a_crew_of_three_leaves_items_out() {
    crew_steps(3, 1, 1, Claiming::Some, 1);
}
