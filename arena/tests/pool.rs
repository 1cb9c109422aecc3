//! The thread pool with real threads, fewer and more than there are cores.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use dllm_arena::{
    Item, Leader, Lock, Options, Partition, Pass, Phase, PhaseAccess, Region, Sealing, Span, Worker,
};
use std::sync::atomic::{AtomicU64, Ordering};

const THREADS: [usize; 5] = [1, 2, 3, 5, 8];
const ROWS: usize = 24;
/// Stripes of 16 `u32`s, as the matrix kernels write them.
const STRIPES: usize = 7;
const WIDTH: usize = STRIPES * 16;
const MATRIX_BYTES: usize = ROWS * WIDTH * 4;

/// Slots of the test's pool.
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

/// Items of each phase.
const ITEMS: [usize; 4] = [STRIPES, ROWS, WIDTH + 3, WIDTH];
/// Counts what each claim gave, to find items given twice or not at all.
type Claims = [[AtomicU64; WIDTH + 3]; 4];

/// Runs every item, or those alone whose numbers are multiples of `every`.
fn run_pass(mut pass: Pass<'_, u32>, every: usize, claims: &Claims) {
    let seed = pass.job();
    while let Some(phase) = pass.next_phase() {
        let items = ITEMS[phase.index()];
        let claim = || match every {
            1 => phase.claim(items),
            _ => phase.claim_next(items, |at| at.next_multiple_of(every)),
        };
        while let Some(item) = claim() {
            claims[phase.index()][item.index()].fetch_add(1, Ordering::Relaxed);
            run_item(&phase, &item, seed);
        }
    }
}

/// Runs `passes` passes with several numbers of threads and finds each item in each exactly once,
/// and none of those that are left out. `between` comes after each, with its number.
fn run_passes(passes: u32, every: usize, between: impl Fn(usize, u32, &mut Leader<u32>)) {
    for workers in THREADS {
        let claims: Claims = std::array::from_fn(|_| [const { AtomicU64::new(0) }; WIDTH + 3]);
        let lead = |mut leader: Leader<u32>| {
            for seed in 0..passes {
                leader.poison(0x7fc0_dead);
                run_pass(leader.begin(seed, 0..4), every, &claims);
                between(workers, seed, &mut leader);
            }
        };
        with_pool(workers, lead, |mut worker| {
            while let Some(pass) = worker.next_pass() {
                run_pass(pass, every, &claims);
            }
        });
        for (phase, items) in ITEMS.into_iter().enumerate() {
            for (item, times) in claims[phase].iter().enumerate() {
                let is_done = item < items && item.is_multiple_of(every);
                let expected = if is_done { u64::from(passes) } else { 0 };
                let times = times.load(Ordering::Relaxed);
                assert_eq!(times, expected, "{workers} threads, phase {phase}, item {item}");
            }
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
fn with_pool(workers: usize, lead: impl FnOnce(Leader<u32>), work: impl Fn(Worker<u32>) + Sync) {
    let sealing = sealing(workers);
    let last = sealing.slots[SUMS];
    let mut region = reserve(last.offset + last.bytes);
    region.span_mut::<u32>(FIXED)[5] = 17;
    let (leader, others) = region.seal(sealing).unwrap();
    assert_eq!(others.len(), workers - 1);
    std::thread::scope(|scope| {
        let work = &work;
        for worker in others {
            scope.spawn(move || work(worker));
        }
        lead(leader);
    });
}

#[test]
fn passes_give_the_same_with_any_number_of_threads() {
    run_passes(300, 1, |workers, seed, leader| {
        for (column, &sum) in leader.slot::<u64>(SUMS).iter().enumerate() {
            let expected = expected_sum(seed, column);
            assert_eq!(sum, expected, "{workers} threads, pass {seed}, column {column}");
        }
    });
}

/// Two of every three items are left out, whatever the threads; none of the others is given twice.
#[test]
fn items_that_are_left_out_are_claimed_by_nobody() {
    run_passes(200, 3, |_, _, _| ());
}

#[test]
fn a_pass_runs_the_phases_it_is_told() {
    let claims: Claims = std::array::from_fn(|_| [const { AtomicU64::new(0) }; WIDTH + 3]);
    let lead = |mut leader: Leader<u32>| {
        // Nothing to do: the others are not even told.
        assert!(leader.begin(1, 2..2).next_phase().is_none());
        run_pass(leader.begin(7, 0..2), 1, &claims);
        let before = leader.slot::<u32>(B).to_vec();
        assert_eq!(before[0..2], [cell(7, 0, 0), cell(7, 1, 0)]);
        run_pass(leader.begin(7, 2..3), 1, &claims);
        assert_eq!(leader.slot::<u32>(B)[1], before[1].wrapping_mul(17));
        assert_eq!(leader.slot::<u64>(SUMS)[0], 0);
        leader.slot_mut::<u32>(B).fill(2);
        run_pass(leader.begin(7, 3..4), 1, &claims);
        assert_eq!(leader.slot::<u64>(SUMS)[WIDTH - 1], 2 * ROWS as u64);
    };
    with_pool(3, lead, |mut worker| {
        let mut phases = Vec::new();
        while let Some(mut pass) = worker.next_pass() {
            assert!(pass.job() == 7 && [1, 2].contains(&pass.worker()));
            while let Some(phase) = pass.next_phase() {
                phases.push(phase.index());
                while let Some(item) = phase.claim(1) {
                    run_item(&phase, &item, 7);
                }
                let items = ITEMS[phase.index()];
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
    let run = |mut pass: Pass<'_, u32>| {
        let number = pass.worker() as u32 + 1;
        while let Some(phase) = pass.next_phase() {
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
    with_pool(WORKERS, lead, |mut worker| {
        while let Some(pass) = worker.next_pass() {
            run(pass);
        }
    });
}

#[test]
fn poison_spares_the_fixed_part_only() {
    let fixed_bytes = 130;
    let slots = vec![Span { offset: 192, bytes: 64 }, Span { offset: 4096 - 64, bytes: 64 }];
    let phases = vec![PhaseAccess::default()];
    let sealing = Sealing { fixed_bytes, slots, phases, workers: 1 };
    let mut region = reserve(4096);
    region.span_mut::<u8>(Span { offset: 0, bytes: 130 }).fill(9);
    let (mut leader, _) = region.seal::<()>(sealing).unwrap();
    leader.poison(0xffff_ffff);
    assert_eq!(leader.slot::<u8>(0), [0xff; 64]);
    assert_eq!(leader.slot::<u8>(1), [0xff; 64]);
    let mut pass = leader.begin((), 0..1);
    let phase = pass.next_phase().unwrap();
    assert_eq!(phase.fixed::<u8>(Span { offset: 0, bytes: 130 }), [9; 130]);
}
