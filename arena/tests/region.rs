//! The region while it is being filled.

use dllm_arena::{Lock, Options, Region, ReserveError, Span, available_bytes, count, prefault};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn plain() -> Options {
    Options { huge_pages: false, lock: Lock::Off }
}

fn span(offset: usize, bytes: usize) -> Span {
    Span { offset, bytes }
}

/// Page faults of this thread.
fn faults(work: impl FnOnce()) -> u64 {
    let before = count::thread_usage();
    work();
    count::thread_usage().since(&before).minor_faults
}

fn touch(pages: &mut [u8]) {
    pages.chunks_mut(4096).for_each(|page| page[17] += 1);
}

#[test]
fn a_region_is_zeroed_whole_pages() {
    let region = Region::reserve(10_000, &plain()).unwrap();
    assert_eq!(region.bytes(), 12_288);
    assert!(region.span::<u64>(span(0, 12_288)).iter().all(|&word| word == 0));
    assert!(!region.locked());
    assert!(region.warnings().is_empty());
}

#[test]
fn every_page_is_present_after_reserving() {
    for huge_pages in [false, true] {
        let bytes = 9 << 20;
        let options = Options { huge_pages, lock: Lock::Off };
        let mut region = Region::reserve(bytes, &options).unwrap();
        let whole = region.span_mut::<u8>(span(0, bytes));
        let faults = faults(|| touch(whole));
        // 2304 pages were touched; the measuring itself may fault in a page or two of code.
        assert!(faults < 8, "{faults} faults with huge pages {huge_pages}");
    }
}

#[test]
fn a_mapped_region_is_made_present_by_parts() {
    let bytes = 9 << 20;
    let mut region = Region::map(bytes, &plain()).unwrap();
    let whole = region.span_mut::<u8>(span(0, bytes));
    let (first, rest) = whole.split_at_mut(5 << 20);
    assert!(faults(|| touch(first)) >= 1280, "pages were there before anybody asked");
    std::thread::scope(|scope| {
        // Cut off the boundaries of pages: the ones that are shared are nobody's.
        for part in rest.chunks_mut((1 << 20) + 100) {
            scope.spawn(|| prefault(part));
        }
    });
    let late = faults(|| touch(rest));
    assert!((1..16).contains(&late), "{late} faults for 3 shared pages");
    prefault(first);
    prefault(&mut rest[..100]);
    prefault(&mut []);
    // What was written is still there.
    assert!(first.chunks(4096).chain(rest.chunks(4096)).all(|page| page[17] == 1));
}

#[test]
fn huge_pages_are_counted_or_their_lack_is_said() {
    let options = Options { huge_pages: true, lock: Lock::Off };
    let region = Region::reserve(8 << 20, &options).unwrap();
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    match setting.as_deref().map(|text| text.contains("[never]")) {
        Ok(false) => assert!(region.warnings().is_empty(), "{:?}", region.warnings()),
        Ok(true) => {
            assert!(region.warnings()[0].contains("no huge pages"), "{:?}", region.warnings());
        }
        // The kernel has none, or does not say.
        Err(_) => {}
    }
    // A machine whose memory is in pieces may have none to give.
    if let Some(huge) = region.huge_bytes() {
        assert!(huge <= region.bytes() && huge.is_multiple_of(2 << 20), "{huge}");
    }
    let small = Region::reserve(8 << 20, &plain()).unwrap();
    let always = setting.is_ok_and(|text| text.contains("[always]"));
    assert!(always || small.huge_bytes().is_none_or(|huge| huge == 0));
}

#[test]
fn huge_pages_start_on_their_boundary() {
    let options = Options { huge_pages: true, lock: Lock::Off };
    let mut region = Region::reserve(3 << 20, &options).unwrap();
    let bytes = region.bytes();
    let whole = region.span_mut::<u8>(span(0, bytes));
    assert_eq!(whole.as_ptr().addr() % (2 << 20), 0);
    whole[bytes - 1] = 1;
}

#[test]
fn too_much_is_refused_with_the_numbers() {
    assert!(matches!(Region::reserve(0, &plain()), Err(ReserveError::Empty)));
    for bytes in [usize::MAX, usize::MAX / 2] {
        let error = Region::reserve(bytes, &plain()).unwrap_err();
        let available = available_bytes().unwrap();
        let ReserveError::Memory { needed, .. } = error else { panic!("{error}") };
        assert_eq!(needed, bytes);
        assert!(available > 0 && error.to_string().contains("GiB available"), "{error}");
    }
}

#[test]
fn spans_are_typed_and_checked() {
    let mut region = Region::reserve(8192, &plain()).unwrap();
    region.span_mut::<u32>(span(64, 12)).copy_from_slice(&[1, 2, 3]);
    assert_eq!(region.span::<u8>(span(60, 20)), {
        let mut bytes = [0; 20];
        (bytes[4], bytes[8], bytes[12]) = (1, 2, 3);
        bytes
    });
    let spans = [span(8192, 4), span(8188, 8), span(usize::MAX - 1, 4), span(62, 4), span(64, 6)];
    for bad in spans {
        let taken = catch_unwind(AssertUnwindSafe(|| region.span_mut::<u32>(bad).len()));
        assert!(taken.is_err(), "{bad:?} was accepted");
    }
}

#[test]
fn parts_are_filled_by_several_threads() {
    let mut region = Region::reserve(8192, &plain()).unwrap();
    let spans = [span(4096, 100), span(64, 64), span(128, 10), span(0, 0), span(300, 4000 - 300)];
    let parts = region.split_mut(&spans);
    std::thread::scope(|scope| {
        for (at, part) in parts.into_iter().enumerate() {
            assert_eq!(part.len(), spans[at].bytes);
            scope.spawn(move || part.fill(at as u8 + 1));
        }
    });
    let mut expected = vec![0u8; 8192];
    for (at, span) in spans.iter().enumerate() {
        expected[span.offset..span.offset + span.bytes].fill(at as u8 + 1);
    }
    assert_eq!(region.span::<u8>(span(0, 8192)), expected);
}

#[test]
fn parts_that_meet_are_refused() {
    let mut region = Region::reserve(8192, &plain()).unwrap();
    for bad in [[span(0, 65), span(64, 1)], [span(8, 8), span(8, 8)], [span(0, 8), span(8190, 3)]] {
        let split = catch_unwind(AssertUnwindSafe(|| region.split_mut(&bad).len()));
        assert!(split.is_err(), "{bad:?} was accepted");
    }
    assert_eq!(region.split_mut(&[span(64, 1), span(0, 64)]).len(), 2);
}
