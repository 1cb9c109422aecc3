//! A hash of a model's content, to say which model a run used.
//!
//! It is XXH3-128 over the headers and, tensor by tensor, the data; fast enough to be taken from
//! the data while they are read for loading. It tells files apart; it is no proof against forgery.

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::{Gguf, TensorInfo};

/// Bytes of data that are resident for their hash at a time: many disk reads, little memory.
const PIECE_BYTES: usize = 4 << 20;

impl Gguf {
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
    pub fn hash_with(&self, tensor_hashes: &[u128]) -> String {
        let mut hasher = Xxh3::new();
        for part in &self.parts {
            let bytes = part.source.bytes();
            hasher.update(bytes.get(..part.data_start).unwrap_or(bytes));
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
