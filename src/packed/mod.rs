//! Packed weights kept in a folder, so that a later load copies them instead of packing anew.
//!
//! # What is kept
//!
//! One file a model: the weights as they lie in the arena, in the order of the plan, without the
//! rotary tables, whose length is the request's. So one file serves every canvas length and thread
//! count. Its name is a hash of the model's headers and length, whatever the model's path.
//!
//! ```text
//!  header (4096 bytes)  hash of each chunk (8 bytes each)  weights in chunks of 512 KiB
//! ```
//!
//! # When it is used
//!
//! - It was written for the same tensors in the same packed layout. The layout is told by a
//!   fingerprint: a panel of each type, packed and hashed, so that no version number can be
//!   forgotten.
//! - The model is the one that it was made from. That is believed where inode, length and both
//!   times of all its files are what they were, and otherwise where the hash of the whole content
//!   is, which takes about as long as a load; the new times are then noted in the header. Anything
//!   else is *stale*, and the file is made anew. Times that are seconds old are not relied on,
//!   since a file may change twice within a tick of its clock. The number of the device is left
//!   out: it may be another one after a boot.
//! - Header, table and every chunk have the hashes that were noted. They are taken of what has
//!   arrived in the arena. A chunk that is damaged makes the load start again with the model.
//!
//! The hashes find accidents, not forgers: whoever may write to the folder may change the weights.
//!
//! # How it is written
//!
//! Into a file `NAME.part`, which gets its name only when all of it is on the disk, by one process
//! at a time (a lock that ends with the process); another one that comes meanwhile goes on without.
//! Whatever fails is a warning, and the load goes on. A `.part` that a crash leaves is overwritten
//! by the next that writes, and nothing else is ever removed: files of models that are gone may be
//! deleted at any time.
//!
//! | file | what it holds |
//! |---|---|
//! | `layout` | where each weight lies in the file, and the fingerprint |
//! | `header` | the first 4096 bytes |
//! | `identity` | which model, and whether its files have changed |
//! | `read`, `write` | the two directions |

mod header;
mod identity;
mod layout;
mod read;
mod refusal;
mod write;

pub use refusal::Refusal;

use crate::gguf::Gguf;
use crate::model::{Fault, Model};
use crate::plan::Plan;
use crate::repack::{self, Table, Tensors, Threads};
use dllm_arena::Region;
use header::Header;
use identity::Identity;
use layout::Layout;
use read::PackedFile;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// A folder that cannot be used.
#[derive(Debug)]
pub struct FolderFault {
    /// Where it is.
    pub path: PathBuf,
    /// What the system said.
    pub cause: io::Error,
}

impl fmt::Display for FolderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FolderFault { path, cause } = self;
        write!(f, "cannot keep packed files in `{}`: {cause}; give a folder", path.display())
    }
}

impl std::error::Error for FolderFault {}

/// A folder of packed files.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// How a load with a folder went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the weights came from a packed file.
    pub is_from_packed: bool,
    /// What was done and why, for those who ask.
    pub notes: Vec<String>,
    /// What failed without preventing the load.
    pub warnings: Vec<String>,
}

/// The model that is being loaded.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// Its file.
    pub gguf: &'a Gguf,
    /// What the file holds.
    pub model: &'a Model,
    /// Where everything goes.
    pub plan: &'a Plan,
    /// Who does the work.
    pub threads: &'a Threads<'a>,
}

impl Folder {
    /// The folder at `path`, which is made where there is none.
    ///
    /// # Errors
    /// It is no folder and cannot be made one. A folder that cannot be written to is fine: what it
    /// holds can be used.
    pub fn open(path: &Path) -> Result<Folder, FolderFault> {
        match fs::create_dir_all(path) {
            Ok(()) => Ok(Folder { path: path.to_owned() }),
            Err(_) if path.is_dir() => Ok(Folder { path: path.to_owned() }),
            Err(cause) => Err(FolderFault { path: path.to_owned(), cause }),
        }
    }

    /// Where the packed file of a model is kept.
    pub fn path_of(&self, gguf: &Gguf, model: &Model) -> PathBuf {
        let (arch, key) = (model.config.architecture.name(), identity::key(gguf));
        self.path.join(format!("{arch}-{key:032x}.dllm-packed"))
    }

