//! What goes wrong goes wrong loudly: panics reach everyone, nothing waits for ever, and what was
//! not declared is not handed out.
#![cfg(not(loom))]

use dllm_arena::{
    Leader, Lock, Options, Partition, PhaseAccess, Region, Sealing, Span, Step, Worker,
};
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

const READ: usize = 0;
const WRITTEN: usize = 1;
const SCRATCH: usize = 2;
const UNUSED: usize = 3;

/// Two like phases, each of 8 items of 2 pieces of 8 bytes.
fn crew(workers: usize) -> (Leader<u32>, Vec<Worker<u32>>) {
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

fn run(mut step: Step<'_, u32>, mut each_phase: impl FnMut(usize, usize)) {
    let worker = step.worker();
    while let Some(phase) = step.next_phase() {
        each_phase(phase.index(), worker);
        while phase.claim(9).is_some() {}
    }
}

/// Runs steps in which `culprit` panics in phase `at` of step 3; everyone must panic.
fn one_panics(workers: usize, culprit: usize, at: usize) {
    let (mut leader, others) = crew(workers);
    let blamed = AtomicUsize::new(0);
    let each_phase = |job: u32| {
        move |phase: usize, worker: usize| {
            assert!(!(job == 3 && worker == culprit && phase == at), "this one did it");
        }
    };
    let note = |outcome: Result<(), String>| {
        let text = outcome.expect_err("a worker got away");
        let culprit_text = text.contains("this one did it");
        assert!(culprit_text || text.contains("the crew is unusable"), "{text}");
        blamed.fetch_add(usize::from(culprit_text), Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for mut worker in others {
            scope.spawn(move || {
                let note = &note;
                note(panics(|| {
                    while let Some(step) = worker.next_step() {
                        let job = step.job();
                        run(step, each_phase(job));
                    }
                }));
                panics_with("unusable", || worker.next_step().is_some());
            });
        }
        note(panics(|| (0..10).for_each(|job| run(leader.begin(job, 0..2), each_phase(job)))));
        assert!(leader.broken());
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
fn a_step_that_is_cut_short_breaks_the_crew() {
    let (mut leader, mut others) = crew(2);
    let mut worker = others.remove(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            panics_with("unusable", || {
                while let Some(step) = worker.next_step() {
                    run(step, |_, _| {});
                }
            });
        });
        let mut step = leader.begin(0, 0..2);
        drop(step.next_phase());
        drop(step);
        panics_with("unusable", || leader.begin(0, 0..1).job());
    });
}

#[test]
fn a_worker_that_goes_away_breaks_the_crew() {
    let (mut leader, mut others) = crew(3);
    drop(others.pop());
    assert!(leader.broken());
    panics_with("unusable", || leader.begin(0, 0..1).job());
    panics_with("unusable", || others[0].next_step().is_some());
    // No step is under way, so the slots are still the leader's.
    assert_eq!(leader.slot_mut::<u32>(READ).len(), 256);
}

#[test]
fn workers_go_home_with_their_leader() {
    let (mut leader, others) = crew(4);
    std::thread::scope(|scope| {
        let handles: Vec<_> = others
            .into_iter()
            .map(|mut worker| {
                scope.spawn(move || {
                    let mut steps = 0;
                    while let Some(step) = worker.next_step() {
                        run(step, |_, _| {});
                        steps += 1;
                    }
                    assert!(worker.next_step().is_none());
                    steps
                })
            })
            .collect();
        (0..20).for_each(|job| run(leader.begin(job, 0..2), |_, _| {}));
        drop(leader);
        assert!(handles.into_iter().all(|handle| handle.join().unwrap() == 20));
    });
    // Without any step, and in the other order of dropping.
    let (leader, mut others) = crew(2);
    drop(leader);
    assert!(others[0].next_step().is_none());
}

#[test]
fn what_is_leaked_is_found_out() {
    let (mut leader, _) = crew(1);
    forget(leader.begin(0, 0..2));
    panics_with("left unfinished", || leader.slot::<u32>(READ).len());
    panics_with("left unfinished", || leader.slot_mut::<u32>(READ).len());
    panics_with("left unfinished", || leader.begin(0, 0..2).job());

    let (mut leader, _) = crew(1);
    let mut step = leader.begin(0, 0..2);
    forget(step.next_phase());
    panics_with("leaked", || step.next_phase().is_some());
    drop(step);
    panics_with("left unfinished", || leader.slot_mut::<u32>(READ).len());

    // The last phase: no other follows that would notice.
    let (mut leader, _) = crew(1);
    let mut step = leader.begin(0, 0..1);
    forget(step.next_phase());
    assert!(step.next_phase().is_none());
    drop(step);
    panics_with("left unfinished", || leader.slot_mut::<u32>(READ).len());
}

#[test]
fn a_worker_that_leaks_its_phase_breaks_the_crew() {
    let (mut leader, mut others) = crew(2);
    let mut worker = others.remove(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut step = worker.next_step().unwrap();
            forget(step.next_phase());
            forget(step);
            panics_with("unusable", || worker.next_step().is_some());
        });
        panics_with("unusable", || run(leader.begin(0, 0..2), |_, _| {}));
    });
}

#[test]
fn only_what_is_declared_is_handed_out_and_only_once() {
    let (mut leader, _) = crew(1);
    panics_with("there are 2", || leader.begin(0, 1..3).job());
    panics_with("there are 4", || leader.slot::<u8>(4).len());
    let mut step = leader.begin(0, 0..1);
    let phase = step.next_phase().unwrap();
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
