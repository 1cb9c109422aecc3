//! Opens a model by its path or from its bytes, with all parts if it is split.

use std::io;
use std::path::{Path, PathBuf};

use dllm_arena::file::MappedFile;

use super::bytes::FileBytes;
use super::caps;
use super::cursor::Cursor;
use super::error::{Error, KeyError, SplitError};
use super::file::{Gguf, Part};
use super::metadata::Metadata;
use super::names::ByName;
use super::tensor::{self, TensorInfo};

/// `general.alignment` of a file that does not say: the specification's default, in bytes.
const ALIGNMENT_DEFAULT: u32 = 32;
/// Bytes of a file that are copied at first to find its header in them: more than the headers of
/// most models have.
const HEADER_BYTES_FIRST: usize = 8 << 20;

/// Opens the model at `path`. Any part of a split model opens all of it; the other parts are
/// looked for beside it, under llama.cpp's names (`NAME-00002-of-00003.gguf`).
///
/// # Errors
///
/// [`Error::Io`], [`SplitError::Missing`], or what is wrong in a file as [`Error::InFile`].
pub fn open(path: &Path) -> Result<Gguf, Error> {
    let first = open_part(path)?;
    let count = part_count(&first).map_err(|error| error.in_file(path))?;
    if count == 1 {
        return Ok(first);
    }
    if is_joined(&first) {
        return Err(Error::from(SplitError::Joined { count }).in_file(path));
    }
    // A link may have any name: the file that it leads to has its siblings beside it.
    let found = path.canonicalize().ok();
    let paths = part_paths(path, count)
        .ok()
        .filter(|paths| paths.iter().all(|path| path.exists()))
        .or_else(|| found.and_then(|path| part_paths(&path, count).ok()))
        .map_or_else(|| part_paths(path, count), Ok)
        .map_err(|error| error.in_file(path))?;
    drop(first);
    let mut parts = Vec::with_capacity(paths.len());
    for (number, path) in (1..).zip(&paths) {
        if !path.exists() {
            let path = path.display().to_string();
            return Err(SplitError::Missing { path, number, count }.into());
        }
        parts.push(open_part(path)?);
    }
    join(parts).map_err(|(part, error)| error.in_file(&paths[part]))
}

impl Gguf {
    /// Reads the header of a file that is not split.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as an [`Error`].
    pub fn from_bytes(file: impl FileBytes + 'static) -> Result<Self, Error> {
        Self::from_parts(vec![Box::new(file)])
    }

    /// Reads the headers of all parts of a model, given in their order.
    ///
    /// # Errors
    ///
    /// What is wrong with them, as an [`Error`]; as [`Error::InPart`] if there are several.
    pub fn from_parts(files: Vec<Box<dyn FileBytes>>) -> Result<Self, Error> {
        let several = files.len() > 1;
        let in_part = |part, error| match several {
            true => Error::InPart { part, error: Box::new(error) },
            false => error,
        };
        let mut parts = Vec::with_capacity(files.len());
        for (part, file) in files.into_iter().enumerate() {
            parts.push(read_part(file).map_err(|error| in_part(part, error))?);
        }
        join(parts).map_err(|(part, error)| in_part(part, error))
    }
}

fn open_part(path: &Path) -> Result<Gguf, Error> {
    let mapped = MappedFile::open(path).map_err(|error| io_error(path, &error))?;
    read_part(Box::new(mapped)).map_err(|error| error.in_file(path))
}

fn io_error(path: &Path, error: &io::Error) -> Error {
    let (path, cause) = (path.display().to_string(), error.to_string());
    // The mapping's own refusals start with the path, the system's do not.
    let words = cause.strip_prefix(&path).unwrap_or(&cause).trim_start();
    Error::Io { cause: words.to_owned(), path }
}

/// The part as a model of its own. Its header is parsed in a copy: another process may change a
/// mapped file at any time.
fn read_part(file: Box<dyn FileBytes>) -> Result<Gguf, Error> {
    let bytes = file.bytes();
    if let Some((kind, advice)) = other_kind(bytes) {
        return Err(Error::OtherKind { kind, advice });
    }
    let copied_max = bytes.len().min(caps::HEADER_BYTES_MAX);
    let mut copied = HEADER_BYTES_FIRST.min(copied_max);
    let (version, metadata, tensors) = loop {
        match read_header(bytes[..copied].to_vec(), bytes.len()) {
            Err(Error::Truncated { .. }) if copied < copied_max => {
                copied = copied.saturating_mul(4).min(copied_max);
            }
            Err(Error::Truncated { at, needs, .. }) if copied < bytes.len() => {
                let (what, max) = ("length of the header".to_owned(), copied_max as u64);
                let found = needs.saturating_add(at as u64);
                return Err(Error::TooLarge { what, at: 0, found, max });
            }
            read => break read?,
        }
    };
    file.release(0..copied);
    Ok(Gguf { parts: vec![Part { file, version, metadata }], tensors })
}

/// What a file is that was given, or downloaded, in a GGUF file's place, and what helps.
fn other_kind(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    const CONVERT: &str = "convert the model with llama.cpp's convert_hf_to_gguf.py";
    let start = bytes.get(..bytes.len().min(64))?.trim_ascii_start();
    let begins = |with: &str| {
        start.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with.as_bytes()))
    };
    // Safetensors: the length of a JSON object, then the object.
    let json_bytes = bytes.first_chunk().map(|length| u64::from_le_bytes(*length));
    let is_safetensors = json_bytes.is_some_and(|length| (2..1 << 32).contains(&length))
        && bytes.get(8..10) == Some(b"{\"");
    match () {
        () if begins("version https://git-lfs") => {
            Some(("a Git LFS pointer", "fetch the file itself with `git lfs pull`"))
        }
        () if begins("<!doctype") || begins("<html") => {
            Some(("an HTML page", "download the file by the link that its page gives"))
        }
        () if begins("PK\x03\x04") => Some(("a zip archive, as PyTorch writes", CONVERT)),
        () if is_safetensors => Some(("a safetensors file", CONVERT)),
        () => None,
    }
}

