//! Where a part's bytes come from.

use std::io;
use std::ops::Range;

use dllm_arena::file::FileStamp;

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

    /// The stamp of the file that the bytes are those of, as it is now. The default is `None`:
    /// bytes that cannot change.
    ///
    /// # Errors
    /// What the system says.
    fn stamp(&self) -> io::Result<Option<FileStamp>> {
        Ok(None)
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
