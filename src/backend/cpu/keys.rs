//! How keys and values lie, which items compute them, and heads turned by their positions.

use super::turn::Turn;
use crate::model::Config;
use dllm_arena::{Partition, Span};
use dllm_cpu::Kernels;
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::ops::{Rope, RopeStyle};

/// Keys of a work item that turns them.
pub const KEY_ITEM: usize = 16;

/// Where the rows of each head of keys or values lie, in floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvRows {
    /// Rows that there is room for.
    pub rows: usize,
    /// Heads.
    pub heads: usize,
    /// Elements of a row.
    pub head_width: usize,
    /// From one head to the next.
    pub head_stride: usize,
    /// From one row of a head to the next.
    pub row_stride: usize,
    /// Whether all rows of a head come before the next head.
    pub by_head: bool,
}

impl KvRows {
    /// By head, where a panel of 16 outputs belongs to one: `[head][row][head_width]`, so that what
    /// attention reads is of one piece. Otherwise row by row.
    pub(super) fn new(config: &Config, rows: usize) -> KvRows {
        let (heads, head_width) = (config.kv_heads, config.head_width);
        let by_head = head_width.is_multiple_of(PANEL_ROWS);
        let (head_stride, row_stride) = match by_head {
            true => (rows * head_width, head_width),
            false => (head_width, (heads * head_width).next_multiple_of(PANEL_ROWS)),
        };
        KvRows { rows, heads, head_width, head_stride, row_stride, by_head }
    }

    /// Blocks of [`KEY_ITEM`] rows of a head.
    pub(super) fn blocks(&self) -> usize {
        self.rows / KEY_ITEM
    }

    /// [`KEY_ITEM`] rows of a head an item, one head after the other.
    pub(super) fn key_items(&self) -> Partition {
        let (blocks, head_bytes) = (self.blocks(), 4 * self.head_width);
        if self.by_head {
            return Partition::grouped(self.heads * blocks, 1, head_bytes, head_bytes, KEY_ITEM);
        }
        let row_bytes = 4 * self.row_stride;
        Partition::grouped(blocks, self.heads, head_bytes, row_bytes, KEY_ITEM).numbered_by_column()
    }

    /// The columns of a panel of keys or values, where those of all heads lie together.
    pub(super) fn panels_by_head(&self) -> Partition {
        let head_panels = self.head_width / PANEL_ROWS;
        let (panel_bytes, row_bytes) = (4 * PANEL_ROWS, 4 * self.head_width);
        Partition::grouped(self.heads, head_panels, panel_bytes, row_bytes, self.rows)
    }
}

/// The first item from `at` on that has anything to do, of columns of `blocks` items: those that
/// `used` gives, which finds the first such block of a column from one on.
pub(super) fn next_in_column(
    at: usize,
    blocks: usize,
    used: impl Fn(usize) -> Option<usize>,
) -> usize {
    let (column, block) = (at / blocks, at % blocks);
    match used(block) {
        Some(block) => column * blocks + block,
        None => used(0).map_or(usize::MAX, |block| (column + 1) * blocks + block),
    }
}

/// The tables of rotary angles.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// f32 `[rows][dimensions / 2]`: cosines.
    pub cos: Span,
    /// The same of sines.
    pub sin: Span,
    /// Dimensions of a head that are turned.
    pub dimensions: usize,
    /// Which of them are pairs.
    pub style: RopeStyle,
}

/// Rotary angles of all positions.
pub(super) struct Angles<'p> {
    kernels: Kernels,
    cos: &'p [f32],
    sin: &'p [f32],
    half: usize,
    style: RopeStyle,
}

impl Rotation {
    pub(super) fn angles<'p>(&self, turn: &Turn<'p>) -> Angles<'p> {
        let (cos, sin) = (turn.phase.fixed(self.cos), turn.phase.fixed(self.sin));
        Angles { kernels: turn.kernels, cos, sin, half: self.dimensions / 2, style: self.style }
    }
}

impl Angles<'_> {
    /// Turns one head at a position.
    pub fn turn(&self, head: &mut [f32], position: usize) {
        let at = position * self.half..(position + 1) * self.half;
        self.kernels.run(Rope {
            head_width: head.len(),
            x: head,
            cos: &self.cos[at.clone()],
            sin: &self.sin[at],
            style: self.style,
        });
    }
}
