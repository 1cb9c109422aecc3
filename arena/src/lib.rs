//! All memory of dllm-rt and the unsafe code that goes with it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`layout`] | sizes and live ranges to offsets; pure |
//! | [`region`] | the one anonymous mapping, filled at load |
//! | [`pages`] | its pages: present, locked, huge |
//! | [`access`] | who may touch which slot in which phase: the table that a region is sealed with |
//! | [`crew`] | leader, workers and steps over a sealed region |
//! | [`view`] | a phase: shared reads, this worker's scratch, claimed items and their parts |
//! | [`barrier`] | the signal and the barrier that the crew is built on |
//! | [`file`](mod@file) | a model file, mapped read-only |
//! | [`memory`] | how much memory may be used |
//! | [`meta`] | names that live as long as the model |
//! | [`count`] | a counting allocator, and the threads' own usage |
//!
//! What may not live here: anything that knows of models, files' contents, operators or samplers.
//! This crate depends on none of the others, and nothing outside it and the kernels is unsafe.
//!
//! Three states, three types: a [`Region`] is *loading* (one owner, anything goes), a
//! [`Leader`] with its [`Worker`]s is *sealed*, and a [`Step`] is *running*.

pub mod access;
pub mod barrier;
pub mod count;
pub mod crew;
pub mod file;
pub mod layout;
pub mod memory;
pub mod meta;
pub mod pages;
pub mod region;
mod shared;
mod sync;
pub mod view;

pub use access::{Partition, PhaseAccess, SealError, Sealing};
pub use count::{CountingAllocator, Counts, Usage};
pub use crew::{Leader, Step, Worker};
pub use file::{FileStamp, MappedFile};
pub use layout::{ALIGN, Layout, Request, Span, place};
pub use memory::{available_bytes, lock_process};
pub use meta::{Meta, MetaFull, Name};
pub use pages::populate;
pub use region::{Lock, Options, Region, ReserveError};
pub use view::{Item, Phase, View};
