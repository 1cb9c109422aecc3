//! Opens a model by its path, with the other parts if it is split.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use dllm_arena::file::{FileStamp, MappedFile};

use super::fault::{Fault, SplitFault};
use super::{Gguf, Source, split};

impl Source for MappedFile {
    fn bytes(&self) -> &[u8] {
        self.bytes()
    }

    fn release(&self, range: Range<usize>) {
        self.release(range);
    }

    fn stamp(&self) -> io::Result<Option<FileStamp>> {
        self.stamp().map(Some)
    }
}

/// Opens the model at `path`. Any part of a split model opens all of it; the other parts are
/// looked for beside it, under llama.cpp's names (`NAME-00002-of-00003.gguf`).
///
/// # Errors
///
/// [`Fault::Io`], [`SplitFault::Missing`], or whatever is wrong in a file as [`Fault::InFile`].
pub fn open(path: &Path) -> Result<Gguf, Fault> {
    let first = open_part(path)?;
    let count = split::part_count(&first).map_err(|fault| fault.in_file(path))?;
    if count == 1 {
        return Ok(first);
    }
    let paths = part_paths(path, count).map_err(|fault| fault.in_file(path))?;
    drop(first);
    let mut parts = Vec::with_capacity(paths.len());
    for (number, path) in (1..).zip(&paths) {
        if !path.exists() {
            let path = path.display().to_string();
            return Err(Fault::Split(SplitFault::Missing { path, number, count }));
        }
        parts.push(open_part(path)?);
    }
    split::join(parts).map_err(|(part, fault)| fault.in_file(&paths[part]))
}

fn open_part(path: &Path) -> Result<Gguf, Fault> {
    let mapped = MappedFile::open(path).map_err(|error| io_fault(path, &error))?;
    Gguf::read_part(Box::new(mapped)).map_err(|fault| fault.in_file(path))
}

fn io_fault(path: &Path, error: &io::Error) -> Fault {
    let (path, cause) = (path.display().to_string(), error.to_string());
    // The mapping's own refusals start with the path, the system's do not.
    let words = cause.strip_prefix(&path).unwrap_or(&cause).trim_start();
    Fault::Io { cause: words.to_owned(), path }
}

/// The paths of all `count` parts, of which the one at `path` is one.
fn part_paths(path: &Path, count: u64) -> Result<Vec<PathBuf>, Fault> {
    let name = path.file_name().and_then(|name| name.to_str());
    let stem = name.and_then(|name| split_name(name, count));
    let stem = stem.ok_or(Fault::Split(SplitFault::Name { count }))?;
    Ok((1..=count)
        .map(|number| path.with_file_name(format!("{stem}-{number:05}-of-{count:05}.gguf")))
        .collect())
}

/// `NAME` of `NAME-00001-of-00003.gguf`, if that is how the name is made and the count agrees.
fn split_name(name: &str, count: u64) -> Option<&str> {
    let (rest, count_digits) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (stem, number_digits) = rest.rsplit_once('-')?;
    let number = |digits: &str| (digits.len() == 5).then(|| digits.parse::<u64>().ok())?;
    let stated = (number(number_digits)?, number(count_digits)?);
    ((1..=count).contains(&stated.0) && stated.1 == count).then_some(stem)
}
