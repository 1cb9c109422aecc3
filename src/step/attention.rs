//! Keys turned and transposed; attention of 16 queries of a head.

use super::Program;
use crate::plan::{KEY_ITEM, Slot};
use dllm_arena::Phase;
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::ops::{Attention, QUERY_TILE, Rope};

/// What attention reads.
pub(super) struct Inputs<'p> {
    /// f32 `[rows][heads * head_width, rounded up]`, not yet turned.
    pub q: &'p [f32],
    /// f32 `[kv_heads][head_width][row_capacity]`
    pub k_transposed: &'p [f32],
    /// f32 `[rows][kv_heads * head_width, rounded up]`
    pub v: &'p [f32],
    /// The rows that ask; all of them where it is `None`.
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

pub(super) fn rope_keys(
    program: &Program,
    phase: &Phase<'_>,
    rows: usize,
    k: Slot,
    k_transposed: Slot,
) {
    let config = &program.config;
    let width = config.head_width;
    let stride = (config.kv_heads * width).next_multiple_of(PANEL_ROWS);
    let angles = Angles::new(program, phase);
    let k: &[f32] = phase.read(k);
    let turned = &mut program.scratch::<f32>(phase)[..KEY_ITEM * width];
    let blocks = program.row_capacity / KEY_ITEM;
    while let Some(item) = phase.claim(config.kv_heads * blocks) {
        let (head, first) = (item.index() / blocks, item.index() % blocks * KEY_ITEM);
        let keys = rows.saturating_sub(first).min(KEY_ITEM);
        if keys == 0 {
            continue;
        }
        for (at, to) in turned.chunks_exact_mut(width).take(keys).enumerate() {
            let from = &k[(first + at) * stride + head * width..][..width];
            to.copy_from_slice(from);
            angles.turn(to, first + at);
        }
        let mut out = item.write::<f32>(k_transposed);
        for (element, to) in out.iter_mut().enumerate() {
            for (at, to) in to.iter_mut().take(keys).enumerate() {
                *to = turned[at * width + element];
            }
        }
    }
}

/// `rows` queries over `keys` keys.
pub(super) fn attend(
    program: &Program,
    phase: &Phase<'_>,
    (rows, keys): (usize, usize),
    inputs: &Inputs<'_>,
    out: Slot,
) {
    let config = &program.config;
    let width = config.head_width;
    let group = config.heads / config.kv_heads;
    let (q_stride, v_stride) = (
        (config.heads * width).next_multiple_of(PANEL_ROWS),
        (config.kv_heads * width).next_multiple_of(PANEL_ROWS),
    );
    let angles = Angles::new(program, phase);
    let scratch = program.scratch::<f32>(phase);
    let (q, scratch) = scratch.split_at_mut(QUERY_TILE * width);
    let (result, scratch) = scratch.split_at_mut(QUERY_TILE * width);
    let scale = 1.0 / (width as f32).sqrt();
    while let Some(item) = phase.claim(config.heads * rows.div_ceil(QUERY_TILE)) {
        let (head, first) = (item.index() % config.heads, item.index() / config.heads * QUERY_TILE);
        let queries = (rows - first).min(QUERY_TILE);
        for (at, to) in q.chunks_exact_mut(width).take(queries).enumerate() {
            let row = inputs.wanted.map_or(first + at, |wanted| wanted[first + at] as usize);
            to.copy_from_slice(&inputs.q[row * q_stride + head * width..][..width]);
            angles.turn(to, row);
            to.iter_mut().for_each(|x| *x *= scale);
        }
        let kv_head = head / group;
        let keys_at = kv_head * width * program.row_capacity;
        program.kernels.run(Attention {
            q: &q[..queries * width],
            k_transposed: &inputs.k_transposed[keys_at..][..width * program.row_capacity],
            key_stride: program.row_capacity,
            v: &inputs.v[kv_head * width..],
            value_stride: v_stride,
            keys,
            head_width: width,
            scratch,
            out: result,
        });
        let mut out = item.write::<f32>(out);
        for (to, from) in out.iter_mut().zip(result.chunks_exact(width)).take(queries) {
            to.copy_from_slice(from);
        }
    }
}
