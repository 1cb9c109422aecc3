//! What can be wrong with a GGUF file: one variant per cause.

use std::path::Path;

use super::text::{quoted, quoted_whole};
use super::{caps, types};

/// Why a GGUF file was refused, or why a key or tensor of it could not be had.
///
/// `Display` names the key, tensor or byte offset and what would fix it. What comes from the file
/// is escaped and shortened there, so that it is safe on a terminal.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Error {
    /// The file or part at `path` could not be read at all; `cause` is the system's reason.
    #[error("cannot read {}: {cause}", quoted_whole(path))]
    Io { path: String, cause: String },
    /// `error` was found in the file `path`.
    #[error("{}: {error}", quoted_whole(path))]
    InFile { path: String, error: Box<Error> },
    /// `error` was found in one of several parts given as bytes: `part` counts from 0.
    #[error("part {part}: {error}")]
    InPart { part: usize, error: Box<Error> },
    /// The file does not start with `GGUF` but with `found`.
    #[error(
        "not a GGUF file: it starts with \"{}\", not \"GGUF\"; convert the model to GGUF",
        found.escape_ascii()
    )]
    Magic { found: [u8; 4] },
    /// The file is of another kind, which is often met in a GGUF file's place.
    #[error("not a GGUF file but {kind}; {advice}")]
    OtherKind { kind: &'static str, advice: &'static str },
    /// The file's numbers have their bytes the other way round.
    #[error(
        "big-endian GGUF file: only little-endian files are read; convert it with \
         gguf_convert_endian.py of the gguf package"
    )]
    BigEndian,
    /// A version of the format that is not read here.
    #[error(
        "GGUF version {found}: versions 2 and 3 are read; convert the model again with a current \
         converter"
    )]
    Version { found: u32 },
    /// The file ends inside `what`, which starts at byte `at` of the file and `needs` bytes, of
    /// which the file `has` fewer.
    #[error(
        "the file ends inside the {what} at byte {at}: it needs {needs} bytes, {has} are there; \
         copy or download the file again"
    )]
    Truncated { what: String, at: usize, needs: u64, has: u64 },
    /// A count or length, at byte `at` of the file, above its cap in [`caps`].
    #[error("the {what} at byte {at} is {found}; at most {max} is accepted")]
    TooLarge { what: String, at: usize, found: u64, max: u64 },
    /// A key's or tensor's name that is empty or not UTF-8; its length is at byte `at`.
    #[error("the {what} at byte {at} is empty or not UTF-8; the file is damaged")]
    Name { what: String, at: usize },
    /// Something about one metadata key.
    #[error("the key {} {error}", quoted(key))]
    Key { key: String, error: KeyError },
    /// Something about one tensor.
    #[error("the tensor {} {error}", quoted(tensor))]
    Tensor { tensor: String, error: TensorError },
    /// The parts of a split file do not make one model.
    #[error(transparent)]
    Split(#[from] SplitError),
}

/// What is wrong with a metadata key.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum KeyError {
    /// It occurs twice.
    #[error("occurs twice")]
    Duplicate,
    /// It is needed and not there.
    #[error("is missing; convert the model again with a current converter")]
    Missing,
    /// Its value has another type than the one needed; both with an article.
    #[error("holds {found}; {wanted} is needed")]
    Type { wanted: &'static str, found: String },
    /// Its integer does not fit what it is used for.
    #[error("is {found}; {wanted} is needed")]
    Range { found: i128, wanted: &'static str },
    /// An item of its array, `index` counting from 0, does not fit what it is used for.
    #[error("holds {found} as item {index}; {wanted} is needed")]
    ItemRange { index: usize, found: i128, wanted: &'static str },
    /// Its value has a type number that GGUF does not define.
    #[error("has value type {id}, which GGUF does not define (0 to 12)")]
    TypeUnknown { id: u32 },
    /// A boolean in it is neither 0 nor 1.
    #[error("holds a boolean of value {found}; 0 or 1 is needed")]
    Bool { found: u8 },
    /// Its string is not UTF-8.
    #[error("is not valid UTF-8")]
    Utf8,
    /// An item of its array of strings, `index` counting from 0, is not UTF-8.
    #[error("is not valid UTF-8 in item {index}")]
    ItemUtf8 { index: usize },
    /// It nests arrays deeper than [`caps::ARRAY_DEPTH_MAX`].
    #[error("nests arrays deeper than {}", caps::ARRAY_DEPTH_MAX)]
    ArrayDepth,
    /// It is `general.alignment` and no power of two from 8 to [`caps::ALIGNMENT_MAX`].
    #[error(
        "is {found}; a power of two from {} to {} is needed",
        caps::ALIGNMENT_MIN,
        caps::ALIGNMENT_MAX
    )]
    Alignment { found: u32 },
}

