//! A forward pass: which rows it computes, of which sequences, and what for; what it reads and
//! leaves behind.

use super::limits::SEQUENCES_MAX;
use crate::sample::Rule;
use serde::Serialize;
use std::ops::{Deref, Range};

/// One forward pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pass {
    /// The rows that are computed, by sequence.
    pub batch: Batch,
    /// How many of the output rows become choices, from the first on.
    pub chosen: usize,
    /// Whether this pass makes the logits without the prompt, for guidance.
    pub guide: bool,
    /// Whether whole rows of logits are stored, instead of statistics for rules that are greedy.
    pub logits: bool,
}

/// The rows that a pass computes of one sequence.
#[derive(Clone, Copy, Debug, Default)]
pub struct SequenceRows {
    /// Rows of the pass before them.
    pub row: usize,
    /// How many they are.
    pub rows: usize,
    /// The position of the first of them in its sequence.
    pub first: usize,
    /// Rows of the whole sequence, whose keys and values all of its queries see.
    pub keys: usize,
    /// Rows of the KV cache before that of its position 0.
    pub key_row: usize,
    /// Output rows of the pass before its own.
    pub output_row: usize,
    /// How many output rows it has.
    pub outputs: usize,
    /// How these become choices, and the step's number for random ones.
    pub sampling: Option<(Rule, u32)>,
}

impl SequenceRows {
    /// Its rows of the pass.
    pub fn own_rows(&self) -> Range<usize> {
        self.row..self.row + self.rows
    }

    /// Its output rows.
    pub fn own_outputs(&self) -> Range<usize> {
        self.output_row..self.output_row + self.outputs
    }

    /// Rows of the KV cache that the pass computes.
    pub fn own_keys(&self) -> Range<usize> {
        let first = self.key_row + self.first;
        first..first + self.rows
    }
}

/// The sequences of a pass, in order of their rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch {
    list: [SequenceRows; SEQUENCES_MAX],
    count: usize,
}

impl Batch {
    /// Adds a sequence, whose `row` and `output_row` follow from those before it.
    ///
    /// # Panics
    /// For more than [`SEQUENCES_MAX`].
    pub fn push(&mut self, sequence: SequenceRows) {
        let (row, output_row) = (self.rows(), self.outputs());
        self.list[self.count] = SequenceRows { row, output_row, ..sequence };
        self.count += 1;
    }

    /// Rows of the pass.
    pub fn rows(&self) -> usize {
        self.last().map_or(0, |last| last.own_rows().end)
    }

    /// Its output rows.
    pub fn outputs(&self) -> usize {
        self.last().map_or(0, |last| last.own_outputs().end)
    }

    /// The first block of `size` rows of keys, from `block` on, that the pass computes any of.
    pub fn key_block(&self, block: usize, size: usize) -> Option<usize> {
        let own = |sequence: &SequenceRows| {
            let keys = sequence.own_keys();
            Some(block.max(keys.start / size)).filter(|block| block * size < keys.end)
        };
        self.iter().filter_map(own).min()
    }

    /// The sequence that an output row is of.
    pub fn of_output(&self, row: usize) -> &SequenceRows {
        &self[self.partition_point(|sequence| sequence.own_outputs().end <= row)]
    }
}

impl Deref for Batch {
    type Target = [SequenceRows];

    fn deref(&self) -> &[SequenceRows] {
        &self.list[..self.count]
    }
}

/// What is written before a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// `[rows]`: the tokens of the pass's rows.
    Ids,
    /// `[output rows]`: which rows of the pass are output rows.
    OutputRows,
    /// `[output rows]`: the position that each of them decides, for random numbers.
    Positions,
}

/// Rows of logits, in the order they were asked for.
#[derive(Clone, Copy, Debug)]
pub struct Logits<'a> {
    pub(super) values: &'a [f32],
    pub(super) vocab: usize,
    pub(super) stride: usize,
}

impl<'a> Logits<'a> {
    /// Each row, `[vocabulary]`.
    pub fn rows(&self) -> impl Iterator<Item = &'a [f32]> + use<'a> {
        let vocab = self.vocab;
        self.values.chunks_exact(self.stride).map(move |row| &row[..vocab])
    }
}

/// Where an operator's time is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// Matrix multiplications but the LM head.
    Gemm,
    /// Attention and its keys.
    Attention,
    /// The LM head.
    LmHead,
    /// Choice of tokens.
    Sampling,
    /// The rest.
    Other,
}

impl Split {
    /// As plans and reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            Split::Gemm => "gemm",
            Split::Attention => "attention",
            Split::LmHead => "lm_head",
            Split::Sampling => "sampling",
            Split::Other => "other",
        }
    }
}
