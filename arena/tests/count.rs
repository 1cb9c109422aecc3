//! The counting allocator, installed for this whole program; so no test harness runs beside it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use dllm_arena::count::{
    CountingAllocator, Counts, installed, live_bytes, peak_bytes, peak_rss_bytes, reset_peak,
    thread_counts, thread_usage,
};
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

fn main() {
    assert!(installed());
    each_way_of_allocating_is_counted();
    threads_are_counted_apart();
    the_last_destructor_of_a_thread_may_allocate();
    live_and_peak_follow_the_bytes();
    faults_and_switches_are_seen();
    println!("count: 5 checks passed");
}

fn counted(work: impl FnOnce()) -> (u64, u64) {
    let before = thread_counts();
    work();
    let Counts { allocations, frees } = thread_counts().since(&before);
    (allocations, frees)
}

fn each_way_of_allocating_is_counted() {
    assert_eq!(counted(|| {}), (0, 0));
    assert_eq!(counted(|| drop(black_box(Box::new(1)))), (1, 1));
    assert_eq!(counted(|| drop(black_box(vec![0u8; 5000]))), (1, 1));
    let mut grown = Vec::<u8>::with_capacity(10);
    grown.push(1);
    assert_eq!(counted(|| grown.reserve_exact(1000)), (1, 1));
    assert_eq!(counted(|| std::mem::forget(black_box(grown))), (0, 0));
}

fn threads_are_counted_apart() {
    let worker = || counted(|| (0..100).for_each(|at| drop(black_box(Box::new(at)))));
    let before = thread_counts();
    let in_thread = std::thread::scope(|scope| scope.spawn(worker).join().unwrap());
    assert_eq!(in_thread, (100, 100));
    assert!(thread_counts().since(&before).allocations < 100);
}

/// Allocates when its thread ends.
struct Late;

impl Drop for Late {
    fn drop(&mut self) {
        assert_eq!(counted(|| drop(black_box(vec![1u8; 100]))), (1, 1));
    }
}

fn the_last_destructor_of_a_thread_may_allocate() {
    thread_local!(static LATE: Late = const { Late });
    std::thread::spawn(|| LATE.with(|_| ())).join().unwrap();
}

fn live_and_peak_follow_the_bytes() {
    const BIG: usize = 10 << 20;
    let before = live_bytes();
    reset_peak();
    assert_eq!(peak_bytes(), before);
    let mut block: Vec<u8> = black_box(Vec::with_capacity(BIG));
    assert_eq!(live_bytes(), before + BIG);
    block.reserve_exact(2 * BIG);
    assert_eq!(live_bytes(), before + 2 * BIG);
    drop(block);
    assert_eq!(live_bytes(), before);
    // While it grew, both blocks may have been there.
    assert_eq!(peak_bytes(), before + 3 * BIG);
    reset_peak();
    assert_eq!(peak_bytes(), before);
}

fn faults_and_switches_are_seen() {
    const PAGES: usize = 256;
    let before = thread_usage();
    let mut block = black_box(vec![0u8; PAGES * 4096]);
    for page in block.chunks_mut(4096) {
        page[0] = 1;
    }
    black_box(&block);
    std::thread::sleep(std::time::Duration::from_millis(2));
    let usage = thread_usage().since(&before);
    // Huge pages may serve many at once, so only that there are any.
    assert!(usage.minor_faults > 0, "{usage:?}");
    assert!(usage.voluntary_switches > 0, "{usage:?}");
    assert!(peak_rss_bytes() > (PAGES * 4096) as u64);
}
