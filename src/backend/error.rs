//! Why no model can be loaded for a device.

use crate::model;
use dllm_arena::region::ReserveError;
use dllm_cpu::Kernels;

/// Why no model can be loaded for a device.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A limit is zero or beyond its maximum.
    #[error("`{name}` is {asked}; it must be between 1 and {max}")]
    Limit {
        /// Which limit.
        name: &'static str,
        /// What was asked for.
        asked: usize,
        /// The largest possible value.
        max: usize,
    },
    /// The sizes do not fit this machine's address space.
    #[error("the planned buffers exceed the address space")]
    TooLarge,
    /// A weight cannot be used.
    #[error(transparent)]
    Model(#[from] model::Error),
    /// The arena does not fit, or the system refuses it.
    #[error(transparent)]
    Reserve(#[from] ReserveError),
    /// The CPU or this version lacks an instruction set.
    #[error("`{origin}` asks for {name:?}: this CPU has {}", isas())]
    Isa {
        /// What was asked for.
        name: String,
        /// Where: the field of the options or the environment variable.
        origin: &'static str,
    },
    /// No worker thread can be started.
    #[error("cannot start a worker thread: {0}")]
    Threads(std::io::Error),
}

fn isas() -> String {
    Kernels::all().map(|kernels| kernels.name()).collect::<Vec<_>>().join(", ")
}
