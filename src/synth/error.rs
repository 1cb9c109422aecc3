//! Why a file of some sizes cannot be.

use dllm_cpu::dtype::Dtype;

/// Why a file of some sizes cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Error {
    /// A size is out of its range.
    #[error("{name} is {found}: it must be {need}")]
    Size { name: &'static str, found: usize, need: String },
    /// The rows of a tensor hold no whole number of blocks of its type.
    #[error("`{tensor}` would have {cols} columns: {dtype} needs a multiple of {block}")]
    Block { tensor: String, cols: usize, dtype: &'static str, block: usize },
    /// More bytes than can be counted.
    #[error("a file of these sizes exceeds the address space")]
    TooLarge,
    /// Unknown types.
    #[error(
        "type `{}` is unknown: there are Q4_K_M, {}",
        found.escape_debug(),
        Dtype::ALL.map(|d| d.name()).join(", ")
    )]
    Types { found: String },
}
