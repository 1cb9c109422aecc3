//! Writing a packed file: whole or not at all, by one process at a time.

use super::header::Header;
use super::layout::{CHUNK_BYTES, HEADER_BYTES, Layout, chunk_hash};
use crate::plan::Plan;
use crate::repack::Threads;
use dllm_arena::Region;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, io};
use xxhash_rust::xxh3::xxh3_64;

/// How often a `.part` may turn out to be another file than the one that was locked: each time
/// another process has finished one in between.
const TRIES_MAX: usize = 8;

/// Why a packed file was not written.
#[derive(Debug)]
pub enum Fault {
    /// Another process is at it.
    Busy,
    /// What the system said, and to what.
    Io {
        /// What was being done.
        doing: &'static str,
        /// What it said.
        cause: io::Error,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Busy => f.write_str("another process is writing it"),
            Fault::Io { doing, cause } => write!(f, "cannot {doing}: {cause}"),
        }
    }
}

impl std::error::Error for Fault {}

/// What goes into a packed file.
#[derive(Clone, Copy)]
pub struct Contents<'a> {
    /// Where everything goes.
    pub layout: &'a Layout,
    /// The weights.
    pub plan: &'a Plan,
    /// What holds them.
    pub region: &'a Region,
    /// The hash of the model's content.
    pub content: &'a str,
    /// The stamp of its files.
    pub stamp: u128,
}

/// Writes the packed file at `path`. `progress` is called with the bytes written so far.
///
/// # Errors
/// [`Fault`]; nothing is left of it then, and a packed file that was there is still there.
pub fn write(
    path: &Path,
    contents: &Contents<'_>,
    threads: &Threads<'_>,
    progress: &mut dyn FnMut(usize),
) -> Result<(), Fault> {
    let part = Part::lock(path)?;
    part.fill(contents, threads, progress)?;
    part.publish(path)
}

/// Replaces the header of the file at `path` by one that differs in the stamp. A crash that tears
/// it leaves one that does not have its hash.
///
/// # Errors
/// What the system says.
pub fn put_header(path: &Path, header: &Header) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all_at(&header.encode(), 0)
}

fn io_fault(doing: &'static str) -> impl Fn(io::Error) -> Fault {
    move |cause| Fault::Io { doing, cause }
}

/// The file that is being written, under a name of its own. It goes away unless it is published.
struct Part {
    file: File,
    path: PathBuf,
}

impl Part {
    /// Opens and locks the file beside `path`. What a crash left in it is thrown away.
    fn lock(path: &Path) -> Result<Part, Fault> {
        let mut name = path.to_owned().into_os_string();
        name.push(".part");
        let name = PathBuf::from(name);
        for _ in 0..TRIES_MAX {
            // Through a link somebody else's file would be emptied.
            if fs::symlink_metadata(&name).is_ok_and(|there| there.is_symlink()) {
                let cause =
                    io::Error::other("a symbolic link has the name that it is written under");
                return Err(io_fault("create it")(cause));
            }
            let mut options = File::options();
            let options = options.read(true).write(true).create(true).truncate(false);
            let file = options.open(&name).map_err(io_fault("create it"))?;
            match file.try_lock() {
                Ok(()) => {}
                // Two writers without locks write what the hashes then tell apart.
                Err(TryLockError::Error(cause)) if cause.kind() == ErrorKind::Unsupported => {}
                Err(TryLockError::Error(cause)) => return Err(io_fault("lock it")(cause)),
                Err(TryLockError::WouldBlock) => return Err(Fault::Busy),
            }
            // Another process may have published or removed it before it was locked here.
            let own = file.metadata().map_err(io_fault("create it"))?;
            if is_at(&name, &own) {
                let part = Part { file, path: name };
                part.file.set_len(0).map_err(io_fault("empty it"))?;
                return Ok(part);
            }
        }
        Err(Fault::Busy)
    }

    fn fill(
        &self,
        contents: &Contents<'_>,
        threads: &Threads<'_>,
        progress: &mut dyn FnMut(usize),
    ) -> Result<(), Fault> {
        let Contents { layout, plan, region, content, stamp } = *contents;
        let hashes: Vec<AtomicU64> = (0..layout.chunks()).map(|_| AtomicU64::new(0)).collect();
        let mut tasks = Vec::with_capacity(layout.chunks());
        for (index, weight) in plan.weights.iter().enumerate() {
            let chunks = region.span::<u8>(weight.span).chunks(CHUNK_BYTES).enumerate();
            tasks.extend(chunks.filter_map(|(at, b)| layout.chunk(index, at).map(|c| (c, b))));
        }
        let write = io_fault("write it");
        threads.run(
            tasks,
            |(chunk, bytes)| {
                self.file.write_all_at(bytes, chunk.offset).map_err(&write)?;
                let hash = chunk_hash(chunk.number, bytes);
                // The end of the threads orders these with the reading below.
                hashes[chunk.number].store(hash, Ordering::Relaxed);
                Ok(bytes.len())
            },
            progress,
        )?;
        let hashes = hashes.into_iter().flat_map(|hash| hash.into_inner().to_le_bytes());
        let table: Vec<u8> = hashes.collect();
        let header = Header {
            layout: layout.digest(),
            content: content.to_owned(),
            stamp,
            table: xxh3_64(&table),
        };
        self.file.write_all_at(&table, HEADER_BYTES as u64).map_err(&write)?;
        self.file.write_all_at(&header.encode(), 0).map_err(&write)
    }

    /// Gives the file its name once all of it is on the disk.
    fn publish(self, path: &Path) -> Result<(), Fault> {
        self.file.sync_all().map_err(io_fault("bring it to the disk"))?;
        fs::rename(&self.path, path).map_err(io_fault("give it its name"))?;
        // The name is on the disk when the folder is. Where that cannot be had, a crash costs the
        // name at worst.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Published, the name leads nowhere, or to the part of another process, which is not ours
        // to remove: it has a lock on a file of its own.
        if self.file.metadata().is_ok_and(|own| is_at(&self.path, &own)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether that file, and no link to it, has the name.
fn is_at(name: &Path, file: &fs::Metadata) -> bool {
    let there = fs::symlink_metadata(name);
    there.is_ok_and(|there| (there.dev(), there.ino()) == (file.dev(), file.ino()))
}
