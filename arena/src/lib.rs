//! All memory of dllm-rt and the unsafe code that goes with it.
//!
//! | folder | file | what it holds |
//! |---|---|---|
//! | `threads` | `pool` | leader, workers and passes over a sealed region |
//! | | `phase` | a phase: shared reads, a worker's scratch, the items that it claims |
//! | | `shared` | what all workers share |
//! | | [`barrier`] | the signal and the barrier that the thread pool is built on |
//! | | `sync` | atomics and futex: the real ones or the model checker's |
//! | `memory` | [`layout`] | sizes and live ranges to offsets; pure |
//! | | [`access`] | who may touch which slot in which phase; pure |
//! | | [`region`] | the one anonymous mapping, filled at load |
//! | | `view` | the same once it is full: pointers, the fixed part, an item's part of a slot |
//! | | `table` | byte strings that live as long as the model |
//! | `os` | [`file`](mod@file) | a model file, mapped read-only |
//! | | [`pages`] | pages made present, locked, huge |
//! | | `available` | how much memory may be used, and how amounts are written |
//! | | [`count`] | a counting allocator, and the threads' own usage |
//!
//! Folders and files name what stands below them only.
//! What may not live here: anything that knows of models, files' contents, operators or samplers.
//! This crate depends on none of the others, and nothing outside it and the kernels is unsafe.
//!
//! Three states, three types: a [`Region`] is *loading* (one owner, anything goes), a
//! [`Leader`] with its [`Worker`]s is *sealed*, and a [`Pass`] is *running*.

mod memory;
mod os;
mod threads;

pub use memory::access::{self, Partition, PartitionError, PhaseAccess, SealError, Sealing};
pub use memory::layout::{self, ALIGN, Layout, Request, Span, place};
pub use memory::region::{self, Options, Region, ReserveError};
pub use memory::table::{ByteTable, TableFull};
pub use memory::view::View;
pub use os::available::{Bytes, available_bytes, lock_process};
pub use os::count::{self, CountingAllocator, Counts, Usage};
pub use os::file::{self, MappedFile};
pub use os::pages::{self, Lock, prefault};
pub use threads::barrier;
pub use threads::phase::{Item, Phase};
pub use threads::pool::{Leader, Pass, Worker};
