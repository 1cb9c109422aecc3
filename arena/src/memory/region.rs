//! The one anonymous mapping that everything a step touches lies in, while it is being filled.
//!
//! Every page is made present before the region is used, so that no later access can fault, and
//! locked where that is permitted, so that the kernel can't take cold ones back. Where several
//! threads fill a region they prefault it too ([`Region::map`]): it is most of the time of a load.

use crate::memory::layout::{ALIGN, Span};
use crate::os::available::{Bytes, available_bytes};
use crate::os::pages::{self, HUGE_PAGE_BYTES, Lock, PAGE_BYTES, prefault};
use bytemuck::Pod;
use memmap2::{MmapMut, MmapOptions};

/// How the region is to be reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Ask for transparent huge pages: fewer TLB misses, slower to hand back.
    pub huge_pages: bool,
    /// Whether to lock.
    pub lock: Lock,
}

/// Why a region could not be reserved.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// A region of no bytes.
    #[error("a region of zero bytes was asked for")]
    Empty,
    /// More than there is; both in bytes.
    #[error(
        "needs {}, {} available (of the machine or its cgroup)",
        Bytes(*needed),
        Bytes(*available)
    )]
    Memory {
        /// What was asked for.
        needed: usize,
        /// What the machine, or the cgroup, has left.
        available: usize,
    },
    /// The kernel refused the mapping.
    #[error("the kernel refused a mapping of {}: {cause}", Bytes(*needed))]
    Map {
        /// What was asked for, in bytes.
        needed: usize,
        /// What it said.
        #[source]
        cause: std::io::Error,
    },
}

/// A region that is being filled: one owner, ordinary borrowing.
#[derive(Debug)]
pub struct Region {
    pub(super) map: MmapMut,
    /// Where the region starts in the mapping (0, or the first huge page boundary).
    pub(super) start: usize,
    pub(super) bytes: usize,
    huge_pages: bool,
    locked: bool,
    warnings: Vec<String>,
}

impl Region {
    /// Reserves `bytes` (rounded up to whole pages), zeroed, every page present.
    ///
    /// # Errors
    /// No bytes, more than [`available_bytes`], or a mapping that the kernel refuses. Huge pages or
    /// a lock that it refuses are no error: see [`Region::warnings`].
    pub fn reserve(bytes: usize, options: &Options) -> Result<Region, ReserveError> {
        let mut region = Region::map(bytes, options)?;
        prefault(region.all_mut());
        Ok(region)
    }

    /// As [`Region::reserve`], but no page is present yet: all are to be made so by [`prefault`] or
    /// by writing.
    ///
    /// # Errors
    /// As [`Region::reserve`].
    pub fn map(bytes: usize, options: &Options) -> Result<Region, ReserveError> {
        if bytes == 0 {
            return Err(ReserveError::Empty);
        }
        // The model checker makes a region for each interleaving: no time to ask every time.
        let known = if cfg!(loom) { None } else { available_bytes() };
        let available = known.unwrap_or(usize::MAX);
        if bytes > available {
            return Err(ReserveError::Memory { needed: bytes, available });
        }
        let too_long = || ReserveError::Memory { needed: bytes, available };
        let bytes = bytes.checked_next_multiple_of(PAGE_BYTES).ok_or_else(too_long)?;
        let Options { huge_pages, lock } = *options;
        let slack = if huge_pages { HUGE_PAGE_BYTES } else { 0 };
        let mapped_bytes = bytes.checked_add(slack).ok_or_else(too_long)?;
        let map = MmapOptions::new().len(mapped_bytes).map_anon();
        let map = map.map_err(|cause| ReserveError::Map { needed: bytes, cause })?;
        let start = if huge_pages { map.as_ptr().align_offset(HUGE_PAGE_BYTES) } else { 0 };
        let mut region =
            Region { map, start, bytes, huge_pages, locked: false, warnings: Vec::new() };
        if huge_pages {
            region.warnings.extend(pages::advise_huge(&region.map, start..start + bytes));
        }
        if lock != Lock::Off {
            let refused = pages::lock(region.all(), lock);
            region.locked = refused.is_none();
            region.warnings.extend(refused);
        }
        Ok(region)
    }

