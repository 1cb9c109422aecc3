//! How the rows of attention's heads lie and which work items read them.

use crate::model::Config;
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::ops::QUERY_TILE;

/// Keys of a work item that turns them.
pub const KEY_ITEM: usize = 16;
/// Most queries of a work item: all of them see a key while it is in the cache.
const QUERIES_MAX: usize = 4 * QUERY_TILE;
/// Items a thread should have: with fewer, too many threads wait for the last one.
const ITEMS_PER_THREAD: usize = 8;

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

/// How the queries of a head are divided into items; item `head * blocks + block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryItems {
    /// Queries of an item, a multiple of 16.
    pub queries: usize,
    /// Items of a head.
    pub blocks: usize,
}

impl QueryItems {
    /// As many queries an item as leave every thread enough items, for up to `rows` queries.
    pub(super) fn new(heads: usize, rows: usize, threads: usize) -> QueryItems {
        let mut queries = QUERIES_MAX;
        while queries > QUERY_TILE && heads * rows.div_ceil(queries) < ITEMS_PER_THREAD * threads {
            queries /= 2;
        }
        QueryItems { queries, blocks: rows.div_ceil(queries) }
    }

    /// Rows of a buffer that has a place for every query of every item.
    pub(super) fn rows(self) -> usize {
        self.queries * self.blocks
    }
}
