//! The crew with real threads, fewer and more than there are cores.
#![cfg(not(loom))]

use dllm_arena::{
    Item, Leader, Lock, Options, Partition, Phase, PhaseAccess, Region, Sealing, Span, Step, Worker,
};
use std::sync::atomic::{AtomicU64, Ordering};

const THREADS: [usize; 5] = [1, 2, 3, 5, 8];
const ROWS: usize = 24;
/// Stripes of 16 `u32`s, as the matrix kernels write them.
const STRIPES: usize = 7;
const WIDTH: usize = STRIPES * 16;
const MATRIX_BYTES: usize = ROWS * WIDTH * 4;

/// Slots of the test's crew.
const A: usize = 0;
const B: usize = 1;
const SCRATCH: usize = 2;
const SUMS: usize = 3;
const FIXED: Span = Span { offset: 0, bytes: 256 };

fn reserve(bytes: usize) -> Region {
    Region::reserve(bytes, &Options { huge_pages: false, lock: Lock::Off }).unwrap()
}

/// A: stripes of a matrix; B: its transpose; then B in place; then sums of B's rows.
fn sealing(workers: usize) -> Sealing {
    let aligned = MATRIX_BYTES.next_multiple_of(64);
    let scratch_bytes = workers * 1024;
    let at = |offset, bytes| Span { offset: 256 + offset, bytes };
    let slots = vec![
        at(0, MATRIX_BYTES),
        at(aligned, MATRIX_BYTES),
        at(2 * aligned, scratch_bytes),
        at(2 * aligned + scratch_bytes, WIDTH * 8),
    ];
    let stripes = PhaseAccess {
        writes: vec![(A, Partition::columns(STRIPES, 64, WIDTH * 4, ROWS))],
        ..PhaseAccess::default()
    };
    let transpose = PhaseAccess {
        reads: vec![A],
        writes: vec![(B, Partition::columns(ROWS, 4, ROWS * 4, WIDTH))],
        ..PhaseAccess::default()
    };
    let in_place = PhaseAccess {
        writes: vec![(B, Partition::blocks(WIDTH, ROWS * 4).starting_at(3))],
        ..PhaseAccess::default()
    };
    let sums = PhaseAccess {
        reads: vec![B],
        writes: vec![(SUMS, Partition::blocks(WIDTH, 8))],
        scratch: vec![SCRATCH],
    };
    let phases = vec![stripes, transpose, in_place, sums];
    Sealing { fixed_bytes: 256, slots, phases, workers }
}

fn cell(seed: u32, row: usize, column: usize) -> u32 {
    seed.wrapping_mul(2_654_435_761) ^ (row * 1000 + column) as u32
}

/// Counts what each claim gave, to find items given twice or not at all.
type Claims = [[AtomicU64; WIDTH + 3]; 4];

fn run_step(mut step: Step<'_, u32>, claims: &Claims) {
    let seed = step.job();
    while let Some(phase) = step.next_phase() {
        let items = [STRIPES, ROWS, WIDTH + 3, WIDTH][phase.index()];
        while let Some(item) = phase.claim(items) {
            claims[phase.index()][item.index()].fetch_add(1, Ordering::Relaxed);
            run_item(&phase, &item, seed);
        }
    }
}

fn run_item(phase: &Phase<'_>, item: &Item<'_>, seed: u32) {
    let at = item.index();
    match phase.index() {
        0 => {
            let mut view = item.write::<u32>(A);
            for row in 0..view.pieces() {
                for (column, value) in view.piece(row).iter_mut().enumerate() {
                    *value = cell(seed, row, at * 16 + column);
                }
            }
        }
        1 => {
            let from = &phase.read::<u32>(A)[at * WIDTH..(at + 1) * WIDTH];
            for (piece, value) in item.write::<u32>(B).iter_mut().zip(from) {
                piece[0] = *value;
            }
        }
        2 if at >= 3 => {
            let factor = phase.fixed::<u32>(FIXED)[5];
            for value in item.write::<u32>(B).into_only() {
                *value = value.wrapping_mul(factor);
            }
        }
        3 => {
            let row = &phase.read::<u32>(B)[at * ROWS..(at + 1) * ROWS];
            item.write::<u64>(SUMS).piece(0)[0] = row.iter().map(|&v| u64::from(v)).sum();
        }
        _ => {}
    }
}

fn expected_sum(seed: u32, column: usize) -> u64 {
    (0..ROWS).map(|row| u64::from(cell(seed, row, column).wrapping_mul(17))).sum()
}

/// Seals a region for `workers` threads, runs `work` on all but one of them and `lead` here.
fn with_crew(workers: usize, lead: impl FnOnce(Leader<u32>), work: impl Fn(Worker<u32>) + Sync) {
    let sealing = sealing(workers);
    let last = sealing.slots[SUMS];
    let mut region = reserve(last.offset + last.bytes);
    region.span_mut::<u32>(FIXED)[5] = 17;
    let (leader, others) = region.seal(sealing).unwrap();
    assert_eq!((leader.workers(), others.len()), (workers, workers - 1));
    std::thread::scope(|scope| {
        let work = &work;
        for worker in others {
            scope.spawn(move || work(worker));
        }
        lead(leader);
    });
}

fn claims() -> Box<Claims> {
    Box::new(std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))))
}

