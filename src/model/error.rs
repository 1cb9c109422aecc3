//! Why a file is not a model that can be run.

use crate::gguf;
use dllm_cpu::dtype::Dtype;

/// Why a file is not a model that can be run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Error {
    /// A key is missing or of a wrong type.
    #[error(transparent)]
    Key(#[from] gguf::Error),
    /// The architecture is none of the supported ones.
    #[error("architecture {found:?} is not supported: this runs llada and dream")]
    Architecture { found: String },
    /// The architecture can be measured but generates nothing here.
    #[error(
        "architecture {architecture:?} is no masked-diffusion model: `bench`, `plan` and \
         `inspect` take it, nothing else does"
    )]
    NoDiffusion { architecture: &'static str },
    /// A value cannot be used.
    #[error("key `{key}` is {found}: it must be {need}")]
    Value { key: String, found: String, need: String },
    /// A feature of the file that is not supported.
    #[error("`{name}` is {}: not supported", found.escape_debug())]
    Unsupported { name: String, found: String },
    /// A tensor is missing.
    #[error("tensor `{name}` is missing: the file is incomplete or not of this architecture")]
    MissingTensor { name: String },
    /// A tensor has the wrong shape; both with the columns first.
    #[error("tensor `{name}` has shape {found:?}: the metadata asks for {expected:?}")]
    Shape { name: String, expected: Vec<usize>, found: Vec<u64> },
    /// A tensor's type is not supported.
    #[error(
        "tensor `{name}` has type {found}, which is not supported: requantize to one of {}",
        Dtype::ALL.map(|d| d.name()).join(", ")
    )]
    Type { name: String, found: String },
    /// A tensor's rows do not hold whole blocks of its type.
    #[error("tensor `{name}` has {cols} columns: {dtype} needs a multiple of {block}")]
    Block { name: String, dtype: &'static str, cols: usize, block: usize },
    /// A scale, a norm weight or a bias is NaN or infinite.
    #[error("tensor `{name}`, row {row}: NaN or infinite value or scale; the file is damaged")]
    NotFinite { name: String, row: usize },
}
