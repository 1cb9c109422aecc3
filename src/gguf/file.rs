//! A model's file or files, open: metadata, tensor table, data, and a hash of it all.

use std::fmt;
use std::ops::{Deref, Range};

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::bytes::FileBytes;
use super::metadata::Metadata;
use super::names::ByName;
use super::tensor::TensorInfo;

/// Bytes of data that are resident for their hash at a time: many disk reads, little memory.
const PIECE_BYTES: usize = 4 << 20;

/// A GGUF model: one file, or all parts of a split one. It dereferences to its [`Metadata`], those
/// of the first part: llama.cpp's splitter writes only `split.*` into the others.
pub struct Gguf {
    /// One at least.
    pub(super) parts: Vec<Part>,
    pub(super) tensors: ByName<TensorInfo>,
}

/// One file of a model.
pub(super) struct Part {
    pub file: Box<dyn FileBytes>,
    pub version: u32,
    pub metadata: Metadata,
}

impl fmt::Debug for Gguf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keys, tensors) = (self.keys().len(), self.tensors().len());
        write!(f, "Gguf {{ {} parts, {keys} keys, {tensors} tensors }}", self.parts.len())
    }
}

impl Deref for Gguf {
    type Target = Metadata;

    fn deref(&self) -> &Metadata {
        &self.parts[0].metadata
    }
}

impl Gguf {
    /// The version of the format, 2 or 3.
    pub fn version(&self) -> u32 {
        self.parts[0].version
    }

    /// How many files the model is split into.
    pub fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// Bytes of all parts.
    pub fn file_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.file.bytes().len() as u64).sum()
    }

    /// All tensors in the file's order, part after part.
    pub fn tensors(&self) -> &[TensorInfo] {
        self.tensors.items()
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensor_index(name).map(|index| &self.tensors()[index])
    }

    /// The index in [`Gguf::tensors`] of the tensor of this name.
    pub fn tensor_index(&self, name: &str) -> Option<usize> {
        self.tensors.find(name)
    }

    /// The data of one of this model's tensors: `rows` rows of `row_bytes` bytes. Empty for the
    /// tensor of another model that has no such place.
    pub fn data(&self, tensor: &TensorInfo) -> &[u8] {
        let part = self.parts.get(tensor.part);
        let end = tensor.offset.saturating_add(tensor.bytes);
        part.and_then(|part| part.file.bytes().get(tensor.offset..end)).unwrap_or(&[])
    }

    /// Says that the data of this tensor are not needed any more; see [`FileBytes::release`].
    pub fn release(&self, tensor: &TensorInfo) {
        self.release_part(tensor, 0..tensor.bytes);
    }

    /// The same of a range of its data.
    pub fn release_part(&self, tensor: &TensorInfo, range: Range<usize>) {
        if let Some(part) = self.parts.get(tensor.part) {
            let at = |byte: usize| tensor.offset.saturating_add(byte.min(tensor.bytes));
            part.file.release(at(range.start)..at(range.end));
        }
    }

    /// The hash of the data of one tensor.
    pub fn tensor_hash(&self, tensor: &TensorInfo) -> u128 {
        xxh3_128(self.data(tensor))
    }

    /// The same, releasing the data piece by piece as they are read.
    pub fn tensor_hash_releasing(&self, tensor: &TensorInfo) -> u128 {
        let mut hasher = Xxh3::new();
        for (at, piece) in self.data(tensor).chunks(PIECE_BYTES).enumerate() {
            hasher.update(piece);
            let start = at * PIECE_BYTES;
            self.release_part(tensor, start..start + piece.len());
        }
        // Pages that two pieces have in common.
        self.release(tensor);
        hasher.digest128()
    }

    /// The hash of the model, as 32 hexadecimal digits, from the hashes of its tensors in the
    /// order of [`Gguf::tensors`]. Padding between tensors does not count.
    ///
    /// It is XXH3-128 over the headers and, tensor by tensor, the data: it tells which model a run
    /// used, and is no proof against forgery.
    pub fn hash_with(&self, tensor_hashes: &[u128]) -> String {
        let mut hasher = Xxh3::new();
        for part in &self.parts {
            hasher.update(part.metadata.header());
        }
        for hash in tensor_hashes {
            hasher.update(&hash.to_le_bytes());
        }
        format!("{:032x}", hasher.digest128())
    }

    /// The hash of the model, reading all of it and releasing what was read.
    pub fn hash(&self) -> String {
        let hash = |tensor| self.tensor_hash_releasing(tensor);
        let hashes: Vec<u128> = self.tensors().iter().map(hash).collect();
        self.hash_with(&hashes)
    }
}
