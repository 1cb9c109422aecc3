//! The yardstick: the bytes of a file copied to memory by several threads.

use dllm_arena::{Lock, MappedFile, Options, Region, Span};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// Bytes that a thread copies at a time: little beside a file, much beside claiming it.
const CHUNK_BYTES: usize = 1 << 20;

/// Seconds from opening the file until all of it lies in fresh anonymous memory, the faults of
/// which are part of the copy as they are of any load.
pub fn to_fresh(path: &Path, threads: usize, huge_pages: bool) -> Result<f64, String> {
    let start = Instant::now();
    let file = open(path)?;
    let options = Options { huge_pages, lock: Lock::Off };
    let mut to = Region::map(file.bytes().len(), &options).map_err(|error| error.to_string())?;
    copy(&file, &mut to, threads);
    Ok(start.elapsed().as_secs_f64())
}

/// The same to memory that is present: what the caches and the memory itself allow.
pub fn to_present(path: &Path, threads: usize, huge_pages: bool) -> Result<f64, String> {
    let bytes = open(path)?.bytes().len();
    let options = Options { huge_pages, lock: Lock::Off };
    let mut to = Region::reserve(bytes, &options).map_err(|error| error.to_string())?;
    let start = Instant::now();
    let file = open(path)?;
    copy(&file, &mut to, threads);
    Ok(start.elapsed().as_secs_f64())
}

fn open(path: &Path) -> Result<MappedFile, String> {
    MappedFile::open(path).map_err(|error| format!("cannot open `{}`: {error}", path.display()))
}

fn copy(file: &MappedFile, to: &mut Region, threads: usize) {
    let bytes = file.bytes();
    let to = to.span_mut::<u8>(Span { offset: 0, bytes: bytes.len() });
    let chunks = Mutex::new(to.chunks_mut(CHUNK_BYTES).zip(bytes.chunks(CHUNK_BYTES)));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // A poisoned lock means that another thread panicked, which the scope passes on.
                while let Some((to, from)) = chunks.lock().ok().and_then(|mut c| c.next()) {
                    // As a load does it: far cheaper than a fault a page.
                    dllm_arena::populate(to);
                    to.copy_from_slice(from);
                }
            });
        }
    });
}
