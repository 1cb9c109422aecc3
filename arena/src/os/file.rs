//! A model file, mapped read-only for the length of the load.

use crate::os::pages::PAGE_BYTES;
use memmap2::{Mmap, UncheckedAdvice};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::Path;

/// A whole file as bytes, without reading it first.
///
/// **A caveat that no mapping can avoid**: where another process truncates the file while it is
/// mapped, touching the lost pages kills this process (SIGBUS). That can happen only while a model
/// loads: everything is copied out of the map by then, and nothing reads it afterwards.
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
}

impl MappedFile {
    /// Maps the file at `path`.
    ///
    /// Why this is a safe function although mapping is not: the bytes are only ever handed out as
    /// `&[u8]`, of which every value is valid, and the parser holds them to be hostile and copies
    /// what it has checked. So a writer who changes the file under the map can do what a hostile
    /// file can do, and no more. Users are asked not to, as by every program that maps its input.
    ///
    /// # Errors
    /// Whatever opening gives; a folder, a device or an empty file with a message that says so.
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        // Asked before opening as well: opening a pipe would wait for its writer.
        refuse_unmappable(path, &fs::metadata(path)?)?;
        let file = File::open(path)?;
        refuse_unmappable(path, &file.metadata()?)?;
        // SAFETY: a read-only mapping of a regular file. Should another process write to the file
        // meanwhile, the bytes are still valid `u8`s, and readers hold them to be hostile and
        // copy what they have checked.
        let map = unsafe { Mmap::map(&file)? };
        Ok(MappedFile { map })
    }

    /// The file's contents.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Drops the resident pages that lie wholly inside `range` (in bytes, cut to the file). Reading
    /// them again is allowed and gives the same bytes, from the file.
    pub fn release(&self, range: Range<usize>) {
        let first = range.start.min(self.map.len()).next_multiple_of(PAGE_BYTES);
        // The last page of the file belongs to the range where the range reaches the end.
        let end = range.end.min(self.map.len());
        let last = if end == self.map.len() { end } else { end / PAGE_BYTES * PAGE_BYTES };
        if first >= last {
            return;
        }
        // SAFETY: the pages of a read-only file mapping hold nothing but the file's contents, so
        // the ones that come back after this are the same.
        let _ = unsafe {
            self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, first, last - first)
        };
    }
}

fn refuse_unmappable(path: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    let fault = if metadata.is_dir() {
        "is a folder, not a file"
    } else if !metadata.is_file() {
        "is no regular file, so it can't be mapped"
    } else if metadata.len() == 0 {
        "is empty"
    } else {
        return Ok(());
    };
    let message = format!("{} {fault}", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}