    /// What the system refused (huge pages, the lock), in sentences for the user.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether huge pages were asked for: the region is prefaulted in pieces of several
    /// [`HUGE_PAGE_BYTES`] then, since two threads that meet in a page both clear one for it.
    pub fn asks_for_huge_pages(&self) -> bool {
        self.huge_pages
    }

    /// Bytes that lie in huge pages now; `None` where the kernel does not say.
    pub fn huge_bytes(&self) -> Option<usize> {
        pages::huge_bytes(self.all()).map(|bytes| bytes.min(self.bytes))
    }

    /// Whether the pages are locked into memory.
    pub fn locked(&self) -> bool {
        self.locked
    }

    /// Length in bytes: what was asked for, rounded up to whole pages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The span's contents as `T`s.
    ///
    /// # Panics
    /// Where the span leaves the region, is not aligned for `T`, or is no whole number of `T`s.
    pub fn span<T: Pod>(&self, span: Span) -> &[T] {
        check_span::<T>(span, self.bytes);
        bytemuck::cast_slice(&self.all()[span.offset..span.offset + span.bytes])
    }

    /// The span's contents as `T`s, to be filled.
    ///
    /// # Panics
    /// As [`Region::span`].
    pub fn span_mut<T: Pod>(&mut self, span: Span) -> &mut [T] {
        check_span::<T>(span, self.bytes);
        bytemuck::cast_slice_mut(&mut self.all_mut()[span.offset..span.offset + span.bytes])
    }

    /// The spans' bytes, in the order given, to be filled by several threads at once.
    ///
    /// # Panics
    /// Where a span leaves the region or two of them share a byte.
    pub fn split_mut(&mut self, spans: &[Span]) -> Vec<&mut [u8]> {
        let mut order: Vec<usize> = (0..spans.len()).collect();
        order.sort_by_key(|&at| (spans[at].offset, spans[at].bytes));
        let mut parts: Vec<(usize, &mut [u8])> = Vec::with_capacity(spans.len());
        let bytes = self.bytes;
        let mut rest = self.all_mut();
        let mut rest_offset = 0;
        for at in order {
            let span = spans[at];
            check_span::<u8>(span, bytes);
            if span.bytes == 0 {
                parts.push((at, &mut []));
                continue;
            }
            assert!(
                span.offset >= rest_offset,
                "span {at} ({span:?}) overlaps the one before it, which ends at {rest_offset}"
            );
            let (_, from_span) = rest.split_at_mut(span.offset - rest_offset);
            let (part, after) = from_span.split_at_mut(span.bytes);
            parts.push((at, part));
            rest = after;
            rest_offset = span.offset + span.bytes;
        }
        parts.sort_by_key(|&(at, _)| at);
        parts.into_iter().map(|(_, part)| part).collect()
    }

    fn all(&self) -> &[u8] {
        &self.map[self.start..self.start + self.bytes]
    }

    fn all_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.start + self.bytes]
    }
}

/// Refuses, when compiling, types that no slot or offset is aligned for, or that have no bytes.
pub(crate) const fn assert_can_lie<T>() {
    assert!(size_of::<T>() > 0, "a type without bytes lies nowhere");
    assert!(align_of::<T>() <= ALIGN, "no slot is aligned for this type");
}

/// Panics, naming the span, unless it lies in `bytes` and holds a whole number of aligned `T`s.
#[inline]
pub(crate) fn check_span<T: Pod>(span: Span, bytes: usize) {
    const { assert_can_lie::<T>() };
    let inside = span.end().is_some_and(|end| end <= bytes);
    assert!(inside, "{span:?} leaves the {bytes} bytes that it must lie in");
    assert!(
        span.offset.is_multiple_of(align_of::<T>()) && span.bytes.is_multiple_of(size_of::<T>()),
        "{span:?} is no whole number of aligned {}",
        std::any::type_name::<T>()
    );
}
