//! Keys turned by their positions, in place.

use crate::backend::cpu::keys::{KEY_ITEM, KvRows, Rotation, next_in_column};
use crate::backend::cpu::turn::{Slot, Turn};
use dllm_arena::PhaseAccess;

/// The keys that the pass has computed, turned; an item is 16 rows of a head.
#[derive(Clone, Debug)]
pub struct RopeKeys {
    pub k: Slot,
    pub kv: KvRows,
    pub rotation: Rotation,
}

impl RopeKeys {
    pub(super) fn access(&self) -> PhaseAccess {
        let writes = vec![(self.k, self.kv.key_items())];
        PhaseAccess { reads: vec![], writes, scratch: vec![] }
    }

    pub(super) fn items(&self) -> usize {
        self.kv.heads * self.kv.blocks()
    }

    pub(super) fn run(&self, turn: &Turn<'_>) {
        let (angles, batch) = (self.rotation.angles(turn), &turn.pass.batch);
        let blocks = self.kv.blocks();
        let next = |at| next_in_column(at, blocks, |block| batch.key_block(block, KEY_ITEM));
        while let Some(item) = turn.phase.claim_next(self.items(), next) {
            let first = item.index() % blocks * KEY_ITEM;
            let mut heads = item.write::<f32>(self.k);
            for sequence in batch.iter() {
                let own = sequence.own_keys();
                for row in own.start.max(first)..own.end.min(first + KEY_ITEM) {
                    angles.turn(heads.piece(row - first), row - sequence.key_row);
                }
            }
        }
    }
}
