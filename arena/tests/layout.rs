//! Layouts: requests that are live together share no byte, and little is wasted.

use dllm_arena::{ALIGN, Layout, Request, Span, place};
use proptest::prelude::*;
use std::ops::Range;

fn span(offset: usize, bytes: usize) -> Span {
    Span { offset, bytes }
}

fn rounded(bytes: usize) -> usize {
    bytes.div_ceil(ALIGN) * ALIGN
}

fn request() -> impl Strategy<Value = Request> {
    let bytes = prop_oneof![Just(0), 1usize..200, (1usize..40).prop_map(|n| n * 4096)];
    (bytes, 0usize..12, 0usize..6)
        .prop_map(|(bytes, start, length)| Request { bytes, live: start..start + length })
}

proptest! {
    #[test]
    fn live_together_means_apart(requests in prop::collection::vec(request(), 0..40)) {
        let layout = place(&requests).unwrap();
        prop_assert_eq!(&layout, &place(&requests.clone()).unwrap());
        prop_assert_eq!(layout.spans.len(), requests.len());
        for (request, span) in requests.iter().zip(&layout.spans) {
            prop_assert_eq!(span.bytes, request.bytes);
            prop_assert_eq!(span.offset % ALIGN, 0);
            prop_assert!(span.offset + span.bytes <= layout.bytes);
        }
        // The oracle looks phase by phase, and never at ranges.
        for phase in 0..20 {
            let mut live: Vec<Span> = requests
                .iter()
                .zip(&layout.spans)
                .filter(|(request, _)| request.live.contains(&phase) && request.bytes > 0)
                .map(|(_, span)| *span)
                .collect();
            live.sort_by_key(|span| span.offset);
            for pair in live.windows(2) {
                prop_assert!(pair[0].offset + pair[0].bytes <= pair[1].offset, "{pair:?}");
            }
        }
        // The total lies between its bounds.
        let total = layout.bytes;
        let sum: usize = requests.iter().map(|request| rounded(request.bytes)).sum();
        let live_at = |phase: usize| -> usize {
            let live = requests.iter().filter(|request| request.live.contains(&phase));
            live.map(|request| rounded(request.bytes)).sum()
        };
        let lower = (0..20).map(live_at).max().unwrap_or(0);
        prop_assert!(lower <= total && total <= sum, "{lower} <= {total} <= {sum}");
    }
}

#[test]
fn memory_is_used_again_once_its_owner_is_dead() {
    let check = |requests: [(usize, Range<usize>); 4], offsets: [usize; 4], bytes| {
        let spans = std::array::from_fn::<_, 4, _>(|at| span(offsets[at], requests[at].0));
        let requests = requests.map(|(bytes, live)| Request { bytes, live });
        assert_eq!(place(&requests), Some(Layout { spans: spans.to_vec(), bytes }));
    };
    check([(100, 0..2), (1000, 1..3), (70, 2..4), (10, 0..4)], [1024, 0, 1024, 1152], 1216);
    // A gap: the second is dead by the time the last one comes, those around it are not.
    check([(192, 0..9), (128, 0..1), (128, 0..9), (64, 5..9)], [0, 192, 320, 192], 448);
}

#[test]
fn overflow_is_none() {
    let request = |bytes| Request { bytes, live: 0..1 };
    assert_eq!(place(&[request(usize::MAX)]), None);
    assert_eq!(place(&[request(usize::MAX - 200), request(1 << 20)]), None);
    let half = usize::MAX / 2;
    assert_eq!(place(&[request(half), request(half), request(half)]), None);
    assert!(place(&[request(usize::MAX - 63)]).is_some());
    assert_eq!(place(&[]), Some(Layout::default()));
}

#[test]
fn spans_overlap_only_where_they_share_a_byte() {
    assert!(span(0, 10).overlaps(&span(9, 1)) && span(9, 1).overlaps(&span(0, 10)));
    assert!(!span(0, 10).overlaps(&span(10, 1)) && !span(10, 1).overlaps(&span(0, 10)));
    assert!(!span(0, 10).overlaps(&span(5, 0)) && !span(5, 0).overlaps(&span(0, 10)));
    assert!(span(usize::MAX - 1, 9).overlaps(&span(usize::MAX - 1, 1)));
}
