//! Where the bytes of a file come from.

use std::ops::Range;

use dllm_arena::file::MappedFile;

/// The bytes of one GGUF file, all of them addressable at once.
///
/// The reader keeps them for as long as the [`Gguf`](super::Gguf) lives and reads tensor data
/// straight from them; the header it copies when it opens the file.
pub trait FileBytes: Send + Sync {
    /// All bytes, from the magic to the end of the last tensor.
    fn bytes(&self) -> &[u8];

    /// The bytes of `range` are not needed any more; a mapped file gives their pages back.
    /// They stay readable, perhaps slowly. The default does nothing.
    fn release(&self, range: Range<usize>) {
        let _ = range;
    }
}

impl FileBytes for MappedFile {
    fn bytes(&self) -> &[u8] {
        self.bytes()
    }

    fn release(&self, range: Range<usize>) {
        self.release(range);
    }
}

impl FileBytes for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl FileBytes for Box<[u8]> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl FileBytes for &'static [u8] {
    fn bytes(&self) -> &[u8] {
        self
    }
}
