//! What a region may be sealed with: partitions against an oracle that marks every byte, and one
//! case for each fault of a table.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use dllm_arena::access::{ACCESS_MAX, PartitionError, WORKERS_MAX};
use dllm_arena::{Lock, Options, Partition, PhaseAccess, Region, SealError, Sealing, Span};
use proptest::prelude::*;
use std::collections::HashSet;

const REGION_BYTES: usize = 8192;

fn seal(sealing: Sealing) -> Result<(), SealError> {
    let options = Options { huge_pages: false, lock: Lock::Off };
    let region = Region::reserve(REGION_BYTES, &options).unwrap();
    region.seal::<u32>(sealing).map(|_| ())
}

fn slots() -> Vec<Span> {
    let span = |offset, bytes| Span { offset, bytes };
    vec![span(1024, 1000), span(2048, 1000), span(2048 + 960, 200), span(4096, 64)]
}

fn one_phase(access: PhaseAccess) -> Sealing {
    Sealing { fixed_bytes: 1000, slots: slots(), phases: vec![access], workers: 2 }
}

/// Whether a slot of 1000 bytes may be divided like this.
fn accepted(partition: Partition) -> Result<(), PartitionError> {
    let access = PhaseAccess { writes: vec![(0, partition)], ..PhaseAccess::default() };
    seal(one_phase(access)).map_err(|error| match error {
        SealError::Partition { phase: 0, slot: 0, error } => error,
        other => panic!("{other}"),
    })
}

/// Every byte that any item may write, or `None` where two meet or one leaves the slot.
fn bytes_by_marking(partition: &Partition) -> Option<HashSet<usize>> {
    let Partition { items, inner, outer_stride, chunk, pitch, pieces, by_column, .. } = *partition;
    let mut marked = HashSet::new();
    for item in 0..items {
        let groups = items.div_ceil(inner);
        let (group, column) = match by_column {
            true => (item % groups, item / groups),
            false => (item / inner, item % inner),
        };
        if column >= inner {
            return None;
        }
        for piece in 0..pieces {
            let start = group * outer_stride + column * chunk + piece * pitch;
            for byte in start..start + chunk {
                if byte >= 1000 || !marked.insert(byte) {
                    return None;
                }
            }
        }
    }
    Some(marked)
}

fn any_partition() -> impl Strategy<Value = Partition> {
    let counts = (1usize..14, 1usize..8, 1usize..6);
    let lengths = (0usize..400, 1usize..30, 0usize..120, any::<bool>());
    let partition = |((items, inner, pieces), (outer_stride, chunk, pitch, by_column))| Partition {
        first: 3,
        items,
        inner,
        outer_stride,
        chunk,
        pitch,
        pieces,
        by_column,
    };
    (counts, lengths).prop_map(partition)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_is_accepted_never_meets(partition in any_partition()) {
        if accepted(partition).is_ok() {
            prop_assert!(bytes_by_marking(&partition).is_some(), "{partition:?}");
        }
    }

    /// Strides with room to spare are accepted, and rejected once they are one byte too small.
    #[test]
    fn the_bounds_are_tight(
        (groups, inner, chunk, pieces) in (1usize..4, 1usize..5, 1usize..10, 1usize..5),
        (pitch_room, group_room, by_column) in (0usize..4, 0usize..4, any::<bool>()),
    ) {
        let pitch = inner * chunk + pitch_room;
        let outer_stride = (pieces - 1) * pitch + inner * chunk + group_room;
        let items = groups * inner;
        let partition =
            Partition { first: 0, items, inner, outer_stride, chunk, pitch, pieces, by_column };
        prop_assert_eq!(accepted(partition).is_ok(), bytes_by_marking(&partition).is_some());
        if pieces > 1 {
            let tight = Partition { pitch: inner * chunk - 1, ..partition };
            prop_assert_eq!(accepted(tight), Err(PartitionError::Pitch));
        }
        if groups > 1 {
            let outer_stride = (pieces - 1) * pitch + inner * chunk - 1;
            let tight = Partition { outer_stride, ..partition };
            prop_assert_eq!(accepted(tight), Err(PartitionError::OuterStride));
        }
    }
}

#[test]
fn the_constructors_cover_what_they_say() {
    let all = |partition: Partition| {
        assert_eq!(accepted(partition), Ok(()), "{partition:?}");
        bytes_by_marking(&partition).unwrap()
    };
    let range = |bytes| (0..bytes).collect::<HashSet<usize>>();
    assert_eq!(all(Partition::blocks(1, 1000)), range(1000));
    assert_eq!(all(Partition::blocks(10, 100)), range(1000));
    assert_eq!(all(Partition::columns(5, 20, 100, 10)), range(1000));
    assert_eq!(all(Partition::grouped(2, 5, 10, 50, 10)), range(1000));
    // A stripe of 3 columns that leaves the rest of each row alone.
    let part = all(Partition::columns(3, 4, 20, 2));
    assert_eq!(part, (0..12).chain(20..32).collect());
    assert_eq!(Partition::blocks(10, 100).starting_at(7).first, 7);
    assert_eq!(accepted(Partition::blocks(1, 1001)), Err(PartitionError::Outside));
    assert_eq!(accepted(Partition::blocks(11, 100)), Err(PartitionError::Outside));
    // The last group need not be full.
    let partial = Partition { items: 9, ..Partition::grouped(2, 5, 10, 50, 10) };
    let longer = Partition { items: 11, ..Partition::grouped(2, 5, 9, 50, 10) };
    assert_eq!(all(partial).len(), 900);
    assert_eq!(accepted(longer), Err(PartitionError::Outside));
    let by_column = Partition::grouped(2, 5, 10, 50, 10).numbered_by_column();
    assert_eq!(all(by_column), range(1000));
    assert_eq!(accepted(Partition { items: 9, ..by_column }), Err(PartitionError::Ragged));
}

