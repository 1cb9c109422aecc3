//! What can be wrong with a GGUF file: one variant per cause.

use std::fmt;
use std::path::Path;

use super::caps;
use super::text::{quoted, quoted_whole};
use super::types;

/// Why a GGUF file was refused, or why a key or tensor of it could not be had.
///
/// `Display` names the key, tensor or byte offset and what would fix it. Whatever comes from the
/// file is escaped and shortened there, so that it is safe on a terminal.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The file or part could not be read at all.
    Io {
        /// The path as given.
        path: String,
        /// The operating system's words.
        cause: String,
    },
    /// `fault` was found in the file `path`.
    InFile {
        /// The path as opened.
        path: String,
        /// What is wrong in it.
        fault: Box<Fault>,
    },
    /// `fault` was found in one of several parts given as bytes.
    InPart {
        /// Index in the order given, from 0.
        part: usize,
        /// What is wrong in it.
        fault: Box<Fault>,
    },
    /// The file does not start with `GGUF`.
    Magic {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// The file's numbers have their bytes the other way round.
    BigEndian,
    /// A version of the format that is not read here.
    Version {
        /// The version in the header.
        found: u32,
    },
    /// The file ends inside something.
    Truncated {
        /// What was being read.
        what: String,
        /// Byte offset in the file at which it starts.
        at: usize,
        /// Bytes that it needs from there.
        needs: u64,
        /// Bytes that there are from there.
        has: u64,
    },
    /// A count or length above its cap in [`caps`].
    TooLarge {
        /// What is counted.
        what: String,
        /// Byte offset of the count.
        at: usize,
        /// The count.
        found: u64,
        /// The cap.
        max: u64,
    },
    /// A key's or tensor's name that is empty or not UTF-8.
    Name {
        /// Which name.
        what: String,
        /// Byte offset of its length.
        at: usize,
    },
    /// Something about one metadata key.
    Key {
        /// The key.
        key: String,
        /// What.
        fault: KeyFault,
    },
    /// Something about one tensor.
    Tensor {
        /// The tensor's name.
        tensor: String,
        /// What.
        fault: TensorFault,
    },
    /// The parts of a split file do not make one model.
    Split(SplitFault),
}

/// What is wrong with a metadata key.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyFault {
    /// It occurs twice.
    Duplicate,
    /// It is needed and not there.
    Missing,
    /// Its value has another type than the one needed.
    Type {
        /// The type needed, with an article.
        wanted: &'static str,
        /// The type found, with an article.
        found: String,
    },
    /// Its integer does not fit what it is used for.
    Range {
        /// The value.
        found: i128,
        /// What would fit.
        wanted: &'static str,
    },
    /// An item of its array does not fit what it is used for.
    ItemRange {
        /// Index of the item, from 0.
        index: usize,
        /// The value.
        found: i128,
        /// What would fit.
        wanted: &'static str,
    },
    /// Its value has a type number that GGUF does not define.
    TypeUnknown {
        /// The number.
        id: u32,
    },
    /// A boolean in it is neither 0 nor 1.
    Bool {
        /// The byte.
        found: u8,
    },
    /// Its string is not UTF-8.
    Utf8,
    /// An item of its array of strings is not UTF-8.
    ItemUtf8 {
        /// Index of the item, from 0.
        index: usize,
    },
    /// It nests arrays deeper than [`caps::ARRAY_DEPTH_MAX`].
    ArrayDepth,
    /// It is `general.alignment` and no power of two from 8 to [`caps::ALIGNMENT_MAX`].
    Alignment {
        /// The value.
        found: u32,
    },
}

/// What is wrong with a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorFault {
    /// Two tensors have this name.
    Duplicate,
    /// It has no dimension or more than [`caps::DIMS_MAX`].
    Dims {
        /// Its number of dimensions.
        found: u32,
    },
    /// A dimension of length zero.
    DimZero {
        /// Which dimension, from 0, fastest first.
        axis: usize,
    },
    /// Its elements or bytes exceed 64 bits.
    ShapeOverflow {
        /// Its dimensions, fastest first; unused ones are 1.
        shape: [u64; 4],
    },
    /// Its type number is not one of [`types`].
    TypeUnknown {
        /// The number.
        id: u32,
    },
    /// Its rows do not divide into the blocks of its type.
    RowBlock {
        /// Elements in a row.
        cols: u64,
        /// The type's name.
        type_name: &'static str,
        /// Elements in a block.
        block_len: u64,
    },
    /// Its offset is not a multiple of the alignment.
    Misaligned {
        /// Its offset in the data section.
        offset: u64,
        /// The alignment in bytes.
        alignment: u32,
    },
    /// Its data end after the file does.
    OutOfFile {
        /// Its offset in the data section.
        offset: u64,
        /// Its length in bytes.
        bytes: u64,
        /// The length of the data section in bytes.
        data_bytes: u64,
    },
    /// It starts before the data of another tensor end.
    Overlap {
        /// The other tensor.
        other: String,
    },
}

/// Why the parts of a split file do not make one model.
#[derive(Clone, Debug, PartialEq)]
pub enum SplitFault {
    /// A key `split.*` contradicts the other parts or the number of parts.
    Key {
        /// The key.
        key: &'static str,
        /// Its value.
        found: u64,
        /// The value that would agree.
        wanted: u64,
    },
    /// Another number of parts than the file has.
    Count {
        /// How many parts the file has.
        count: u64,
        /// How many were given.
        given: u64,
    },
    /// A part is not where its siblings are.
    Missing {
        /// The path at which it was looked for.
        path: String,
        /// Its number, from 1.
        number: u64,
        /// How many parts there are.
        count: u64,
    },
    /// The file's name gives no way to find the other parts.
    Name {
        /// How many parts there are.
        count: u64,
    },
    /// The parts hold more tensors together than [`caps::TENSORS_MAX`].
    TensorsTotal {
        /// How many they hold.
        found: u64,
    },
    /// No parts were given.
    NoParts,
}

