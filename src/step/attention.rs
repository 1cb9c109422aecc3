//! Keys turned; attention of 16 queries of a head.

use super::{Program, Segments};
use crate::plan::{KEY_ITEM, KeyRows, Slot};
use dllm_arena::Phase;
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::ops::{Attention, QUERY_TILE, Rope};

/// What attention reads.
pub(super) struct Inputs<'p> {
    /// f32 `[rows][heads * head_width, rounded up]`, not yet turned.
    pub q: &'p [f32],
    /// f32, turned.
    pub k: &'p [f32],
    /// f32
    pub v: &'p [f32],
    /// How keys and values lie.
    pub key_rows: KeyRows,
    /// Whose rows they are.
    pub segments: &'p Segments,
    /// The rows of the pass that ask; all of them where it is `None`.
    pub wanted: Option<&'p [u32]>,
}

/// Rotary angles of all positions.
struct Angles<'p> {
    program: &'p Program,
    cos: &'p [f32],
    sin: &'p [f32],
}

impl<'p> Angles<'p> {
    fn new(program: &'p Program, phase: &'p Phase<'_>) -> Angles<'p> {
        let (cos, sin) = (phase.fixed(program.rope_cos), phase.fixed(program.rope_sin));
        Angles { program, cos, sin }
    }

    /// Turns one head at a position.
    fn turn(&self, head: &mut [f32], position: usize) {
        let rope = &self.program.config.rope;
        let half = rope.dimensions / 2;
        let at = position * half..(position + 1) * half;
        self.program.kernels.run(Rope {
            head_width: head.len(),
            x: head,
            cos: &self.cos[at.clone()],
            sin: &self.sin[at],
            style: rope.style,
        });
    }
}

/// The first item from `at` on that has anything to do, of columns of `blocks` items: those that
/// `used` gives, which finds the first such block of a column from one on.
fn next_in_column(at: usize, blocks: usize, used: impl Fn(usize) -> Option<usize>) -> usize {
    let (column, block) = (at / blocks, at % blocks);
    match used(block) {
        Some(block) => column * blocks + block,
        None => used(0).map_or(usize::MAX, |block| (column + 1) * blocks + block),
    }
}

pub(super) fn rope_keys(
    program: &Program,
    phase: &Phase<'_>,
    segments: &Segments,
    k: Slot,
    key_rows: KeyRows,
) {
    let angles = Angles::new(program, phase);
    let blocks = program.row_capacity / KEY_ITEM;
    let next = |at: usize| next_in_column(at, blocks, |block| segments.key_block(block, KEY_ITEM));
    while let Some(item) = phase.claim_next(key_rows.count * blocks, next) {
        let first = item.index() % blocks * KEY_ITEM;
        let mut heads = item.write::<f32>(k);
        for segment in segments.iter() {
            let own = segment.own_keys();
            for row in own.start.max(first)..own.end.min(first + KEY_ITEM) {
                angles.turn(heads.piece(row - first), row - segment.key_row);
            }
        }
    }
}

/// `rows` queries, `blocks` items a head; the 16 rows of an item may be several canvases'.
pub(super) fn attend(
    program: &Program,
    phase: &Phase<'_>,
    rows: usize,
    inputs: &Inputs<'_>,
    blocks: usize,
    out: Slot,
) {
    let config = &program.config;
    let width = config.head_width;
    let group = config.heads / config.kv_heads;
    let q_stride = (config.heads * width).next_multiple_of(PANEL_ROWS);
    let angles = Angles::new(program, phase);
    let (q, scratch) = program.scratch::<f32>(phase).split_at_mut(QUERY_TILE * width);
    let (result, scratch) = scratch.split_at_mut(QUERY_TILE * width);
    let used = rows.div_ceil(QUERY_TILE);
    let next = |at: usize| next_in_column(at, blocks, |block| Some(block).filter(|b| *b < used));
    while let Some(item) = phase.claim_next(config.heads * blocks, next) {
        let (head, first) = (item.index() / blocks, item.index() % blocks * QUERY_TILE);
        let mut out = item.write::<f32>(out);
        for segment in inputs.segments.iter() {
            let own = inputs.wanted.map_or(segment.own_rows(), |_| segment.own_wanted());
            let asking = own.start.max(first)..own.end.min(first + QUERY_TILE);
            if asking.is_empty() {
                continue;
            }
            for (asker, to) in asking.clone().zip(q.chunks_exact_mut(width)) {
                let row = inputs.wanted.map_or(asker, |wanted| wanted[asker] as usize);
                to.copy_from_slice(&inputs.q[row * q_stride + head * width..][..width]);
                angles.turn(to, segment.first + row - segment.row);
            }
            let KeyRows { head_stride, row_stride, .. } = inputs.key_rows;
            let keys_at = head / group * head_stride + segment.key_row * row_stride;
            program.kernels.run(Attention {
                q: &q[..asking.len() * width],
                scale: 1.0 / (width as f32).sqrt(),
                k: &inputs.k[keys_at..],
                key_stride: row_stride,
                v: &inputs.v[keys_at..],
                value_stride: row_stride,
                keys: segment.keys,
                head_width: width,
                scratch,
                out: result,
            });
            for (asker, from) in asking.zip(result.chunks_exact(width)) {
                out.piece(asker - first).copy_from_slice(from);
            }
        }
    }
}
