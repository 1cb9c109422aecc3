//! Names that live as long as the model: interned at load, sealed afterwards.

use bumpalo::Bump;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::ptr::NonNull;

/// A handle to an interned name: as cheap to copy as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(u32);

/// No room for another name, or the names are sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaFull {
    /// The most bytes that names may take.
    pub limit: usize,
    /// Whether loading has ended.
    pub sealed: bool,
}

impl fmt::Display for MetaFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sealed {
            true => f.write_str("names are sealed: loading has ended"),
            false => write!(f, "the names of this file take more than {} bytes", self.limit),
        }
    }
}

impl std::error::Error for MetaFull {}

/// The names of one model.
///
/// They lie in a bump allocator, which would grow silently whenever asked; so it is held to a
/// limit while loading and to what it has once sealed.
pub struct Meta {
    /// Holds the bytes that `names` points to. Never reset while `self` lives.
    bump: Bump,
    names: Vec<NonNull<str>>,
    /// Hash to name while loading, empty once sealed. Where two names collide, the later one is
    /// under the next free hash.
    index: HashMap<u64, Name>,
    hasher: RandomState,
    limit: usize,
    sealed: bool,
}

// SAFETY: the pointers in `names` are to bytes that `bump` owns, so they move with it.
unsafe impl Send for Meta {}
// SAFETY: nothing that takes `&self` changes the bump allocator or hands it out, so reading from
// several threads at once only reads.
unsafe impl Sync for Meta {}

impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meta")
            .field("names", &self.names.len())
            .field("bytes", &self.bytes())
            .field("sealed", &self.sealed)
            .finish()
    }
}

impl Meta {
    /// No names yet, and room for `limit` bytes of them (as the allocator counts: in chunks).
    pub fn new(limit: usize) -> Meta {
        let bump = Bump::new();
        bump.set_allocation_limit(Some(limit));
        Meta {
            bump,
            names: Vec::new(),
            index: HashMap::new(),
            hasher: RandomState::new(),
            limit,
            sealed: false,
        }
    }

    /// The handle of `text`; the same for the same text.
    ///
    /// # Errors
    /// Sealed, or over the limit.
    pub fn intern(&mut self, text: &str) -> Result<Name, MetaFull> {
        let full = MetaFull { limit: self.limit, sealed: self.sealed };
        if self.sealed {
            return Err(full);
        }
        let mut hash = self.hasher.hash_one(text);
        while let Some(&name) = self.index.get(&hash) {
            if self.get(name) == text {
                return Ok(name);
            }
            hash = hash.wrapping_add(1);
        }
        let name = Name(u32::try_from(self.names.len()).map_err(|_| full)?);
        let copy = self.bump.try_alloc_str(text).map_err(|_| full)?;
        self.names.push(NonNull::from(copy));
        self.index.insert(hash, name);
        Ok(name)
    }

    /// The text of a name.
    ///
    /// # Panics
    /// Where the name is another `Meta`'s and this one has fewer.
    pub fn get(&self, name: Name) -> &str {
        let text = self.names[name.0 as usize];
        // SAFETY: the bytes were copied from a `str` into `bump`, which never moves or changes
        // what it holds and lives as long as `self`.
        unsafe { text.as_ref() }
    }

    /// Bytes that the allocator has taken for names.
    pub fn bytes(&self) -> usize {
        self.bump.allocated_bytes()
    }

    /// Ends loading: no name can be added any more, and the allocator can't grow.
    pub fn seal(&mut self) {
        self.sealed = true;
        self.bump.set_allocation_limit(Some(self.bump.allocated_bytes()));
        self.index = HashMap::new();
        self.names.shrink_to_fit();
    }
}
