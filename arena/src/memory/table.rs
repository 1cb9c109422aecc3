//! Byte strings that live as long as the model: tokens, merges, names. Copied at load, then sealed.

use bumpalo::Bump;
use std::fmt;
use std::ptr::NonNull;

/// Why a [`ByteTable`] takes no more entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableFull {
    /// Loading has ended.
    #[error("the table is sealed: loading has ended")]
    Sealed,
    /// The entries together are too long, or more than a `u32` counts.
    #[error("the table's entries take more than {limit_bytes} bytes")]
    Limit {
        /// What the table was made for.
        limit_bytes: usize,
    },
}

/// A numbered list of byte strings in memory of their own.
///
/// A bump allocator holds them, which would grow silently whenever asked: it is held to a limit
/// while loading, and to what it has once sealed.
pub struct ByteTable {
    /// Owns the bytes that `entries` points to: never reset, never handed out.
    bump: Bump,
    entries: Vec<NonNull<[u8]>>,
    limit_bytes: usize,
    is_sealed: bool,
}

// SAFETY: the pointers are into heap blocks that `bump` owns and that stay where they are when the
// table moves to another thread; the bytes are plain data.
unsafe impl Send for ByteTable {}
// SAFETY: no method that takes `&self` allocates from `bump`, whose cells are the only thing here
// that a shared reference could change; all others only read.
unsafe impl Sync for ByteTable {}

impl ByteTable {
    /// An empty table that takes at most `limit_bytes` from the allocator, in blocks that double.
    /// At a block's end up to half a KiB, or the longest entry, stays unused.
    pub fn new(limit_bytes: usize) -> ByteTable {
        let bump = Bump::new();
        bump.set_allocation_limit(Some(limit_bytes));
        ByteTable { bump, entries: Vec::new(), limit_bytes, is_sealed: false }
    }

    /// Copies `bytes` behind the others and returns their index: 0 for the first.
    ///
    /// # Errors
    /// A sealed table, or one whose limit this would exceed.
    pub fn push(&mut self, bytes: &[u8]) -> Result<u32, TableFull> {
        if self.is_sealed {
            return Err(TableFull::Sealed);
        }
        let full = TableFull::Limit { limit_bytes: self.limit_bytes };
        let index = u32::try_from(self.entries.len()).map_err(|_| full)?;
        let copy = self.bump.try_alloc_slice_copy(bytes).map_err(|_| full)?;
        self.entries.push(NonNull::from(copy));
        Ok(index)
    }

    /// Ends loading: every further [`ByteTable::push`] is refused, so nothing grows any more.
    pub fn seal(&mut self) {
        self.is_sealed = true;
        self.bump.set_allocation_limit(Some(self.bump.allocated_bytes()));
        self.entries.shrink_to_fit();
    }

    /// The bytes of entry `index`.
    ///
    /// # Panics
    /// Where there is no such entry.
    pub fn get(&self, index: u32) -> &[u8] {
        // SAFETY: `push` made the pointer from a slice that it had copied into `bump`, which
        // neither moves, changes nor frees it as long as `self`, borrowed here, lives.
        unsafe { self.entries[index as usize].as_ref() }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        // SAFETY: each pointer is to a slice that `push` copied into `bump`, which neither moves,
        // changes nor frees it as long as `self`, borrowed by the iterator, lives.
        self.entries.iter().map(|entry| unsafe { entry.as_ref() })
    }

    /// Bytes taken from the allocator for the entries.
    pub fn bytes(&self) -> usize {
        self.bump.allocated_bytes()
    }
}

impl fmt::Debug for ByteTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (entries, bytes) = (self.len(), self.bytes());
        write!(f, "ByteTable({entries} entries, {bytes} bytes, sealed: {})", self.is_sealed)
    }
}
