//! GGUF files, versions 2 and 3: header, metadata, tensor table.
//!
//! Nothing here trusts the file. Opening one reads its header once, from the magic to the tensor
//! table, and checks every count, length, type, shape, offset and name in it; what remains is a
//! [`Gguf`] whose keys have values and whose tensors lie inside the file, apart from each other
//! and aligned. Metadata arrays and tensor data stay where they are, in the bytes of the
//! [`Source`], and are read from there. The reader allocates the names and two tables, which
//! [`caps`] bounds.
//!
//! The layout is that of `docs/gguf.md` in ggml-org/ggml.

pub mod caps;
mod cursor;
mod fault;
pub mod hash;
pub mod inspect;
mod keys;
mod open;
mod source;
mod split;
mod table;
mod tensor;
pub mod text;
pub mod types;
mod value;

pub use fault::{Fault, KeyFault, SplitFault, TensorFault};
pub use keys::{ByteStrings, F32s, I32s, Strings};
pub use open::open;
pub use source::Source;
pub use tensor::TensorInfo;
pub use value::{Array, Items, Value, ValueType};

use std::ops::Range;
use std::{fmt, io};

use dllm_arena::file::FileStamp;

use cursor::Cursor;
use table::Table;

/// `general.alignment` of a file that does not say: the specification's default, in bytes.
const ALIGNMENT_DEFAULT: u32 = 32;

/// A GGUF model: one file, or all parts of a split one.
pub struct Gguf {
    parts: Vec<Part>,
    table: Table,
    tensors: Vec<TensorInfo>,
    by_name: TensorIndex,
}

impl fmt::Debug for Gguf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keys, tensors) = (self.keys().len(), self.tensors.len());
        write!(f, "Gguf {{ {} parts, {keys} keys, {tensors} tensors }}", self.parts.len())
    }
}

struct Part {
    source: Box<dyn Source>,
    version: u32,
    /// Byte offset of the data section; the header is everything before it.
    data_start: usize,
}

impl Gguf {
    /// Reads the header of a file that is not split.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with it, as a [`Fault`].
    pub fn from_bytes(source: impl Source + 'static) -> Result<Self, Fault> {
        Self::from_parts(vec![Box::new(source)])
    }

    /// Reads the headers of all parts of a model, given in their order.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with them, as a [`Fault`]; as [`Fault::InPart`] if there are several.
    pub fn from_parts(sources: Vec<Box<dyn Source>>) -> Result<Self, Fault> {
        let several = sources.len() > 1;
        let in_part = |part, fault| match several {
            true => Fault::InPart { part, fault: Box::new(fault) },
            false => fault,
        };
        let mut parts = Vec::with_capacity(sources.len());
        for (part, source) in sources.into_iter().enumerate() {
            parts.push(Self::read_part(source).map_err(|fault| in_part(part, fault))?);
        }
        split::join(parts).map_err(|(part, fault)| in_part(part, fault))
    }

    /// The version of the format, 2 or 3.
    pub fn version(&self) -> u32 {
        self.parts.first().map_or(0, |part| part.version)
    }

