//! Why a file is not a model that can be run.

use crate::gguf;
use std::fmt;

/// Why a file is not a model that can be run.
#[derive(Debug)]
pub enum Fault {
    /// A key is missing or of a wrong type.
    Key(gguf::Fault),
    /// The architecture is none of the supported ones.
    Architecture {
        /// What the file names.
        found: String,
    },
    /// The architecture can be measured but generates nothing here.
    NoDiffusion {
        /// Its name.
        architecture: &'static str,
    },
    /// A value cannot be used.
    Value {
        /// The key.
        key: String,
        /// What the file says.
        found: String,
        /// What is needed.
        need: String,
    },
    /// A feature of the file that is not supported.
    Unsupported {
        /// The key or tensor.
        name: String,
        /// What it asks for.
        found: String,
    },
    /// A tensor is missing.
    MissingTensor {
        /// Its name.
        name: String,
    },
    /// A tensor has the wrong shape.
    Shape {
        /// Its name.
        name: String,
        /// What the configuration says, columns first.
        expected: Vec<usize>,
        /// What the file has.
        found: Vec<u64>,
    },
    /// A tensor's type is not supported.
    Type {
        /// Its name.
        name: String,
        /// The type's name or number.
        found: String,
    },
    /// A tensor's rows do not hold whole blocks of its type.
    Block {
        /// Its name.
        name: String,
        /// Its type.
        dtype: &'static str,
        /// Its columns.
        cols: usize,
        /// Weights of a block.
        block: usize,
    },
    /// A scale, a norm weight or a bias is NaN or infinite.
    NotFinite {
        /// The tensor.
        name: String,
        /// Its row.
        row: usize,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Key(fault) => fault.fmt(f),
            Fault::Architecture { found } => write!(
                f,
                "architecture `{}` is not supported: this runs `llada` and `dream`",
                found.escape_debug()
            ),
            Fault::NoDiffusion { architecture } => write!(
                f,
                "architecture `{architecture}` is no masked-diffusion model: `bench`, `plan` and \
                 `inspect` take it, nothing else does"
            ),
            Fault::Value { key, found, need } => {
                write!(f, "key `{key}` is {found}: it must be {need}")
            }
            Fault::Unsupported { name, found } => {
                write!(f, "`{name}` is {}: not supported", found.escape_debug())
            }
            Fault::MissingTensor { name } => write!(
                f,
                "tensor `{name}` is missing: the file is incomplete or not of this architecture"
            ),
            Fault::Shape { name, expected, found } => {
                write!(f, "tensor `{name}` has shape {found:?}: the metadata asks for {expected:?}")
            }
            Fault::Type { name, found } => write!(
                f,
                "tensor `{name}` has type {found}, which is not supported: requantize to one of {}",
                dllm_cpu::dtype::Dtype::ALL.map(|d| d.name()).join(", ")
            ),
            Fault::Block { name, dtype, cols, block } => {
                write!(f, "tensor `{name}` has {cols} columns: {dtype} needs a multiple of {block}")
            }
            Fault::NotFinite { name, row } => write!(
                f,
                "tensor `{name}`, row {row}: NaN or infinite value or scale; the file is damaged"
            ),
        }
    }
}

impl std::error::Error for Fault {}

impl From<gguf::Fault> for Fault {
    fn from(fault: gguf::Fault) -> Fault {
        Fault::Key(fault)
    }
}