impl Fault {
    /// The same fault, said to be in the file `path`.
    pub fn in_file(self, path: &Path) -> Self {
        Self::InFile { path: path.display().to_string(), fault: Box::new(self) }
    }

    /// A fault of the key `key`.
    pub fn key(key: &str, fault: KeyFault) -> Self {
        Self::Key { key: key.to_owned(), fault }
    }

    /// A fault of the tensor `tensor`.
    pub fn tensor(tensor: &str, fault: TensorFault) -> Self {
        Self::Tensor { tensor: tensor.to_owned(), fault }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, cause } => write!(f, "cannot read {}: {cause}", quoted_whole(path)),
            Self::InFile { path, fault } => write!(f, "{}: {fault}", quoted_whole(path)),
            Self::InPart { part, fault } => write!(f, "part {part}: {fault}"),
            Self::Magic { found } => write!(
                f,
                "not a GGUF file: it starts with \"{}\", not \"GGUF\"; convert the model to GGUF",
                found.escape_ascii()
            ),
            Self::BigEndian => write!(
                f,
                "big-endian GGUF file: only little-endian files are read; convert it with \
                 gguf_convert_endian.py of the gguf package"
            ),
            Self::Version { found } => write!(
                f,
                "GGUF version {found}: versions 2 and 3 are read; convert the model again with \
                 a current converter"
            ),
            Self::Truncated { what, at, needs, has } => write!(
                f,
                "the file ends inside the {what} at byte {at}: it needs {needs} bytes, {has} \
                 are there; copy or download the file again"
            ),
            Self::TooLarge { what, at, found, max } => {
                write!(f, "the {what} at byte {at} is {found}; at most {max} is accepted")
            }
            Self::Name { what, at } => {
                write!(f, "the {what} at byte {at} is empty or not UTF-8; the file is damaged")
            }
            Self::Key { key, fault } => write!(f, "the key {} {fault}", quoted(key)),
            Self::Tensor { tensor, fault } => write!(f, "the tensor {} {fault}", quoted(tensor)),
            Self::Split(fault) => fault.fmt(f),
        }
    }
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate => write!(f, "occurs twice"),
            Self::Missing => {
                write!(f, "is missing; convert the model again with a current converter")
            }
            Self::Type { wanted, found } => write!(f, "holds {found}; {wanted} is needed"),
            Self::Range { found, wanted } => write!(f, "is {found}; {wanted} is needed"),
            Self::ItemRange { index, found, wanted } => {
                write!(f, "holds {found} as item {index}; {wanted} is needed")
            }
            Self::TypeUnknown { id } => {
                write!(f, "has value type {id}, which GGUF does not define (0 to 12)")
            }
            Self::Bool { found } => {
                write!(f, "holds a boolean of value {found}; 0 or 1 is needed")
            }
            Self::Utf8 => write!(f, "is not valid UTF-8"),
            Self::ItemUtf8 { index } => write!(f, "is not valid UTF-8 in item {index}"),
            Self::ArrayDepth => {
                write!(f, "nests arrays deeper than {}", caps::ARRAY_DEPTH_MAX)
            }
            Self::Alignment { found } => write!(
                f,
                "is {found}; a power of two from {} to {} is needed",
                caps::ALIGNMENT_MIN,
                caps::ALIGNMENT_MAX
            ),
        }
    }
}

impl fmt::Display for TensorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate => write!(f, "occurs twice"),
            Self::Dims { found } => {
                write!(f, "has {found} dimensions; 1 to {} are read", caps::DIMS_MAX)
            }
            Self::DimZero { axis } => write!(f, "has length 0 in dimension {axis}"),
            Self::ShapeOverflow { shape } => {
                write!(f, "has the shape {shape:?}, which exceeds 64 bits")
            }
            Self::TypeUnknown { id } => write!(
                f,
                "has type {id}, which ggml does not define (0 to {}); quantize the model to a \
                 type of llama.cpp",
                types::all().len() - 1
            ),
            Self::RowBlock { cols, type_name, block_len } => write!(
                f,
                "has rows of {cols} elements, which {type_name} cannot cut into blocks of \
                 {block_len}"
            ),
            Self::Misaligned { offset, alignment } => write!(
                f,
                "starts at data offset {offset}, which is no multiple of the alignment \
                 {alignment}"
            ),
            Self::OutOfFile { offset, bytes, data_bytes } => write!(
                f,
                "takes {bytes} bytes from data offset {offset} but the file holds {data_bytes} \
                 bytes of data; copy or download the file again"
            ),
            Self::Overlap { other } => {
                write!(f, "starts before the data of the tensor {} end", quoted(other))
            }
        }
    }
}

impl fmt::Display for SplitFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { key, found, wanted } => write!(
                f,
                "the key \"{key}\" is {found} where {wanted} is needed; the parts do not belong \
                 together"
            ),
            Self::Count { count, given } => {
                write!(f, "the model is split into {count} parts and {given} were given; give all")
            }
            Self::Missing { path, number, count } => write!(
                f,
                "part {number} of {count} is missing: put {} beside the others",
                quoted_whole(path)
            ),
            Self::Name { count } => write!(
                f,
                "this is one of {count} parts of a split file; for the others to be found it \
                 must keep its name, NAME-00001-of-{count:05}.gguf"
            ),
            Self::TensorsTotal { found } => write!(
                f,
                "the parts hold {found} tensors; at most {} are accepted",
                caps::TENSORS_MAX
            ),
            Self::NoParts => write!(f, "no parts of a GGUF file were given"),
        }
    }
}
