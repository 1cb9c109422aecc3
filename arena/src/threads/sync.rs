//! The atomics, the cell and the futex that the thread pool is built on: the real ones, or, under
//! `--cfg loom`, the model checker's.

#[cfg(not(loom))]
pub(crate) use real::*;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use modelled::*;

#[cfg(not(loom))]
mod real {
    use std::sync::atomic::AtomicU32;

    /// A cell with the model checker's interface.
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }

    /// A word that threads can park on.
    pub(crate) struct Futex {
        pub(crate) word: AtomicU32,
    }

    impl Futex {
        pub(crate) fn new(value: u32) -> Self {
            Self { word: AtomicU32::new(value) }
        }

        /// Parks while the word is `expected`; may return early.
        pub(crate) fn wait(&self, expected: u32) {
            atomic_wait::wait(&self.word, expected);
        }

        pub(crate) fn wake_all(&self) {
            atomic_wait::wake_all(&raw const self.word);
        }
    }
}

#[cfg(loom)]
mod modelled {
    use super::{AtomicU32, Ordering};
    use std::sync::PoisonError;

    /// A futex as the kernel keeps its promise: the comparison and the falling asleep are one step
    /// under the lock that waking takes too. A lost wake-up shows as a deadlock.
    pub(crate) struct Futex {
        pub(crate) word: AtomicU32,
        lock: loom::sync::Mutex<()>,
        woken: loom::sync::Condvar,
    }

    impl Futex {
        pub(crate) fn new(value: u32) -> Self {
            Self {
                word: AtomicU32::new(value),
                lock: loom::sync::Mutex::new(()),
                woken: loom::sync::Condvar::new(),
            }
        }

        pub(crate) fn wait(&self, expected: u32) {
            let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            if self.word.load(Ordering::Relaxed) == expected {
                let woken = self.woken.wait(guard);
                drop(woken.unwrap_or_else(PoisonError::into_inner));
            }
        }

        pub(crate) fn wake_all(&self) {
            let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.woken.notify_all();
        }
    }
}
