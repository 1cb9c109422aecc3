//! The thread pool: workers that are pinned, asleep between passes, and counting what they must not
//! do.
//!
//! A worker sleeps until a pass begins, walks its phases, and sleeps again. The claim counter and
//! the barrier are the arena's, since the exclusiveness of what it hands out rests on them.

pub mod cpus;

use crossbeam_utils::CachePadded;
use dllm_arena::count::{thread_counts, thread_usage};
use dllm_arena::{Counts, Leader, Pass, Phase, Usage, Worker};
use dllm_cpu::FloatEnv;
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

/// What workers are told of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Job<J> {
    job: J,
    /// Whether to count what workers do that they should not; it costs two system calls a worker.
    counts: bool,
    last_phase: usize,
}

/// One worker's counters, in the order of [`Counters`]; a cache line of its own.
#[derive(Debug, Default)]
struct Report(CachePadded<[AtomicU64; 6]>);

impl Report {
    /// Adds what a thread did in a pass.
    fn add(&self, counts: Counts, usage: Usage) {
        let values = [
            counts.allocations,
            counts.frees,
            usage.minor_faults,
            usage.major_faults,
            usage.voluntary_switches,
            usage.involuntary_switches,
        ];
        for (sum, value) in self.0.iter().zip(values) {
            // The barrier after the phase orders these with the caller's reading.
            sum.fetch_add(value, Ordering::Relaxed);
        }
    }
}

/// The workers, the caller of [`ThreadPool::run`] among them.
pub struct ThreadPool<J: Copy + Send + Sync> {
    /// Dropped before the threads, which end when it is gone.
    leader: Leader<Job<J>>,
    _threads: Threads,
    reports: Arc<[Report]>,
    warnings: Vec<String>,
    counts: bool,
}

/// The threads other than the caller's, waited for at the end.
#[derive(Debug)]
struct Threads(Vec<JoinHandle<()>>);

impl Drop for Threads {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            // A worker's panic has already reached the leader through the barrier.
            let _ = thread.join();
        }
    }
}

impl<J: Copy + Send + Sync + 'static> ThreadPool<J> {
    /// Starts one thread a worker, which calls `work` for each phase of a pass; worker `i` is
    /// pinned to `cpus[i]` where there is one. Pinning that the system refuses is a warning.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn start(
        leader: Leader<Job<J>>,
        workers: Vec<Worker<Job<J>>>,
        cpus: &[usize],
        work: impl Fn(&Phase<'_>, &J) + Clone + Send + 'static,
    ) -> io::Result<ThreadPool<J>> {
        let reports: Arc<[Report]> = (0..=workers.len()).map(|_| Report::default()).collect();
        let (sender, pinned) = mpsc::channel();
        // All threads are started before any gets its worker: a worker without a thread breaks the
        // pool, and a thread without one just ends. The senders are dropped before the threads are
        // joined.
        let (mut threads, mut senders) = (Threads(Vec::new()), Vec::new());
        for number in 1..=workers.len() {
            let (hand_over, received) = mpsc::channel::<Worker<Job<J>>>();
            senders.push(hand_over);
            let (work, reports) = (work.clone(), Arc::clone(&reports));
            let (cpu, sender) = (cpus.get(number).copied(), sender.clone());
            let body = move || {
                let refused = cpu.filter(|cpu| !cpus::pin(*cpu));
                // The receiver outlives the start-up, which is all that is waited for.
                let _ = sender.send(refused);
                drop(sender);
                let Ok(mut worker) = received.recv() else { return };
                while let Some(pass) = worker.next_pass() {
                    walk(pass, &reports[number], &work, |_| ());
                }
            };
            let name = format!("dllm-worker-{number}");
            threads.0.push(std::thread::Builder::new().name(name).spawn(body)?);
        }
        drop(sender);
        let mut refused: Vec<usize> = pinned.iter().flatten().collect();
        refused.sort_unstable();
        let warning = || format!("cannot pin threads to CPUs {}", cpus::shown_list(&refused));
        let warnings = (!refused.is_empty()).then(warning).into_iter().collect();
        for (hand_over, worker) in senders.into_iter().zip(workers) {
            // Its thread waits for it.
            let _ = hand_over.send(worker);
        }
        Ok(ThreadPool { leader, _threads: threads, reports, warnings, counts: false })
    }

    /// Runs the first `phases` phases on all workers, this thread among them, which calls `work`;
    /// `after` is called when all workers have finished a phase.
    pub fn run(
        &mut self,
        job: J,
        phases: usize,
        work: impl Fn(&Phase<'_>, &J),
        after: impl FnMut(usize),
    ) {
        let job = Job { job, counts: self.counts, last_phase: phases.saturating_sub(1) };
        walk(self.leader.begin(job, 0..phases), &self.reports[0], &work, after);
    }

    /// Who owns the memory between passes.
    pub fn leader(&self) -> &Leader<Job<J>> {
        &self.leader
    }

    /// The same, to change what is in it.
    pub fn leader_mut(&mut self) -> &mut Leader<Job<J>> {
        &mut self.leader
    }

    /// Whether [`ThreadPool::counters`] counts. Off at first.
    pub fn set_counting(&mut self, on: bool) {
        self.counts = on;
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

    /// Starts the sums anew; between passes.
    pub fn reset_counters(&self) {
        let sums = self.reports.iter().flat_map(|report| report.0.iter());
        sums.for_each(|sum| sum.store(0, Ordering::Relaxed));
    }

    /// What went wrong at the start without preventing it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// One worker's way through a pass.
fn walk<J: Copy>(
    mut pass: Pass<'_, Job<J>>,
    report: &Report,
    work: &impl Fn(&Phase<'_>, &J),
    mut after: impl FnMut(usize),
) {
    let _env = FloatEnv::enter();
    let Job { job, counts, last_phase } = pass.job();
    let before = counts.then(|| (thread_counts(), thread_usage()));
    while let Some(phase) = pass.next_phase() {
        let index = phase.index();
        work(&phase, &job);
        if let Some((counts, usage)) = before
            && index == last_phase
        {
            // Before the barrier, so that those who pass it read this pass's counts.
            report.add(thread_counts().since(&counts), thread_usage().since(&usage));
        }
        drop(phase);
        after(index);
    }
}
