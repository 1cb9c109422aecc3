//! A region once it is full: pointers into it, its fixed part, and an item's part of a slot.

use crate::memory::access::Partition;
use crate::memory::layout::Span;
use crate::memory::region::{Region, assert_can_lie, check_span};
use bytemuck::Pod;
use memmap2::MmapMut;
use std::marker::PhantomData;

/// The mapping, of which only pointers are used from now on.
pub(crate) struct Memory {
    /// Start of the region inside `map`, aligned to a page.
    start: *mut u8,
    bytes: usize,
    fixed_bytes: usize,
    /// Owns the memory; never turned into a slice again.
    _map: MmapMut,
}

// SAFETY: the pointer is into the mapping that the same struct owns, and plain memory may be used
// from any thread.
unsafe impl Send for Memory {}
// SAFETY: `&Memory` gives out references to the fixed part, which nothing writes after sealing, and
// raw pointers, of which every use is an unsafe block or function of its own.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn new(region: Region, fixed_bytes: usize) -> Memory {
        let Region { mut map, start: offset, bytes, .. } = region;
        assert!(offset + bytes <= map.len() && fixed_bytes <= bytes);
        let start = map[offset..].as_mut_ptr();
        Memory { start, bytes, fixed_bytes, _map: map }
    }

    /// Where the span's `T`s lie. Panics where it is no whole number of them, or leaves the region.
    pub(crate) fn part<T: Pod>(&self, span: Span) -> *mut [T] {
        check_span::<T>(span, self.bytes);
        // SAFETY: the span lies inside the region, as just checked, and that in the mapping.
        let first = unsafe { self.start.add(span.offset) };
        std::ptr::slice_from_raw_parts_mut(first.cast(), span.bytes / size_of::<T>())
    }

    /// What the span of the fixed part holds. Panics as `part`, and where it leaves that part.
    pub(crate) fn fixed<T: Pod>(&self, span: Span) -> &[T] {
        check_span::<T>(span, self.fixed_bytes);
        // SAFETY: the pointer is valid and aligned, any bytes are a `T`, and since sealing
        // nothing writes to the fixed part: slots start behind it, as sealing checked.
        unsafe { &*self.part(span) }
    }

    /// Everything behind the fixed part, from the next multiple of four.
    pub(crate) fn beyond_fixed(&self) -> Span {
        let offset = self.fixed_bytes.next_multiple_of(4).min(self.bytes);
        Span { offset, bytes: (self.bytes - offset) / 4 * 4 }
    }
}

/// An item's part of a slot: equally long pieces, an equal pitch apart.
pub struct View<'i, T> {
    /// The first piece.
    first: *mut T,
    /// `T`s of a piece.
    length: usize,
    /// Bytes from one piece to the next.
    pitch: usize,
    pieces: usize,
    owner: PhantomData<&'i mut [T]>,
}

impl<'i, T: Pod> View<'i, T> {
    /// What item `local` (counted from the partition's first) has of slot number `slot`, which
    /// begins at `first`.
    ///
    /// # Panics
    /// Where the pieces are no whole numbers of aligned `T`s.
    ///
    /// # Safety
    /// - `first` is aligned to `ALIGN` and valid for as many bytes as the partition was accepted
    ///   for, as long as `'i`
    /// - `local` is below the partition's items
    /// - nothing else reads or writes this item's part during `'i`
    pub(crate) unsafe fn new(
        first: *mut u8,
        partition: &Partition,
        local: usize,
        slot: usize,
    ) -> View<'i, T> {
        const { assert_can_lie::<T>() };
        let Partition { chunk, pitch, pieces, .. } = *partition;
        let base = partition.base(local);
        let starts = if pieces > 1 { [base, pitch] } else { [base, 0] };
        assert!(
            starts.iter().all(|start| start.is_multiple_of(align_of::<T>()))
                && chunk.is_multiple_of(size_of::<T>()),
            "slot {slot}: a piece at {base} of {partition:?} is no whole number of aligned {}",
            std::any::type_name::<T>()
        );
        // SAFETY: the partition was accepted for this slot, so the piece lies inside it.
        let first = unsafe { first.add(base) }.cast();
        View { first, length: chunk / size_of::<T>(), pitch, pieces, owner: PhantomData }
    }

    /// How many pieces there are.
    #[inline]
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Piece `at`.
    ///
    /// # Panics
    /// Where there is no such piece.
    #[inline]
    pub fn piece(&mut self, at: usize) -> &mut [T] {
        assert!(at < self.pieces, "piece {at}, but there are {}", self.pieces);
        // SAFETY: the piece exists, and the view is borrowed exclusively.
        unsafe { self.piece_at(at) }
    }

    /// All pieces, each once.
    #[inline]
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut [T]> {
        // SAFETY: each piece comes up once, pieces share no byte, and the view is borrowed
        // exclusively.
        (0..self.pieces).map(|at| unsafe { self.piece_at(at) })
    }

    /// The one piece of a view that has one, for as long as the item lives.
    ///
    /// # Panics
    /// Where there are several.
    #[inline]
    pub fn into_only(self) -> &'i mut [T] {
        assert!(self.pieces == 1, "a view of {} pieces is no single one", self.pieces);
        // SAFETY: the piece exists, and the view is gone.
        unsafe { self.piece_at(0) }
    }

    /// # Safety
    /// - `at < self.pieces`
    /// - the caller holds the view exclusively, or for good, and has no reference to this piece
    #[inline]
    unsafe fn piece_at<'v>(&self, at: usize) -> &'v mut [T] {
        debug_assert!(at < self.pieces);
        // SAFETY: the piece lies inside the slot as sealing checked, is aligned as `new` checked,
        // any bytes are a `T`, and the caller has this item's part and no reference to this piece.
        unsafe {
            let first = self.first.byte_add(at * self.pitch);
            debug_assert!(first.is_aligned());
            std::slice::from_raw_parts_mut(first, self.length)
        }
    }
}
