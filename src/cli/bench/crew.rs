//! Threads that start together, each pinned to its CPU: how long until the last one is done.

use crossbeam_utils::Backoff;
use dllm_rt::team::cpus;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// Runs each job on a thread of its own, pinned to the CPU of the same place in `pins` where there
/// is one. Returns the seconds from the first start to the last end.
///
/// # Panics
/// Where a job panics, or the system starts no more threads.
pub fn seconds<J: FnOnce() + Send>(pins: &[usize], jobs: impl IntoIterator<Item = J>) -> f64 {
    let jobs: Vec<J> = jobs.into_iter().collect();
    let missing = AtomicUsize::new(jobs.len());
    let missing = &missing;
    thread::scope(|scope| {
        let run = |(number, job): (usize, J)| {
            let pin = pins.get(number).copied();
            scope.spawn(move || {
                if let Some(cpu) = pin {
                    // Refused where the process may not use it; it is then where it is.
                    let _ = cpus::pin(cpu);
                }
                missing.fetch_sub(1, Ordering::AcqRel);
                let backoff = Backoff::new();
                while missing.load(Ordering::Acquire) > 0 {
                    backoff.snooze();
                }
                let start = Instant::now();
                job();
                (start, Instant::now())
            })
        };
        let threads: Vec<_> = jobs.into_iter().enumerate().map(run).collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(times) => times,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let times: Vec<(Instant, Instant)> = joined.collect();
        let first = times.iter().map(|(start, _)| *start).min();
        let last = times.iter().map(|(_, end)| *end).max();
        match (first, last) {
            (Some(first), Some(last)) => last.duration_since(first).as_secs_f64(),
            _ => 0.0,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_last_thread_counts() {
        let sleep = |ms| move || thread::sleep(Duration::from_millis(ms));
        let seconds = seconds(&[], [sleep(1), sleep(60), sleep(1)]);
        assert!((0.06..10.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn more_threads_than_cpus_still_start() {
        let done = AtomicUsize::new(0);
        let job = || {
            done.fetch_add(1, Ordering::Relaxed);
        };
        seconds(&[0], (0..33).map(|_| job));
        assert_eq!(done.into_inner(), 33);
    }
}
