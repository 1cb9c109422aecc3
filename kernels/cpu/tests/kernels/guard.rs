//! Buffers that lie flush against pages which cannot be touched.

use std::ops::{Deref, DerefMut};

/// Which end of the buffer touches the guard page beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    Start,
    End,
}

/// A slice between two inaccessible pages. Where the platform has no such thing (an emulated CPU
/// without memory protection), an ordinary slice.
pub struct Guarded<T> {
    map: *mut u8,
    map_bytes: usize,
    data: *mut T,
    len: usize,
    /// Whether both pages are really inaccessible.
    pub protected: bool,
}

impl<T: Copy> Guarded<T> {
    /// A copy of `values` with the given end flush against a guard page.
    pub fn new(values: &[T], edge: Edge) -> Guarded<T> {
        // SAFETY: sysconf reads nothing of ours.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let size = size_of_val(values);
        let body = size.next_multiple_of(page);
        let map_bytes = body + 2 * page;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new private mapping, at an address of the system's choice.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), map_bytes, access, kind, -1, 0) };
        assert!(map != libc::MAP_FAILED, "no memory for a guarded buffer");
        let map = map.cast::<u8>();
        let before = if edge == Edge::Start { page } else { page + body - size };
        // SAFETY: the first and the last page of the mapping, which is page + body + page long.
        let protected = unsafe {
            libc::mprotect(map.cast(), page, libc::PROT_NONE) == 0
                && libc::mprotect(map.add(page + body).cast(), page, libc::PROT_NONE) == 0
        };
        // SAFETY: before + size is at most page + body.
        let data = unsafe { map.add(before) }.cast::<T>();
        assert!(data.is_aligned(), "a length that is not a multiple of the alignment");
        // SAFETY: data has room for as many elements, is aligned, and overlaps nothing.
        unsafe { data.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        Guarded { map, map_bytes, data, len: values.len(), protected }
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `new`; `self` owned it, and no slice outlives `self`.
        unsafe { libc::munmap(self.map.cast(), self.map_bytes) };
    }
}

impl<T> Deref for Guarded<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialized elements, owned by `self`.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T> DerefMut for Guarded<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `len` initialized elements, owned by `self`, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

/// Whether the system can read the byte at `address`, found out without a fault: a write to a
/// pipe from an address that cannot be read fails.
fn is_readable(address: *const u8) -> bool {
    let mut ends = [0; 2];
    // SAFETY: pipe fills the array of two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0, "no pipe");
    // SAFETY: the system checks the address of a write and fails with EFAULT.
    let written = unsafe { libc::write(ends[1], address.cast(), 1) };
    for end in ends {
        // SAFETY: opened above, and used by nobody else.
        assert_eq!(unsafe { libc::close(end) }, 0, "close");
    }
    written == 1
}

#[test]
fn bytes_beside_a_guarded_buffer_cannot_be_read() {
    for n in [1, 5, 1024, 1025] {
        for edge in [Edge::Start, Edge::End] {
            let buffer = Guarded::new(&vec![1.0_f32; n], edge);
            if !buffer.protected {
                println!("no memory protection here: nothing tested");
                return;
            }
            let inside = buffer.as_ptr().cast::<u8>();
            let (first, after) = (inside, inside.wrapping_add(4 * n));
            assert!(is_readable(first) && is_readable(after.wrapping_sub(1)));
            let touching = if edge == Edge::Start { first.wrapping_sub(1) } else { after };
            assert!(!is_readable(touching), "{n} floats, {edge:?}");
        }
    }
}
