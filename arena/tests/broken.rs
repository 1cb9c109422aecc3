//! What goes wrong goes wrong loudly: panics reach everyone, nothing waits for ever, and what was
//! not declared is not handed out.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use dllm_arena::{
    Leader, Lock, Options, Partition, Pass, PhaseAccess, Region, Sealing, Span, Worker,
};
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

const READ: usize = 0;
const WRITTEN: usize = 1;
const SCRATCH: usize = 2;
const UNUSED: usize = 3;

/// Two like phases, each of 8 items of 2 pieces of 8 bytes.
fn pool(workers: usize) -> (Leader<u32>, Vec<Worker<u32>>) {
    let slots = (0..4).map(|at| Span { offset: 64 + at * 1024, bytes: 1024 }).collect();
    let partition = Partition::columns(8, 8, 64, 2).starting_at(1);
    let access = PhaseAccess {
        reads: vec![READ],
        writes: vec![(WRITTEN, partition)],
        scratch: vec![SCRATCH],
    };
    let phases = vec![access.clone(), access];
    let options = Options { huge_pages: false, lock: Lock::Off };
    let region = Region::reserve(8192, &options).unwrap();
    region.seal(Sealing { fixed_bytes: 64, slots, phases, workers }).unwrap()
}

/// The panic's message, or what came back without one.
fn panics<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast_ref::<&str>().unwrap_or(&"").to_string(),
    })
}

fn panics_with<T>(words: &str, work: impl FnOnce() -> T) {
    match panics(work) {
        Ok(_) => panic!("no panic that says {words:?}"),
        Err(text) => assert!(text.contains(words), "{text:?} does not say {words:?}"),
    }
}

fn run(mut pass: Pass<'_, u32>, mut each_phase: impl FnMut(usize, usize)) {
    let worker = pass.worker();
    while let Some(phase) = pass.next_phase() {
        each_phase(phase.index(), worker);
        while phase.claim(9).is_some() {}
    }
}

/// Runs all passes to their end and counts them.
fn run_all(worker: &mut Worker<u32>) -> usize {
    let mut passes = 0;
    while let Some(pass) = worker.next_pass() {
        run(pass, |_, _| {});
        passes += 1;
    }
    passes
}

/// Runs passes in which `culprit` panics in phase `at` of pass 3; everyone must panic.
fn one_panics(workers: usize, culprit: usize, at: usize) {
    let (mut leader, others) = pool(workers);
    let blamed = AtomicUsize::new(0);
    let each_phase = |job: u32| {
        move |phase: usize, worker: usize| {
            assert!(!(job == 3 && worker == culprit && phase == at), "this one did it");
        }
    };
    let note = |outcome: Result<(), String>| {
        let text = outcome.expect_err("a worker got away");
        let culprit_text = text.contains("this one did it");
        assert!(culprit_text || text.contains("the pool is unusable"), "{text}");
        blamed.fetch_add(usize::from(culprit_text), Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for mut worker in others {
            scope.spawn(move || {
                let note = &note;
                note(panics(|| {
                    while let Some(pass) = worker.next_pass() {
                        let job = pass.job();
                        run(pass, each_phase(job));
                    }
                }));
                panics_with("unusable", || worker.next_pass().is_some());
            });
        }
        note(panics(|| (0..10).for_each(|job| run(leader.begin(job, 0..2), each_phase(job)))));
        panics_with("unusable", || leader.slot::<u32>(READ).len());
        panics_with("unusable", || leader.slot_mut::<u32>(READ).len());
        panics_with("unusable", || leader.poison(0));
        panics_with("unusable", || leader.begin(0, 0..1).job());
    });
    assert_eq!(blamed.into_inner(), 1);
}

#[test]
fn a_panic_reaches_everyone() {
    for (workers, culprits) in [(1, 0..1), (2, 0..2), (5, 0..5)] {
        for culprit in culprits {
            for phase in [0, 1] {
                one_panics(workers, culprit, phase);
            }
        }
    }
}

#[test]
fn a_pass_that_is_cut_short_breaks_the_pool() {
    let (mut leader, mut others) = pool(2);
    let mut worker = others.remove(0);
    std::thread::scope(|scope| {
        scope.spawn(move || panics_with("unusable", || run_all(&mut worker)));
        let mut pass = leader.begin(0, 0..2);
        drop(pass.next_phase());
        drop(pass);
        panics_with("unusable", || leader.begin(0, 0..1).job());
    });
}

