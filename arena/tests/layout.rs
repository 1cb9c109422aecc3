//! Layouts: requests that are live together share no byte, and little is wasted.

use dllm_arena::{ALIGN, Layout, Request, Span, place};
use proptest::prelude::*;

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
    }

    #[test]
    fn total_lies_between_the_bounds(requests in prop::collection::vec(request(), 0..40)) {
        let total = place(&requests).unwrap().bytes;
        let sum: usize = requests.iter().map(|request| rounded(request.bytes)).sum();
        let live_at = |phase: usize| -> usize {
            let live = requests.iter().filter(|request| request.live.contains(&phase));
            live.map(|request| rounded(request.bytes)).sum()
        };
        let lower = (0..20).map(live_at).max().unwrap_or(0);
        prop_assert!(lower <= total && total <= sum, "{lower} <= {total} <= {sum}");
    }

    #[test]
    fn the_same_requests_give_the_same_layout(requests in prop::collection::vec(request(), 0..40)) {
        prop_assert_eq!(place(&requests), place(&requests.clone()));
    }
}

#[test]
fn memory_is_used_again_once_its_owner_is_dead() {
    let requests = [
        Request { bytes: 100, live: 0..2 },
        Request { bytes: 1000, live: 1..3 },
        Request { bytes: 70, live: 2..4 },
        Request { bytes: 10, live: 0..4 },
    ];
    let layout = place(&requests).unwrap();
    let expected = [(1024, 100), (0, 1000), (1024, 70), (1152, 10)];
    let spans = expected.map(|(offset, bytes)| Span { offset, bytes }).to_vec();
    assert_eq!(layout, Layout { spans, bytes: 1216 });
}

#[test]
fn a_gap_between_two_is_filled() {
    // The middle one is dead by the time the small one comes; the outer two are not.
    let requests = [
        Request { bytes: 3 * 64, live: 0..9 },
        Request { bytes: 2 * 64, live: 0..1 },
        Request { bytes: 2 * 64, live: 0..9 },
        Request { bytes: 64, live: 5..9 },
    ];
    let layout = place(&requests).unwrap();
    let offsets: Vec<usize> = layout.spans.iter().map(|span| span.offset).collect();
    assert_eq!((offsets, layout.bytes), (vec![0, 192, 320, 192], 448));
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
    let span = |offset, bytes| Span { offset, bytes };
    assert!(span(0, 10).overlaps(&span(9, 1)) && span(9, 1).overlaps(&span(0, 10)));
    assert!(!span(0, 10).overlaps(&span(10, 1)) && !span(10, 1).overlaps(&span(0, 10)));
    assert!(!span(0, 10).overlaps(&span(5, 0)) && !span(5, 0).overlaps(&span(0, 10)));
    assert!(span(usize::MAX - 1, 9).overlaps(&span(usize::MAX - 1, 1)));
}
