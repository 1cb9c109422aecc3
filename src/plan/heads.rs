//! How the rows of keys and values lie.

use crate::model::Config;
use dllm_cpu::dtype::PANEL_ROWS;

/// Keys of a work item that turns them.
pub const KEY_ITEM: usize = 16;

/// Where the rows of each head of keys or values lie, in floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRows {
    /// Heads.
    pub count: usize,
    /// Elements of a row.
    pub head_width: usize,
    /// From one head to the next.
    pub head_stride: usize,
    /// From one row of a head to the next.
    pub row_stride: usize,
    /// Whether all rows of a head come before the next head.
    pub by_head: bool,
}

impl KeyRows {
    /// By head, where a panel of 16 outputs belongs to one: `[head][row][head_width]`, so that what
    /// attention reads is of one piece. Otherwise row by row.
    pub(super) fn new(config: &Config, rows: usize) -> KeyRows {
        let (count, head_width) = (config.kv_heads, config.head_width);
        let by_head = head_width.is_multiple_of(PANEL_ROWS);
        let (head_stride, row_stride) = match by_head {
            true => (rows * head_width, head_width),
            false => (head_width, (count * head_width).next_multiple_of(PANEL_ROWS)),
        };
        KeyRows { count, head_width, head_stride, row_stride, by_head }
    }
}
