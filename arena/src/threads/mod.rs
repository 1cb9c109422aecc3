//! The threads that run phases over a sealed region, and what they wait for.

pub mod barrier;
pub mod phase;
pub mod pool;
mod shared;
mod sync;
