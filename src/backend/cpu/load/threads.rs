//! The threads of a load: they claim tasks in order while the caller waits and reports progress.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// How often the caller reports while it waits: smooth for an eye, nothing beside the work.
const PROGRESS_EVERY: Duration = Duration::from_millis(50);

/// How many threads a load may use and what each does first.
#[derive(Clone, Copy)]
pub struct Threads<'a> {
    /// How many.
    pub count: usize,
    /// Called on each with its number, to pin it.
    pub enter: &'a (dyn Fn(usize) + Sync),
}

impl Threads<'_> {
    /// Runs `work`, which returns the bytes it has dealt with, on every task and something of the
    /// thread's own. `progress` is called with the bytes so far, now and then and at the end.
    ///
    /// # Errors
    /// That of the first task, in their order, whose work fails; the tasks after it may be left.
    pub fn run<T: Send, S: Default, E: Send>(
        &self,
        tasks: Vec<T>,
        work: impl Fn(&mut S, T) -> Result<usize, E> + Sync,
        progress: &mut dyn FnMut(usize),
    ) -> Result<(), E> {
        let queue = Mutex::new(Queue { tasks: tasks.into_iter().enumerate(), fault: None });
        let done_bytes = AtomicUsize::new(0);
        // A function of its own, so that the lock is not held while the task is worked on.
        let next = || lock(&queue).next();
        let claim_all = || {
            let mut own = S::default();
            while let Some((at, task)) = next() {
                match work(&mut own, task) {
                    Ok(bytes) => _ = done_bytes.fetch_add(bytes, Ordering::Relaxed),
                    Err(fault) => lock(&queue).fail(at, fault),
                }
            }
        };
        let running = AtomicUsize::new(0);
        let caller = thread::current();
        thread::scope(|scope| {
            for number in 0..self.count {
                running.fetch_add(1, Ordering::Relaxed);
                let leaving = Leaving { running: &running, caller: caller.clone() };
                let (enter, claim_all) = (self.enter, &claim_all);
                let body = move || {
                    let _leaving = leaving;
                    enter(number);
                    claim_all();
                };
                // Where the system starts no more threads, those that there are do the work.
                let _ = thread::Builder::new().spawn_scoped(scope, body);
            }
            while running.load(Ordering::Acquire) > 0 {
                progress(done_bytes.load(Ordering::Relaxed));
                thread::park_timeout(PROGRESS_EVERY);
            }
            claim_all();
        });
        progress(done_bytes.into_inner());
        let queue = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        queue.fault.map_or(Ok(()), |(_, fault)| Err(fault))
    }
}

/// What is left to do, and what has failed.
struct Queue<T, E> {
    tasks: std::iter::Enumerate<std::vec::IntoIter<T>>,
    fault: Option<(usize, E)>,
}

impl<T, E> Queue<T, E> {
    /// The next task and its number; none once one has failed. All before that one are claimed by
    /// then, so the first to fail is found whatever the timing.
    fn next(&mut self) -> Option<(usize, T)> {
        if self.fault.is_some() { None } else { self.tasks.next() }
    }

    fn fail(&mut self, at: usize, fault: E) {
        if self.fault.as_ref().is_none_or(|(first, _)| at < *first) {
            self.fault = Some((at, fault));
        }
    }
}

/// A poisoned lock means that another thread panicked, which the scope passes on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the caller that a thread is done, also where it panics or was never started.
struct Leaving<'a> {
    running: &'a AtomicUsize,
    caller: Thread,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::Release);
        self.caller.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(
        count: usize,
        tasks: Vec<usize>,
        work: impl Fn(usize) -> Result<usize, usize> + Sync,
    ) -> (Result<(), usize>, Vec<usize>) {
        let mut reports = Vec::new();
        let threads = Threads { count, enter: &|_| () };
        let result =
            threads.run(tasks, |(): &mut (), task| work(task), &mut |bytes| reports.push(bytes));
        (result, reports)
    }

    #[test]
    fn every_task_is_done_once_by_any_number_of_threads() {
        for count in [0, 1, 2, 100] {
            let counts: Vec<AtomicUsize> = (0..1000).map(|_| AtomicUsize::new(0)).collect();
            let work = |task: usize| {
                counts[task].fetch_add(1, Ordering::Relaxed);
                Ok(task)
            };
            let (result, reports) = run(count, (0..1000).collect(), work);
            assert_eq!(result, Ok(()));
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{count}");
            assert!(reports.is_sorted());
            assert_eq!(reports.last(), Some(&(999 * 1000 / 2)));
        }
        assert_eq!(run(2, vec![], Ok).1.last(), Some(&0));
    }

    #[test]
    fn the_first_fault_in_the_order_of_tasks_is_returned() {
        for _ in 0..20 {
            let work = |task: usize| {
                // The earlier of the two takes longer.
                if task == 10 {
                    thread::sleep(Duration::from_millis(2));
                }
                if task >= 10 { Err(task) } else { Ok(0) }
            };
            assert_eq!(run(3, (0..100).collect(), work).0, Err(10));
        }
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_is_passed_on() {
        let _ = run(2, (0..4).collect(), |task| if task == 1 { panic!("task") } else { Ok(0) });
    }
}
