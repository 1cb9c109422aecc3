//! Threads without work use no CPU. Alone in its program, since it measures the whole process.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use dllm_arena::{Lock, Options, PhaseAccess, Region, Sealing};
use std::time::Duration;

/// CPU time of this process so far, in the kernel's ticks of 10 ms.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name in parentheses may hold spaces; user and system time are fields 14 and 15.
    let after_name = stat.rsplit_once(')').unwrap().1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn waiting_costs_nothing() {
    let options = Options { huge_pages: false, lock: Lock::Off };
    let region = Region::reserve(4096, &options).unwrap();
    let phases = vec![PhaseAccess::default()];
    let sealing = Sealing { phases, workers: 5, ..Sealing::default() };
    let (mut leader, others) = region.seal::<()>(sealing).unwrap();
    std::thread::scope(|scope| {
        for mut worker in others {
            scope.spawn(move || {
                while let Some(mut pass) = worker.next_pass() {
                    while pass.next_phase().is_some() {}
                }
            });
        }
        // Four workers wait for a pass, then for the leader to end a phase.
        std::thread::sleep(Duration::from_millis(100));
        let before = cpu_ticks();
        std::thread::sleep(Duration::from_millis(500));
        let mut pass = leader.begin((), 0..1);
        let phase = pass.next_phase();
        std::thread::sleep(Duration::from_millis(500));
        drop(phase);
        drop(pass);
        drop(leader);
        let ticks = cpu_ticks() - before;
        // Four spinning threads on one core would take 100.
        assert!(ticks <= 5, "{ticks} ticks of CPU in a second of waiting");
    });
}
