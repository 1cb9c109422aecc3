//! A hash of a model's content, to say which model a run used.
//!
//! It is XXH3-128 over the headers and, tensor by tensor, the data; fast enough to be taken from
//! the data while they are read for loading. It tells files apart; it is no proof against forgery.

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::{Gguf, TensorInfo};

impl Gguf {
    /// The hash of the data of one tensor.
    pub fn tensor_hash(&self, tensor: &TensorInfo) -> u128 {
        xxh3_128(self.data(tensor))
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

    /// The hash of the model, reading all of it and releasing each tensor's pages after it.
    pub fn hash(&self) -> String {
        let hashes: Vec<u128> = self
            .tensors()
            .iter()
            .map(|tensor| {
                let hash = self.tensor_hash(tensor);
                self.release(tensor);
                hash
            })
            .collect();
        self.hash_with(&hashes)
    }
}
