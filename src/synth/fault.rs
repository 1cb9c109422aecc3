//! Why a file of some sizes cannot be.

use std::fmt;

/// Why a file of some sizes cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A size is out of its range.
    Size {
        /// Which.
        name: &'static str,
        /// What was asked for.
        found: usize,
        /// What it must be.
        need: String,
    },
    /// The rows of a tensor hold no whole number of blocks of its type.
    Block {
        /// The tensor.
        tensor: String,
        /// Its columns.
        cols: usize,
        /// Its type.
        dtype: &'static str,
        /// Weights of a block.
        block: usize,
    },
    /// More bytes than can be counted.
    TooLarge,
    /// Types that nobody knows.
    Types {
        /// What was asked for.
        found: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Size { name, found, need } => write!(f, "{name} is {found}: it must be {need}"),
            Fault::Block { tensor, cols, dtype, block } => write!(
                f,
                "`{tensor}` would have {cols} columns: {dtype} needs a multiple of {block}"
            ),
            Fault::TooLarge => f.write_str("a file of these sizes exceeds the address space"),
            Fault::Types { found } => write!(
                f,
                "type `{}` is unknown: there are Q4_K_M, {}",
                found.escape_debug(),
                dllm_cpu::dtype::Dtype::ALL.map(|d| d.name()).join(", ")
            ),
        }
    }
}

impl std::error::Error for Fault {}