#[test]
fn steps_give_the_same_with_any_number_of_threads() {
    const STEPS: u32 = 300;
    for workers in THREADS {
        let claims = claims();
        let lead = |mut leader: Leader<u32>| {
            for seed in 0..STEPS {
                leader.poison(0x7fc0_dead);
                run_step(leader.begin(seed, 0..4), &claims);
                let sums = leader.slot::<u64>(SUMS);
                for (column, &sum) in sums.iter().enumerate() {
                    let expected = expected_sum(seed, column);
                    assert_eq!(sum, expected, "{workers} threads, step {seed}, column {column}");
                }
            }
        };
        with_crew(workers, lead, |mut worker| {
            while let Some(step) = worker.next_step() {
                run_step(step, &claims);
            }
        });
        for (phase, items) in [STRIPES, ROWS, WIDTH + 3, WIDTH].into_iter().enumerate() {
            for (item, times) in claims[phase].iter().enumerate() {
                let times = times.load(Ordering::Relaxed);
                let expected = if item < items { u64::from(STEPS) } else { 0 };
                assert_eq!(times, expected, "{workers} threads, phase {phase}, item {item}");
            }
        }
    }
}

/// Two of every three items are left out, whatever the threads; none of the others is given twice.
#[test]
fn items_that_are_left_out_are_claimed_by_nobody() {
    const STEPS: u32 = 200;
    let next = |at: usize| at.next_multiple_of(3);
    for workers in THREADS {
        let claims = claims();
        let run = |mut step: Step<'_, u32>| {
            while let Some(phase) = step.next_phase() {
                let items = [STRIPES, ROWS, WIDTH + 3, WIDTH][phase.index()];
                while let Some(item) = phase.claim_next(items, next) {
                    claims[phase.index()][item.index()].fetch_add(1, Ordering::Relaxed);
                    run_item(&phase, &item, 7);
                }
            }
        };
        let lead = |mut leader: Leader<u32>| {
            for seed in 0..STEPS {
                run(leader.begin(seed, 0..4));
            }
        };
        with_crew(workers, lead, |mut worker| {
            while let Some(step) = worker.next_step() {
                run(step);
            }
        });
        for (phase, items) in [STRIPES, ROWS, WIDTH + 3, WIDTH].into_iter().enumerate() {
            for (item, times) in claims[phase].iter().enumerate() {
                let times = times.load(Ordering::Relaxed);
                let is_done = item < items && item.is_multiple_of(3);
                let expected = if is_done { u64::from(STEPS) } else { 0 };
                assert_eq!(times, expected, "{workers} threads, phase {phase}, item {item}");
            }
        }
    }
}

#[test]
fn a_step_runs_the_phases_it_is_told() {
    let claims = claims();
    let lead = |mut leader: Leader<u32>| {
        // Nothing to do: the others are not even told.
        assert!(leader.begin(1, 2..2).next_phase().is_none());
        run_step(leader.begin(7, 0..2), &claims);
        let before = leader.slot::<u32>(B).to_vec();
        assert_eq!(before[0..2], [cell(7, 0, 0), cell(7, 1, 0)]);
        run_step(leader.begin(7, 2..3), &claims);
        assert_eq!(leader.slot::<u32>(B)[1], before[1].wrapping_mul(17));
        assert_eq!(leader.slot::<u64>(SUMS)[0], 0);
        leader.slot_mut::<u32>(B).fill(2);
        run_step(leader.begin(7, 3..4), &claims);
        assert_eq!(leader.slot::<u64>(SUMS)[WIDTH - 1], 2 * ROWS as u64);
    };
    with_crew(3, lead, |mut worker| {
        let (mut phases, number) = (Vec::new(), worker.worker());
        while let Some(mut step) = worker.next_step() {
            assert_eq!((step.job(), step.worker()), (7, number));
            while let Some(phase) = step.next_phase() {
                phases.push(phase.index());
                while let Some(item) = phase.claim(1) {
                    run_item(&phase, &item, 7);
                }
                let items = [STRIPES, ROWS, WIDTH + 3, WIDTH][phase.index()];
                while let Some(item) = phase.claim(items) {
                    run_item(&phase, &item, 7);
                }
            }
        }
        assert_eq!(phases, [0, 1, 2, 3]);
    });
}

#[test]
fn scratch_is_apart_for_each_worker_and_stays() {
    const WORKERS: usize = 5;
    let run = |mut step: Step<'_, u32>| {
        let number = step.worker() as u32 + 1;
        while let Some(phase) = step.next_phase() {
            let scratch = phase.scratch::<u32>(SCRATCH);
            assert_eq!((scratch.len(), scratch.as_ptr().addr() % 64), (256, 0));
            scratch.iter_mut().for_each(|value| *value += number);
        }
    };
    let lead = |mut leader: Leader<u32>| {
        for _ in 0..50 {
            run(leader.begin(0, 3..4));
        }
        for (at, &value) in leader.slot::<u32>(SCRATCH).iter().enumerate() {
            assert_eq!(value, 50 * (at as u32 / 256 + 1), "scratch word {at}");
        }
    };
    with_crew(WORKERS, lead, |mut worker| {
        while let Some(step) = worker.next_step() {
            run(step);
        }
    });
}

#[test]
fn poison_spares_the_fixed_part_only() {
    let fixed_bytes = 130;
    let slots = vec![Span { offset: 192, bytes: 64 }, Span { offset: 4096 - 64, bytes: 64 }];
    let sealing = Sealing { fixed_bytes, slots, phases: vec![], workers: 1 };
    let mut region = reserve(4096);
    region.span_mut::<u8>(Span { offset: 0, bytes: 130 }).fill(9);
    let (mut leader, _) = region.seal::<()>(sealing).unwrap();
    leader.poison(0xffff_ffff);
    assert!(leader.fixed::<u8>(Span { offset: 0, bytes: 130 }).iter().all(|&byte| byte == 9));
    assert_eq!(leader.slot::<u8>(0), [0xff; 64]);
    assert_eq!(leader.slot::<u8>(1), [0xff; 64]);
}
