//! A model file, mapped read-only for the length of the load.

use memmap2::{Advice, Mmap, UncheckedAdvice};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The smallest page on x86-64; memmap2 works out the machine's own when it advises.
const PAGE_BYTES: usize = 4096;

/// A whole file as bytes, without reading it first.
///
/// **A caveat that no mapping can avoid**: where another process truncates the file while it is
/// mapped, touching the lost pages kills this process (SIGBUS). That can happen only while a model
/// loads: everything is copied out of the map by then, and nothing reads it afterwards.
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
    /// To ask for its stamp later; the map needs it no more.
    file: File,
}

/// What tells whether a file is still the one that it was: any write to it changes its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// The number that the file has on its file system.
    pub inode: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// When its contents last changed, in nanoseconds since 1970. Whoever may write to the file
    /// may set it.
    pub modified_ns: i128,
    /// When its contents, or what is said of them, last changed. Nobody can set it.
    pub changed_ns: i128,
}

impl MappedFile {
    /// Maps the file at `path`.
    ///
    /// Why this is a safe function although mapping is not: the bytes are only ever handed out as
    /// `&[u8]`, of which every value is valid, and whoever parses them holds them to be hostile
    /// and copies what it has checked. So a writer who changes the file under the map can do what
    /// a hostile file can do, and no more. That nobody does is asked of the user, as it is by
    /// every program that maps its input.
    ///
    /// # Errors
    /// Whatever opening gives; a folder, a device or an empty file with a message that says so.
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        // Asked before opening as well: opening a pipe would wait for its writer.
        refuse_unmappable(path, &fs::metadata(path)?)?;
        let file = File::open(path)?;
        refuse_unmappable(path, &file.metadata()?)?;
        // SAFETY: the mapping is read-only, it is a regular file's, and what becomes of a file
        // that others change meanwhile is dealt with above.
        let map = unsafe { Mmap::map(&file)? };
        Ok(MappedFile { map, file })
    }

    /// The file's stamp now, whatever its name leads to by now.
    ///
    /// # Errors
    /// What the system says.
    pub fn stamp(&self) -> io::Result<FileStamp> {
        let metadata = self.file.metadata()?;
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Ok(FileStamp {
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// The file's contents.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Says that the file will be read from start to end, so that the kernel reads ahead.
    pub fn sequential(&self) {
        // Advice that is not taken costs only speed.
        let _ = self.map.advise(Advice::Sequential);
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