/// What is wrong with a tensor.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum TensorError {
    /// Two tensors have this name.
    #[error("occurs twice")]
    Duplicate,
    /// It has no dimension or more than [`caps::DIMS_MAX`].
    #[error("has {found} dimensions; 1 to {} are read", caps::DIMS_MAX)]
    Dims { found: u32 },
    /// A dimension of length zero: `axis` counts from 0, fastest first.
    #[error("has length 0 in dimension {axis}")]
    DimZero { axis: usize },
    /// Its elements or bytes exceed 64 bits; dimensions fastest first, unused ones 1.
    #[error("has the shape {shape:?}, which exceeds 64 bits")]
    ShapeOverflow { shape: [u64; 4] },
    /// Its type number is not one of [`types`].
    #[error(
        "has type {id}, which ggml does not define (0 to {}); quantize the model to a type of \
         llama.cpp",
        types::all().len() - 1
    )]
    TypeUnknown { id: u32 },
    /// Its rows of `cols` elements do not divide into the blocks of its type.
    #[error("has rows of {cols} elements, which {type_name} cannot cut into blocks of {block_len}")]
    RowBlock { cols: u64, type_name: &'static str, block_len: u64 },
    /// Its offset in the data section is not a multiple of the alignment, in bytes.
    #[error("starts at data offset {offset}, which is no multiple of the alignment {alignment}")]
    Misaligned { offset: u64, alignment: u32 },
    /// Its data end after the file does; all in bytes, from the start of the data section.
    #[error(
        "takes {bytes} bytes from data offset {offset} but the file holds {data_bytes} bytes of \
         data; copy or download the file again"
    )]
    OutOfFile { offset: u64, bytes: u64, data_bytes: u64 },
    /// It starts before the data of another tensor end.
    #[error("starts before the data of the tensor {} end", quoted(other))]
    Overlap { other: String },
}

/// Why the parts of a split file do not make one model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum SplitError {
    /// A key `split.*` contradicts the other parts or the number of parts.
    #[error(
        "the key \"{key}\" is {found} where {wanted} is needed; the parts do not belong together"
    )]
    Key { key: &'static str, found: u64, wanted: u64 },
    /// Another number of parts than the file has.
    #[error("the model is split into {count} parts and {given} were given; give all")]
    Count { count: u64, given: u64 },
    /// Part `number`, from 1, is not at `path`, where its siblings are.
    #[error("part {number} of {count} is missing: put {} beside the others", quoted_whole(path))]
    Missing { path: String, number: u64, count: u64 },
    /// The parts lie one after the other in one file.
    #[error(
        "these are the {count} parts of a split file, joined byte by byte; join them with \
         llama-gguf-split --merge, or give the parts as they were"
    )]
    Joined { count: u64 },
    /// The file's name gives no way to find the other parts.
    #[error(
        "this is one of {count} parts of a split file; for the others to be found it must keep \
         its name, NAME-00001-of-{count:05}.gguf"
    )]
    Name { count: u64 },
    /// The parts hold more tensors together than [`caps::TENSORS_MAX`].
    #[error("the parts hold {found} tensors; at most {} are accepted", caps::TENSORS_MAX)]
    TensorsTotal { found: u64 },
    /// No parts were given.
    #[error("no parts of a GGUF file were given")]
    NoParts,
}

impl Error {
    /// The same error, said to be in the file `path`.
    pub fn in_file(self, path: &Path) -> Self {
        Self::InFile { path: path.display().to_string(), error: Box::new(self) }
    }

    /// An error of the key `key`.
    pub fn key(key: &str, error: KeyError) -> Self {
        Self::Key { key: key.to_owned(), error }
    }

    /// An error of the tensor `tensor`.
    pub fn tensor(tensor: &str, error: TensorError) -> Self {
        Self::Tensor { tensor: tensor.to_owned(), error }
    }
}
