//! CPU operators over plain slices; knows nothing of models or files.
//!
//! `dtype`, `decode` and `pack` know the formats; `gemm` multiplies packed panels; `ops` are the
//! float operators; `isa` and `table` are the instruction sets and the choice among them;
//! `peak` measures what they can do. Nothing here allocates. Unsafe code is confined to
//! intrinsics, the shims in `table` and the control word in `float_env`.

pub mod decode;
pub mod dtype;
mod float_env;
pub mod gemm;
pub mod isa;
pub mod math;
pub mod ops;
pub mod pack;
pub mod peak;
pub mod table;

pub use float_env::FloatEnv;
pub use table::{Kernels, NAMES, Op};
