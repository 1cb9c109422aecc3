//! Attention of 16 queries of a head over all keys of their sequence.

use crate::backend::cpu::keys::{KvRows, Rotation, next_in_column};
use crate::backend::cpu::turn::{Slot, Turn};
use dllm_arena::{Partition, PhaseAccess};
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::ops::{Attention, QUERY_TILE};

/// Attention; an item is 16 queries of a head, one head after the other. The rows of an item may be
/// several sequences'.
#[derive(Clone, Debug)]
pub struct Attend {
    /// f32 `[rows][heads * head_width, rounded up to 16]`: queries, not yet turned.
    pub q: Slot,
    pub k: Slot,
    pub v: Slot,
    pub kv: KvRows,
    pub heads: usize,
    /// Items of a head.
    pub blocks: usize,
    /// f32 `[rows][heads * head_width]`
    pub out: Slot,
    /// In the last layer: u32, which rows ask.
    pub output_rows: Option<Slot>,
    pub rotation: Rotation,
    /// Per worker: queries, results, and what the kernel needs.
    pub scratch: Slot,
}

impl Attend {
    pub(super) fn access(&self) -> PhaseAccess {
        let mut reads = vec![self.q, self.k, self.v];
        reads.extend(self.output_rows);
        let head_bytes = 4 * self.kv.head_width;
        let row_bytes = self.heads * head_bytes;
        let queries =
            Partition::grouped(self.blocks, self.heads, head_bytes, row_bytes, QUERY_TILE)
                .numbered_by_column();
        PhaseAccess { reads, writes: vec![(self.out, queries)], scratch: vec![self.scratch] }
    }

    pub(super) fn items(&self) -> usize {
        self.heads * self.blocks
    }

    pub(super) fn run(&self, turn: &Turn<'_>) {
        let KvRows { head_width: width, head_stride, row_stride, .. } = self.kv;
        let group = self.heads / self.kv.heads;
        let q_stride = (self.heads * width).next_multiple_of(PANEL_ROWS);
        let phase = turn.phase;
        let (all_q, k, v): (&[f32], &[f32], &[f32]) =
            (phase.read(self.q), phase.read(self.k), phase.read(self.v));
        let output_rows: Option<&[u32]> = self.output_rows.map(|slot| phase.read(slot));
        let angles = self.rotation.angles(turn);
        let (q, scratch) = phase.scratch::<f32>(self.scratch).split_at_mut(QUERY_TILE * width);
        let (result, scratch) = scratch.split_at_mut(QUERY_TILE * width);
        let used = turn.rows.div_ceil(QUERY_TILE);
        let next = |at| next_in_column(at, self.blocks, |block| Some(block).filter(|b| *b < used));
        while let Some(item) = phase.claim_next(self.items(), next) {
            let (head, first) =
                (item.index() / self.blocks, item.index() % self.blocks * QUERY_TILE);
            let mut out = item.write::<f32>(self.out);
            for sequence in turn.pass.batch.iter() {
                let own = output_rows.map_or(sequence.own_rows(), |_| sequence.own_outputs());
                let asking = own.start.max(first)..own.end.min(first + QUERY_TILE);
                if asking.is_empty() {
                    continue;
                }
                for (asker, to) in asking.clone().zip(q.chunks_exact_mut(width)) {
                    let row = output_rows.map_or(asker, |rows| rows[asker] as usize);
                    to.copy_from_slice(&all_q[row * q_stride + head * width..][..width]);
                    angles.turn(to, sequence.first + row - sequence.row);
                }
                let keys_at = head / group * head_stride + sequence.key_row * row_stride;
                turn.kernels.run(Attention {
                    q: &q[..asking.len() * width],
                    scale: 1.0 / (width as f32).sqrt(),
                    k: &k[keys_at..],
                    key_stride: row_stride,
                    v: &v[keys_at..],
                    value_stride: row_stride,
                    keys: sequence.keys,
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
}