    /// Fills the read-only part of `region` from the packed file, or else from the model, and then
    /// keeps it; makes the rest present. `progress` is called with the bytes dealt with so far and
    /// in all.
    ///
    /// # Errors
    /// As [`repack::fill`].
    pub fn fill(
        &self,
        source: Source<'_>,
        region: &mut Region,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Outcome, Fault> {
        let layout = Layout::new(source.plan);
        let mut load = Load {
            source,
            path: self.path_of(source.gguf, source.model),
            layout: &layout,
            content: None,
            outcome: Outcome::default(),
        };
        let identity = match Identity::of(source.gguf) {
            Ok(identity) => identity,
            Err(cause) => {
                load.warn(&format!("not kept: the model's file gives no times ({cause})"));
                load.fill_from_model(region, progress)?;
                return Ok(load.outcome);
            }
        };
        if !load.fill_from_packed(&identity, region, progress)? {
            load.fill_from_model_and_keep(&identity, region, progress)?;
        }
        Ok(load.outcome)
    }
}

/// A load under way.
struct Load<'a> {
    source: Source<'a>,
    path: PathBuf,
    layout: &'a Layout,
    /// The hash of the model's whole content, once it had to be taken.
    content: Option<String>,
    outcome: Outcome,
}

impl Load<'_> {
    fn note(&mut self, what: &str) {
        self.outcome.notes.push(format!("packed file `{}` {what}", self.path.display()));
    }

    fn warn(&mut self, what: &str) {
        self.outcome.warnings.push(format!("packed file `{}` {what}", self.path.display()));
    }

    fn refuse(&mut self, refusal: &Refusal) {
        let what = format!("is not used: {refusal}");
        if refusal.is_expected() { self.note(&what) } else { self.warn(&what) }
    }

    /// Whether the weights could be had from the packed file.
    fn fill_from_packed(
        &mut self,
        identity: &Identity,
        region: &mut Region,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<bool, Fault> {
        let packed = match PackedFile::open(&self.path, self.layout) {
            Ok(Some(packed)) => packed,
            Ok(None) => return Ok(false),
            Err(refusal) => {
                self.refuse(&refusal);
                return Ok(false);
            }
        };
        let header = packed.header().clone();
        let is_unchanged = identity.stamp() != 0 && identity.stamp() == header.stamp;
        if !is_unchanged && header.content != self.hash() {
            self.refuse(&Refusal::Stale);
            return Ok(false);
        }
        let Source { gguf, model, plan, threads } = self.source;
        let table = Table::new(gguf, model)?;
        let total_bytes = region.bytes();
        let progress = &mut |done| progress(done, total_bytes);
        if let Err(refusal) = repack::fill_from(&packed, &table, plan, region, threads, progress) {
            self.refuse(&refusal);
            return Ok(false);
        }
        self.outcome.is_from_packed = true;
        self.note("was loaded");
        // Its content was read in full without a change, so these times are its times.
        if !is_unchanged && identity.stamp() != 0 && identity.is_still_of(gguf) {
            let header = Header { stamp: identity.stamp(), ..header };
            if write::put_header(&self.path, &header).is_ok() {
                self.note("now has the times of the model's file, whose content is the same");
            }
        }
        Ok(true)
    }

    fn fill_from_model(
        &mut self,
        region: &mut Region,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<(), Fault> {
        let Source { gguf, model, plan, threads } = self.source;
        let total_bytes = region.bytes();
        repack::fill(gguf, model, plan, region, threads, &mut |done| progress(done, total_bytes))
    }

    fn fill_from_model_and_keep(
        &mut self,
        identity: &Identity,
        region: &mut Region,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<(), Fault> {
        // Where times cannot tell of a change between packing and hashing, two hashes do.
        let before = if identity.is_settled() { None } else { Some(self.hash()) };
        let (arena_bytes, kept_bytes) = (region.bytes(), self.layout.file_bytes() as usize);
        let total_bytes = arena_bytes + kept_bytes;
        self.fill_from_model(region, &mut |done, _| progress(done, total_bytes))?;
        if before.is_some() {
            self.content = None;
        }
        let content = self.hash();
        let is_same = before.is_none_or(|before| before == content);
        if !is_same || !identity.is_still_of(self.source.gguf) {
            self.warn("was not written: the model's file changed while it was loaded");
            return Ok(());
        }
        let contents = write::Contents {
            layout: self.layout,
            plan: self.source.plan,
            region,
            content: &content,
            stamp: identity.stamp(),
        };
        let progress = &mut |done| progress(arena_bytes + done, total_bytes);
        match write::write(&self.path, &contents, self.source.threads, progress) {
            Ok(()) => self.note("was written"),
            Err(write::Fault::Busy) => self.note("is being written by another process"),
            Err(fault) => self.warn(&format!("was not written: {fault}")),
        }
        Ok(())
    }

    /// The hash of the model's whole content.
    fn hash(&mut self) -> String {
        let Source { gguf, threads, .. } = self.source;
        self.content.get_or_insert_with(|| Tensors::new(gguf).hash(threads, &mut |_| ())).clone()
    }
}
