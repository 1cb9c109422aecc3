//! Where a part's bytes come from.

use std::ops::Range;

/// The bytes of one GGUF file, all of them addressable at once.
///
/// The reader keeps a source for as long as the [`Gguf`](super::Gguf) lives and reads metadata
/// arrays and tensor data straight from it.
pub trait Source: Send + Sync {
    /// All bytes, from the magic to the end of the last tensor.
    fn bytes(&self) -> &[u8];

    /// The bytes of `range` are not needed any more; a mapped file gives their pages back.
    /// They stay readable, perhaps slowly. The default does nothing.
    fn release(&self, range: Range<usize>) {
        let _ = range;
    }
}

impl Source for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Source for Box<[u8]> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Source for &'static [u8] {
    fn bytes(&self) -> &[u8] {
        self
    }
}