#[test]
fn impossible_numbers_are_faults_and_no_overflow() {
    let good = Partition::columns(4, 8, 40, 3);
    for zero in [
        Partition { items: 0, ..good },
        Partition { inner: 0, ..good },
        Partition { chunk: 0, ..good },
        Partition { pieces: 0, ..good },
    ] {
        assert_eq!(accepted(zero), Err(PartitionError::Zero));
    }
    let huge = usize::MAX;
    assert_eq!(accepted(Partition { first: huge, ..good }), Err(PartitionError::Items));
    for outside in [
        Partition { chunk: huge, ..good },
        Partition { pitch: huge, ..good },
        Partition { pieces: huge, ..good },
        Partition { items: huge, outer_stride: huge, ..good },
        Partition { items: huge / 2, inner: 1, outer_stride: 200, ..good },
        Partition::grouped(huge, huge, huge, huge, huge),
    ] {
        assert_eq!(accepted(outside), Err(PartitionError::Outside), "{outside:?}");
    }
}

#[test]
fn slots_lie_aligned_behind_the_fixed_part() {
    let with = |fixed_bytes, offset, bytes| {
        let slots = vec![Span { offset, bytes }];
        seal(Sealing { fixed_bytes, slots, phases: vec![], workers: 1 })
    };
    assert_eq!(with(64, 64, REGION_BYTES - 64), Ok(()));
    for (offset, bytes) in [(96, 8), (0, 8), (64, REGION_BYTES), (usize::MAX - 63, 100)] {
        let span = Span { offset, bytes };
        assert_eq!(with(64, offset, bytes), Err(SealError::Slot { slot: 0, span }));
    }
    let fixed = SealError::Fixed { fixed_bytes: REGION_BYTES + 1, region_bytes: REGION_BYTES };
    assert_eq!(with(REGION_BYTES + 1, 0, 0), Err(fixed));
}

#[test]
fn workers_are_counted() {
    for (workers, fine) in [(0, false), (1, true), (WORKERS_MAX + 1, false)] {
        let sealed = seal(Sealing { workers, ..Sealing::default() });
        assert_eq!(sealed, if fine { Ok(()) } else { Err(SealError::Workers { workers }) });
    }
}

#[test]
fn memory_that_is_written_is_not_used_twice() {
    let whole = |slot| (slot, Partition::blocks(1, 64));
    let uses = |reads: &[usize], writes: &[usize], scratch: &[usize]| {
        seal(one_phase(PhaseAccess {
            reads: reads.to_vec(),
            writes: writes.iter().map(|&slot| whole(slot)).collect(),
            scratch: scratch.to_vec(),
        }))
    };
    // Slots 1 and 2 share bytes 3008 to 3048; slot 3 is too small for two workers' scratch.
    let overlap = |a, b| Err(SealError::Overlap { phase: 0, slots: [a, b] });
    assert_eq!(uses(&[0, 1, 2, 1], &[], &[]), Ok(()));
    assert_eq!(uses(&[0], &[1], &[]), Ok(()));
    assert_eq!(uses(&[0], &[3], &[1]), Ok(()));
    assert_eq!(uses(&[1], &[1], &[]), overlap(1, 1));
    assert_eq!(uses(&[2], &[1], &[]), overlap(1, 2));
    assert_eq!(uses(&[], &[1, 2], &[]), overlap(1, 2));
    assert_eq!(uses(&[], &[0, 0], &[]), overlap(0, 0));
    assert_eq!(uses(&[], &[2], &[1]), overlap(2, 1));
    assert_eq!(uses(&[1], &[], &[2]), overlap(2, 1));
    assert_eq!(uses(&[], &[], &[0, 0]), overlap(0, 0));
    assert_eq!(uses(&[], &[], &[3]), Err(SealError::Scratch { phase: 0, slot: 3 }));
    for unknown in [uses(&[4], &[], &[]), uses(&[], &[4], &[]), uses(&[], &[], &[4])] {
        assert_eq!(unknown, Err(SealError::Unknown { phase: 0, slot: 4 }));
    }
    let many = vec![0; ACCESS_MAX + 1];
    assert_eq!(uses(&[], &many, &[]), Err(SealError::Many { phase: 0 }));
    assert_eq!(uses(&[], &[], &many), Err(SealError::Many { phase: 0 }));
}

#[test]
fn errors_name_phase_and_slots() {
    let error = SealError::Overlap { phase: 3, slots: [1, 4] };
    assert_eq!(error.to_string(), "phase 3: slots 1 and 4 share memory and one is written");
    let error = SealError::Partition { phase: 2, slot: 5, error: PartitionError::Pitch };
    assert!(error.to_string().starts_with("phase 2: the partition of slot 5"), "{error}");
}
