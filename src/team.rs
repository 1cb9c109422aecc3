//! The worker threads: pinned, asleep between passes, and counting what they must not do.
//!
//! A worker sleeps until the leader begins a step, walks the operator list, and sleeps again. The
//! claim counter and the barrier are the arena's, since the exclusiveness of what it hands out
//! rests on them.

pub mod cpus;

use crossbeam_utils::CachePadded;
use dllm_arena::{Counts, Step, Usage, Worker};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// What engine threads did that a step should not do, summed over threads and passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Heap allocations; zero as well where no counting allocator is installed.
    pub allocations: u64,
    /// Heap frees.
    pub frees: u64,
    /// Page faults without input or output.
    pub minor_faults: u64,
    /// Page faults that read a file.
    pub major_faults: u64,
    /// Times a thread slept.
    pub voluntary_switches: u64,
    /// Times a thread was taken off its CPU.
    pub involuntary_switches: u64,
}

/// One worker's counters, in the order of [`Counters`]; a cache line of its own.
#[derive(Debug, Default)]
pub struct Report(CachePadded<[AtomicU64; 6]>);

impl Report {
    /// Adds what a thread did in a pass.
    pub fn add(&self, counts: Counts, usage: Usage) {
        let values = [
            counts.allocations,
            counts.frees,
            usage.minor_faults,
            usage.major_faults,
            usage.voluntary_switches,
            usage.involuntary_switches,
        ];
        for (sum, value) in self.0.iter().zip(values) {
            // The barrier after the operator orders these with the leader's reading.
            sum.fetch_add(value, Ordering::Relaxed);
        }
    }

    fn reset(&self) {
        self.0.iter().for_each(|sum| sum.store(0, Ordering::Relaxed));
    }
}

/// The threads other than the caller's.
#[derive(Debug)]
pub struct Team {
    threads: Vec<JoinHandle<()>>,
    reports: Arc<[Report]>,
    warnings: Vec<String>,
}

impl Team {
    /// Starts one thread a worker, which calls `work` for each step; worker `i` is pinned to
    /// `cpus[i]` where there is one. Pinning that the system refuses is a warning.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn start<J: Copy + Send + Sync + 'static>(
        workers: Vec<Worker<J>>,
        cpus: &[usize],
        work: impl Fn(Step<'_, J>, &Report) + Clone + Send + 'static,
    ) -> io::Result<Team> {
        let reports: Arc<[Report]> = (0..=workers.len()).map(|_| Report::default()).collect();
        let mut team = Team { threads: Vec::new(), reports, warnings: Vec::new() };
        let (sender, pinned) = mpsc::channel();
        // Threads first, workers when all are there: a worker that no thread takes up breaks the
        // crew, and threads that get none just end.
        let mut seats = Vec::new();
        for number in 1..=workers.len() {
            let (seat, taken) = mpsc::channel::<Worker<J>>();
            seats.push(seat);
            let (work, reports) = (work.clone(), Arc::clone(&team.reports));
            let (cpu, sender) = (cpus.get(number).copied(), sender.clone());
            let body = move || {
                let refused = cpu.filter(|cpu| !cpus::pin(*cpu));
                // The receiver outlives the start-up, which is all that is waited for.
                let _ = sender.send(refused);
                drop(sender);
                let Ok(mut worker) = taken.recv() else { return };
                while let Some(step) = worker.next_step() {
                    work(step, &reports[number]);
                }
            };
            let name = format!("dllm-worker-{number}");
            match std::thread::Builder::new().name(name).spawn(body) {
                Ok(thread) => team.threads.push(thread),
                Err(error) => {
                    drop(seats);
                    team.join();
                    return Err(error);
                }
            }
        }
        drop(sender);
        let refused = pinned.iter().flatten();
        team.warnings.extend(refused.map(|cpu| format!("cannot pin a thread to CPU {cpu}")));
        for (seat, worker) in seats.into_iter().zip(workers) {
            // Its thread waits for it.
            let _ = seat.send(worker);
        }
        Ok(team)
    }

    /// Where worker `number` counts.
    pub fn report(&self, number: usize) -> &Report {
        &self.reports[number]
    }

    /// The sums over all workers since the last reset.
    pub fn counters(&self) -> Counters {
        let sum = |at: usize| self.reports.iter().map(|r| r.0[at].load(Ordering::Relaxed)).sum();
        Counters {
            allocations: sum(0),
            frees: sum(1),
            minor_faults: sum(2),
            major_faults: sum(3),
            voluntary_switches: sum(4),
            involuntary_switches: sum(5),
        }
    }

    /// Starts the sums anew; between steps.
    pub fn reset_counters(&self) {
        self.reports.iter().for_each(Report::reset);
    }

    /// What went wrong at the start without preventing it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Waits for the threads, which end when their leader is gone.
    pub fn join(self) {
        for thread in self.threads {
            // A worker's panic has already reached the leader through the barrier.
            let _ = thread.join();
        }
    }
}
