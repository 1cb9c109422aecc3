//! GGUF files, versions 2 and 3: header, metadata, tensor table.
//!
//! Nothing here trusts the file. Opening one copies its header, from the magic to the tensor
//! table, and checks every count, length, type, shape, offset and name in the copy; what remains
//! is a [`Gguf`] whose keys have values and whose tensors lie inside the file, apart from each
//! other and aligned. Keys and values are read from the copy, so that a process that writes to the
//! file can change nothing but tensor data, which stay where they are, in [`FileBytes`]. The
//! reader allocates the copy, the names and two tables, which [`caps`] bounds.
//!
//! The layout is that of `docs/gguf.md` in ggml-org/ggml.

mod bytes;
pub mod caps;
mod cursor;
mod error;
mod file;
pub mod inspect;
mod metadata;
mod names;
mod open;
mod tensor;
pub mod text;
pub mod types;
mod value;

pub use bytes::FileBytes;
pub use error::{Error, KeyError, SplitError, TensorError};
pub use file::Gguf;
pub use metadata::Metadata;
pub use open::open;
pub use tensor::TensorInfo;
pub use value::{Array, Items, Value, ValueType};