#[test]
fn a_worker_that_goes_away_breaks_the_pool() {
    let (mut leader, mut others) = pool(3);
    drop(others.pop());
    panics_with("unusable", || leader.begin(0, 0..1).job());
    panics_with("unusable", || others[0].next_pass().is_some());
    // No pass is under way, so the slots are still the leader's.
    assert_eq!(leader.slot_mut::<u32>(READ).len(), 256);
}

#[test]
fn workers_go_home_with_their_leader() {
    let (mut leader, others) = pool(4);
    std::thread::scope(|scope| {
        let handles: Vec<_> = others
            .into_iter()
            .map(|mut worker| {
                scope.spawn(move || {
                    let passes = run_all(&mut worker);
                    assert!(worker.next_pass().is_none());
                    passes
                })
            })
            .collect();
        (0..20).for_each(|job| run(leader.begin(job, 0..2), |_, _| {}));
        drop(leader);
        assert!(handles.into_iter().all(|handle| handle.join().unwrap() == 20));
    });
    // Without any pass, and in the other order of dropping.
    let (leader, mut others) = pool(2);
    drop(leader);
    assert!(others[0].next_pass().is_none());
}

#[test]
fn what_is_leaked_is_found_out() {
    let (mut leader, _) = pool(1);
    forget(leader.begin(0, 0..2));
    panics_with("left unfinished", || leader.slot::<u32>(READ).len());
    panics_with("left unfinished", || leader.slot_mut::<u32>(READ).len());
    panics_with("left unfinished", || leader.begin(0, 0..2).job());

    let (mut leader, _) = pool(1);
    let mut pass = leader.begin(0, 0..2);
    forget(pass.next_phase());
    panics_with("leaked", || pass.next_phase().is_some());
    drop(pass);
    panics_with("left unfinished", || leader.slot_mut::<u32>(READ).len());

    // The last phase: no other follows that would notice.
    let (mut leader, _) = pool(1);
    let mut pass = leader.begin(0, 0..1);
    forget(pass.next_phase());
    assert!(pass.next_phase().is_none());
    drop(pass);
    panics_with("left unfinished", || leader.slot_mut::<u32>(READ).len());
}

#[test]
fn a_worker_that_leaks_its_phase_breaks_the_pool() {
    let (mut leader, mut others) = pool(2);
    let mut worker = others.remove(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut pass = worker.next_pass().unwrap();
            forget(pass.next_phase());
            forget(pass);
            panics_with("unusable", || worker.next_pass().is_some());
        });
        panics_with("unusable", || run(leader.begin(0, 0..2), |_, _| {}));
    });
}

#[test]
fn only_what_is_declared_is_handed_out_and_only_once() {
    let (mut leader, _) = pool(1);
    panics_with("there are 2", || leader.begin(0, 1..3).job());
    panics_with("there are 4", || leader.slot::<u8>(4).len());
    let mut pass = leader.begin(0, 0..1);
    let phase = pass.next_phase().unwrap();
    for slot in [WRITTEN, SCRATCH, UNUSED, 99] {
        panics_with("does not declare to read", || phase.read::<u8>(slot).len());
    }
    for slot in [READ, WRITTEN, UNUSED, 99] {
        panics_with("as scratch", || phase.scratch::<u8>(slot).len());
    }
    assert_eq!(phase.scratch::<u8>(SCRATCH).len(), 1024);
    panics_with("already", || phase.scratch::<u8>(SCRATCH).len());
    panics_with("at most 9", || phase.claim(10).is_some());
    panics_with("at most 9", || phase.claim_next(10, |at| at).is_some());
    assert!(phase.claim_next(9, |_| 9).is_none());

    let outside = phase.claim(9).unwrap();
    panics_with("no part for item 0", || outside.write::<u8>(WRITTEN).pieces());
    let item = phase.claim(9).unwrap();
    for slot in [READ, SCRATCH, UNUSED, 99] {
        panics_with("does not declare to write", || item.write::<u8>(slot).pieces());
    }
    let mut view = item.write::<u32>(WRITTEN);
    panics_with("already", || item.write::<u32>(WRITTEN).pieces());
    assert_eq!((view.pieces(), view.piece(1).len()), (2, 2));
    panics_with("there are 2", || view.piece(2).len());
    panics_with("no single one", || view.into_only().len());

    // Pieces of 8 bytes hold no 16-byte values.
    panics_with("comes before", || phase.claim_next(9, |at| at - 1).is_some());
    let item = phase.claim(9).unwrap();
    panics_with("no whole number of aligned", || item.write::<u128>(WRITTEN).pieces());
    panics_with("leaves the 64 bytes", || phase.fixed::<u8>(Span { offset: 60, bytes: 8 }).len());
    panics_with("aligned", || phase.fixed::<u32>(Span { offset: 2, bytes: 8 }).len());
}
