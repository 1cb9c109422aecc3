//! Sizes and live ranges in, offsets out. Pure: the same requests give the same layout.

use std::ops::Range;

/// Every offset is a multiple of this: one cache line, and the widest vector register.
pub const ALIGN: usize = 64;

/// A piece of memory: `bytes` from `offset`, both in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte, counted from the start of the region.
    pub offset: usize,
    /// Length in bytes.
    pub bytes: usize,
}

impl Span {
    /// One past the last byte; `None` where that overflows.
    pub fn end(&self) -> Option<usize> {
        self.offset.checked_add(self.bytes)
    }

    /// Whether the two share a byte. A span that overflows reaches to the end of memory.
    pub fn overlaps(&self, other: &Span) -> bool {
        let end = |span: &Span| span.end().unwrap_or(usize::MAX);
        let both_hold_bytes = self.bytes > 0 && other.bytes > 0;
        both_hold_bytes && self.offset < end(other) && other.offset < end(self)
    }
}

/// Memory that somebody needs during some phases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Length in bytes.
    pub bytes: usize,
    /// The phases during which its contents matter, half-open. An empty range conflicts with none.
    pub live: Range<usize>,
}

/// Where the requests lie, in their order, and how much memory that takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// One span a request, of exactly the bytes asked for.
    pub spans: Vec<Span>,
    /// Bytes of the whole, a multiple of [`ALIGN`].
    pub bytes: usize,
}

fn align_up(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(ALIGN)
}

/// Places the requests so that two which are live in a common phase share no byte.
///
/// Greedy: the largest first (the earlier request first among equals), each at the lowest aligned
/// offset that fits. The total is at most the sum of the rounded sizes and at least the largest
/// sum that is live at once. `None` where an offset would overflow `usize`.
pub fn place(requests: &[Request]) -> Option<Layout> {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(requests[at].bytes), at));

    let mut layout = Layout { spans: vec![Span::default(); requests.len()], bytes: 0 };
    let mut placed: Vec<usize> = Vec::with_capacity(requests.len());
    for at in order {
        let request = &requests[at];
        let rounded_bytes = align_up(request.bytes)?;
        let mut taken: Vec<Span> = placed
            .iter()
            .filter(|&&other| {
                let (a, b) = (&requests[other].live, &request.live);
                a.start.max(b.start) < a.end.min(b.end)
            })
            .map(|&other| layout.spans[other])
            .collect();
        let offset = lowest_gap(&mut taken, rounded_bytes)?;
        layout.spans[at] = Span { offset, bytes: request.bytes };
        layout.bytes = layout.bytes.max(offset.checked_add(rounded_bytes)?);
        placed.push(at);
    }
    Some(layout)
}

/// The lowest aligned offset at which `bytes` fit beside the spans that are taken.
fn lowest_gap(taken: &mut [Span], bytes: usize) -> Option<usize> {
    taken.sort_by_key(|span| span.offset);
    let mut offset: usize = 0;
    for span in taken.iter() {
        if offset + bytes <= span.offset {
            break;
        }
        offset = offset.max(align_up(span.end()?)?);
        offset.checked_add(bytes)?;
    }
    Some(offset)
}