/// Parses the first bytes of a file of `file_bytes`.
fn read_header(
    header: Vec<u8>,
    file_bytes: usize,
) -> Result<(u32, Metadata, ByName<TensorInfo>), Error> {
    let mut cursor = Cursor::new(&header, 0);
    let version = read_version(&mut cursor)?;
    let tensor_count = cursor.count(caps::TENSORS_MAX, "number of tensors")?;
    let key_count = cursor.count(caps::KEYS_MAX, "number of metadata keys")?;
    let at = cursor.at();
    let (mut metadata, at) = Metadata::read(header, at, key_count)?;
    let alignment = alignment(&metadata)?;
    let mut cursor = Cursor::new(metadata.header(), at);
    let (tensors, data_start) =
        tensor::read_table(&mut cursor, tensor_count, alignment, file_bytes)?;
    metadata.cut_header(data_start);
    Ok((version, metadata, tensors))
}

/// Reads the magic and the version.
fn read_version(cursor: &mut Cursor<'_>) -> Result<u32, Error> {
    match cursor.array("magic \"GGUF\"")? {
        [b'G', b'G', b'U', b'F'] => {}
        // Either the whole file is byte-swapped or only its numbers are.
        [b'F', b'U', b'G', b'G'] => return Err(Error::BigEndian),
        found => return Err(Error::Magic { found }),
    }
    match cursor.u32("version")? {
        version @ 2..=3 => Ok(version),
        // Versions will stay below 65,536: only a swapped one has its low half empty.
        found if found != 0 && found & 0xffff == 0 => Err(Error::BigEndian),
        found => Err(Error::Version { found }),
    }
}

fn alignment(metadata: &Metadata) -> Result<u32, Error> {
    let key = "general.alignment";
    let found = metadata.opt_u32(key)?.unwrap_or(ALIGNMENT_DEFAULT);
    let fits = (caps::ALIGNMENT_MIN..=caps::ALIGNMENT_MAX).contains(&found);
    match fits && found.is_power_of_two() {
        true => Ok(found),
        false => Err(Error::key(key, KeyError::Alignment { found })),
    }
}

/// How many parts the model has of which `part` is one; 1 for a file that is not split.
fn part_count(part: &Gguf) -> Result<u64, Error> {
    let count = part.opt_u64("split.count")?.unwrap_or(1).max(1);
    match count > caps::PARTS_MAX {
        true => Err(split_key("split.count", count, caps::PARTS_MAX)),
        false => Ok(count),
    }
}

/// Joins the parts of one model, given in their order. An error comes with the index of the part
/// that has it.
fn join(mut parts: Vec<Gguf>) -> Result<Gguf, (usize, Error)> {
    let given = parts.len();
    for (index, part) in parts.iter().enumerate() {
        check_part(part, index as u64, given as u64).map_err(|error| (index, error))?;
    }
    if given == 1 {
        return Ok(parts.remove(0));
    }
    let first = parts.first().ok_or((0, SplitError::NoParts.into()))?;
    let found = parts.iter().map(|part| part.tensors().len() as u64).sum();
    check_total(first, found).map_err(|error| (0, error))?;
    let (mut all, mut tensors) = (Vec::with_capacity(given), Vec::new());
    for (index, part) in parts.into_iter().enumerate() {
        all.extend(part.parts);
        let moved = part.tensors.into_items().into_iter();
        tensors.extend(moved.map(|tensor| TensorInfo { part: index, ..tensor }));
    }
    let tensors = ByName::new(tensors).map_err(|twice| (twice.part, twice.duplicate()))?;
    Ok(Gguf { parts: all, tensors })
}

fn check_part(part: &Gguf, index: u64, given: u64) -> Result<(), Error> {
    let count = part_count(part)?;
    if count != given {
        return Err(SplitError::Count { count, given }.into());
    }
    if count > 1 {
        let number = part.u64("split.no")?;
        if number != index {
            return Err(split_key("split.no", number, index));
        }
    }
    Ok(())
}

fn check_total(first: &Gguf, found: u64) -> Result<(), Error> {
    if found > caps::TENSORS_MAX {
        return Err(SplitError::TensorsTotal { found }.into());
    }
    match first.opt_u64("split.tensors.count")? {
        Some(stated) if stated != found => Err(split_key("split.tensors.count", stated, found)),
        _ => Ok(()),
    }
}

fn split_key(key: &'static str, found: u64, wanted: u64) -> Error {
    SplitError::Key { key, found, wanted }.into()
}

/// Whether another file begins where the part's tensors end.
fn is_joined(part: &Gguf) -> bool {
    let ends = part.tensors().iter().map(|tensor| tensor.offset + tensor.bytes);
    let end = ends.max().unwrap_or(0);
    let rest = part.parts.first().and_then(|part| part.file.bytes().get(end..)).unwrap_or_default();
    // Padding up to the largest alignment may lie between.
    let near = rest.len().min(caps::ALIGNMENT_MAX as usize + 4);
    end > 0 && rest[..near].windows(4).any(|window| window == b"GGUF")
}

/// The paths of all `count` parts, of which the one at `path` is one.
fn part_paths(path: &Path, count: u64) -> Result<Vec<PathBuf>, Error> {
    let name = path.file_name().and_then(|name| name.to_str());
    let stem = name.and_then(|name| split_name(name, count)).ok_or(SplitError::Name { count })?;
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
