//! Which rows a pass must compute where keys and values of an earlier one are kept.
use super::Cache;
use super::canvas::Wanted;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whose keys an engine keeps for a canvas, and how old they are.
#[derive(Debug)]
pub(super) struct Kept {
    /// A number that is given once in a process.
    serial: u64,
    /// Passes since the last one that computed every row; `None`: there was none in this block.
    since_whole: Option<u32>,
    /// From the first to the last position that has a token since the last pass: no pass has
    /// computed its key.
    changed: Range<usize>,
}

impl Kept {
    /// For a canvas of which nothing has been kept.
    pub fn new() -> Kept {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Kept { serial: NEXT.fetch_add(1, Ordering::Relaxed), since_whole: None, changed: 0..0 }
    }

    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// What is kept is another block's.
    pub fn begin_block(&mut self) {
        self.since_whole = None;
    }

    /// Counts a pass, after which the positions of `changed` have tokens.
    pub fn count_pass(&mut self, refresh: Option<u32>, changed: Range<usize>) {
        let passes = if self.is_whole_due(refresh) { 0 } else { self.since_whole.unwrap_or(0) };
        self.since_whole = Some(passes.saturating_add(1));
        self.changed = changed;
    }

    /// Whether the keys and values of every row must be computed anew.
    pub fn is_whole_due(&self, refresh: Option<u32>) -> bool {
        let limit = refresh.unwrap_or(u32::MAX);
        self.since_whole.is_none_or(|passes| passes >= limit)
    }

    /// The rows of a pass that is not whole, on a canvas of `positions`: the block, what is wanted
    /// (which may lie left of it), and what has changed; up to the canvas's end where nothing is
    /// kept right of the block. Where nothing is generated the block, at the prompt's end, is
    /// empty.
    pub fn rows(
        &self,
        cache: Cache,
        positions: usize,
        block: Range<usize>,
        wanted: &[Wanted],
    ) -> Range<usize> {
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
            return 0..positions;
        };
        let mut start = block.start.min(first.row as usize);
        let mut end = if block.is_empty() { 0 } else { block.end };
        end = end.max(last.row as usize + 1);
        if !self.changed.is_empty() {
            start = start.min(self.changed.start);
            end = end.max(self.changed.end);
        }
        start..if cache == Cache::Dual { end } else { positions }
    }
}

impl Clone for Kept {
    /// That of another canvas, for which nothing has been kept.
    fn clone(&self) -> Kept {
        Kept::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(rows: &[u32]) -> Vec<Wanted> {
        rows.iter().map(|&row| Wanted { position: row, row }).collect()
    }

    #[test]
    fn rows_are_the_block_what_is_wanted_and_what_has_changed() {
        let mut kept = Kept::new();
        let rows = |kept: &Kept, cache, wanted: &[Wanted]| kept.rows(cache, 20, 8..12, wanted);
        assert_eq!(rows(&kept, Cache::Dual, &wanted(&[9, 10])), 8..12);
        assert_eq!(rows(&kept, Cache::Prefix, &wanted(&[9, 10])), 8..20);
        // A hole left of the block, and what has just been committed there.
        assert_eq!(rows(&kept, Cache::Dual, &wanted(&[5, 10])), 5..12);
        kept.count_pass(None, 3..6);
        assert_eq!(rows(&kept, Cache::Dual, &wanted(&[9, 10])), 3..12);
        kept.count_pass(None, 0..0);
        assert_eq!(rows(&kept, Cache::Dual, &wanted(&[9, 10])), 8..12);
        assert_eq!(rows(&kept, Cache::Dual, &[]), 0..20);
    }

    /// Holes alone: from the first to the last that is wanted or has changed.
    #[test]
    fn an_empty_block_is_no_reason_to_compute_a_row() {
        let mut kept = Kept::new();
        let rows = |kept: &Kept, cache| kept.rows(cache, 20, 20..20, &wanted(&[4, 7]));
        assert_eq!((rows(&kept, Cache::Dual), rows(&kept, Cache::Prefix)), (4..8, 4..20));
        kept.count_pass(None, 2..10);
        assert_eq!((rows(&kept, Cache::Dual), rows(&kept, Cache::Prefix)), (2..10, 2..20));
    }

    #[test]
    fn a_whole_pass_is_due_at_a_blocks_beginning_and_every_refresh() {
        let mut kept = Kept::new();
        let mut due = Vec::new();
        for _ in 0..7 {
            due.push(kept.is_whole_due(Some(3)));
            kept.count_pass(Some(3), 0..0);
        }
        assert_eq!(due, [true, false, false, true, false, false, true]);
        assert!(!kept.is_whole_due(None) && kept.clone().is_whole_due(None));
        kept.begin_block();
        assert!(kept.is_whole_due(None));
    }

    #[test]
    fn a_clone_is_another() {
        let kept = Kept::new();
        assert_ne!(kept.clone().serial(), kept.serial());
    }
}
