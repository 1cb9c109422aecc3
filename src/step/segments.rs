//! Which rows of a pass are which canvas's.

use crate::plan::CANVASES_MAX;
use crate::sample::Rule;
use std::ops::{Deref, Range};

/// The rows that a pass computes of one canvas.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// Rows of the pass before them.
    pub row: usize,
    /// How many they are.
    pub rows: usize,
    /// The position of the first of them on its canvas.
    pub first: usize,
    /// Rows of the whole canvas, whose keys and values all of its queries see.
    pub keys: usize,
    /// Rows of keys and values before that of its position 0.
    pub key_row: usize,
    /// Wanted rows of the pass before its own.
    pub wanted_row: usize,
    /// How many of its rows' logits are wanted.
    pub wanted: usize,
    /// How these become choices, and the step's number for random ones.
    pub sampling: Option<(Rule, u32)>,
}

impl Segment {
    /// Its rows of the pass.
    pub fn own_rows(&self) -> Range<usize> {
        self.row..self.row + self.rows
    }

    /// Its rows among the wanted ones.
    pub fn own_wanted(&self) -> Range<usize> {
        self.wanted_row..self.wanted_row + self.wanted
    }

    /// Rows of keys and values that the pass computes.
    pub fn own_keys(&self) -> Range<usize> {
        let first = self.key_row + self.first;
        first..first + self.rows
    }
}

/// The segments of a pass, in order of their rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segments {
    list: [Segment; CANVASES_MAX],
    count: usize,
}

impl Segments {
    /// Adds a segment, whose `row` and `wanted_row` follow from those before it.
    ///
    /// # Panics
    /// For more than [`CANVASES_MAX`].
    pub fn push(&mut self, segment: Segment) {
        let (row, wanted_row) = (self.rows(), self.wanted());
        self.list[self.count] = Segment { row, wanted_row, ..segment };
        self.count += 1;
    }

    /// Rows of the pass.
    pub fn rows(&self) -> usize {
        self.last().map_or(0, |last| last.own_rows().end)
    }

    /// Its wanted rows.
    pub fn wanted(&self) -> usize {
        self.last().map_or(0, |last| last.own_wanted().end)
    }

    /// The first block of `size` rows of keys, from `block` on, that the pass computes any of.
    pub fn key_block(&self, block: usize, size: usize) -> Option<usize> {
        let own = |segment: &Segment| {
            let keys = segment.own_keys();
            Some(block.max(keys.start / size)).filter(|block| block * size < keys.end)
        };
        self.iter().filter_map(own).min()
    }

    /// The segment that one of the wanted rows is of.
    pub fn of_wanted(&self, row: usize) -> &Segment {
        &self[self.partition_point(|segment| segment.own_wanted().end <= row)]
    }
}

impl Deref for Segments {
    type Target = [Segment];

    fn deref(&self) -> &[Segment] {
        &self.list[..self.count]
    }
}