    /// How many files the model is split into.
    pub fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// Bytes of all parts.
    pub fn file_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.source.bytes().len() as u64).sum()
    }

    /// All keys in the file's order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.table.entries().iter().map(|entry| entry.key.as_str())
    }

    /// All tensors in the file's order, part after part.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensor_index(name).map(|index| &self.tensors[index])
    }

    /// The index in [`Gguf::tensors`] of the tensor of this name.
    pub fn tensor_index(&self, name: &str) -> Option<usize> {
        self.by_name.find(&self.tensors, name)
    }

    /// The data of one of this model's tensors: `rows` rows of `row_bytes` bytes. Empty for the
    /// tensor of another model that has no such place.
    pub fn data(&self, tensor: &TensorInfo) -> &[u8] {
        let part = self.parts.get(tensor.part);
        let end = tensor.offset.saturating_add(tensor.bytes);
        part.and_then(|part| part.source.bytes().get(tensor.offset..end)).unwrap_or(&[])
    }

    /// Says that the data of this tensor are not needed any more; see [`Source::release`].
    pub fn release(&self, tensor: &TensorInfo) {
        self.release_part(tensor, 0..tensor.bytes);
    }

    /// The same of a range of its data.
    pub fn release_part(&self, tensor: &TensorInfo, range: Range<usize>) {
        if let Some(part) = self.parts.get(tensor.part) {
            let at = |byte: usize| tensor.offset.saturating_add(byte.min(tensor.bytes));
            part.source.release(at(range.start)..at(range.end));
        }
    }

    /// The stamps of all parts, as they are now; `None` for one whose bytes cannot change.
    ///
    /// # Errors
    /// What the system says.
    pub fn stamps(&self) -> io::Result<Vec<Option<FileStamp>>> {
        self.parts.iter().map(|part| part.source.stamp()).collect()
    }

    /// The bytes that metadata values lie in.
    fn meta_bytes(&self) -> &[u8] {
        self.parts.first().map_or(&[], |part| part.source.bytes())
    }

    fn read_part(source: Box<dyn Source>) -> Result<Self, Fault> {
        let bytes = source.bytes();
        let mut cursor = Cursor::new(bytes, 0);
        let version = read_version(&mut cursor)?;
        let tensor_count = cursor.count(caps::TENSORS_MAX, "number of tensors")?;
        let key_count = cursor.count(caps::KEYS_MAX, "number of metadata keys")?;
        let table = Table::read(&mut cursor, key_count)?;
        let header_end = cursor.at();
        // A model without its tensor table is enough to ask for a key.
        let part = Part { source, version, data_start: header_end };
        let by_name = TensorIndex::default();
        let mut gguf = Self { parts: vec![part], table, tensors: Vec::new(), by_name };
        let alignment = gguf.alignment()?;
        let mut cursor = Cursor::new(gguf.meta_bytes(), header_end);
        let (tensors, data_start) = tensor::read_table(&mut cursor, tensor_count, alignment)?;
        gguf.by_name = TensorIndex::of(&tensors).map_err(TensorInfo::duplicate)?;
        gguf.tensors = tensors;
        gguf.parts[0].data_start = data_start;
        Ok(gguf)
    }

    fn alignment(&self) -> Result<u32, Fault> {
        let key = "general.alignment";
        let found = self.opt_u32(key)?.unwrap_or(ALIGNMENT_DEFAULT);
        let fits = (caps::ALIGNMENT_MIN..=caps::ALIGNMENT_MAX).contains(&found);
        match fits && found.is_power_of_two() {
            true => Ok(found),
            false => Err(Fault::key(key, KeyFault::Alignment { found })),
        }
    }
}

/// Reads the magic and the version.
fn read_version(cursor: &mut Cursor<'_>) -> Result<u32, Fault> {
    match cursor.array("magic \"GGUF\"")? {
        [b'G', b'G', b'U', b'F'] => {}
        // Either the whole file is byte-swapped or only its numbers are.
        [b'F', b'U', b'G', b'G'] => return Err(Fault::BigEndian),
        found => return Err(Fault::Magic { found }),
    }
    match cursor.u32("version")? {
        version @ 2..=3 => Ok(version),
        // Versions will stay below 65,536: only a swapped one has its low half empty.
        found if found != 0 && found & 0xffff == 0 => Err(Fault::BigEndian),
        found => Err(Fault::Version { found }),
    }
}

/// Indices of tensors, ordered by name.
#[derive(Debug, Default)]
struct TensorIndex(Vec<u32>);

impl TensorIndex {
    /// The index of `tensors`, or the second of two that have the same name.
    fn of(tensors: &[TensorInfo]) -> Result<Self, &TensorInfo> {
        let mut order: Vec<u32> = (0..).take(tensors.len()).collect();
        let tensor = |index: u32| &tensors[index as usize];
        order.sort_unstable_by(|&a, &b| (&tensor(a).name, a).cmp(&(&tensor(b).name, b)));
        match order.windows(2).find(|pair| tensor(pair[0]).name == tensor(pair[1]).name) {
            Some(pair) => Err(tensor(pair[1])),
            None => Ok(Self(order)),
        }
    }

    fn find(&self, tensors: &[TensorInfo], name: &str) -> Option<usize> {
        let tensor = |index: u32| tensors[index as usize].name.as_str();
        let place = self.0.binary_search_by(|&index| tensor(index).cmp(name)).ok()?;
        Some(self.0[place] as usize)
    }
}
