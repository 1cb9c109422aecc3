//! Choices from rows of logits, or from what the LM head has kept of them.

use crate::backend::cpu::turn::{Slot, Turn};
use crate::sample::stats::{Record, Row};
use crate::sample::{self, Choice, Rule};
use dllm_arena::{Partition, PhaseAccess};
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::ops::GROUP_LOGITS;

/// Logits, or statistics of them, to choices; an item is a row.
#[derive(Clone, Debug)]
pub struct Choose {
    pub vocab: usize,
    /// `[groups][output rows]` statistics.
    pub records: Slot,
    /// Rows of logits, overwritten on the way.
    pub logits: Option<Slot>,
    /// Rows of logits without the prompt.
    pub guide: Option<Slot>,
    pub choices: Slot,
    /// u32: the positions that they are for.
    pub positions: Slot,
    /// Per worker: u32 `[vocabulary]`, the sampler's order of tokens.
    pub order: Option<Slot>,
}

impl Choose {
    pub(super) fn access(&self, outputs: usize) -> PhaseAccess {
        let row_bytes = 4 * self.vocab.next_multiple_of(PANEL_ROWS);
        let mut reads = vec![self.positions, self.records];
        reads.extend(self.guide);
        let mut writes = vec![(self.choices, Partition::blocks(outputs, size_of::<Choice>()))];
        writes.extend(self.logits.map(|slot| (slot, Partition::blocks(outputs, row_bytes))));
        PhaseAccess { reads, writes, scratch: self.order.into_iter().collect() }
    }

    pub(super) fn run(&self, turn: &Turn<'_>) {
        match (self.logits.filter(|_| turn.pass.logits), self.order) {
            (Some(logits), Some(order)) => self.scan_logits(turn, logits, order),
            _ => self.fold_records(turn),
        }
    }

    fn fold_records(&self, turn: &Turn<'_>) {
        let records: &[Record] = turn.phase.read(self.records);
        let positions: &[u32] = turn.phase.read(self.positions);
        let groups = self.vocab.div_ceil(GROUP_LOGITS);
        let stride = records.len() / groups;
        while let Some(item) = turn.phase.claim(turn.pass.chosen) {
            let index = item.index();
            let mut row = Row::EMPTY;
            records[index..].iter().step_by(stride).take(groups).for_each(|group| row.add(group));
            let (rule, step) = sampling(turn, index);
            let choice = sample::choose_best(rule, *step, positions[index], &row);
            item.write::<Choice>(self.choices).into_only()[0] = choice;
        }
    }

    /// From whole rows, which are overwritten.
    fn scan_logits(&self, turn: &Turn<'_>, logits: Slot, order: Slot) {
        let positions: &[u32] = turn.phase.read(self.positions);
        let guide: Option<&[f32]> = self.guide.map(|slot| turn.phase.read(slot));
        let order = turn.phase.scratch::<u32>(order);
        let vocab = self.vocab;
        while let Some(item) = turn.phase.claim(turn.pass.chosen) {
            let index = item.index();
            let row = item.write::<f32>(logits).into_only();
            let (rule, step) = sampling(turn, index);
            let guide = guide.filter(|_| rule.cfg_scale > 0.0);
            let guide = guide.map(|g| &g[index * row.len()..][..vocab]);
            let scratch = &mut order[..sample::scratch_len(rule, vocab)];
            let (row, position) = (&mut row[..vocab], positions[index]);
            let choice = sample::choose(turn.kernels, rule, *step, position, row, guide, scratch);
            item.write(self.choices).into_only()[0] = choice;
        }
    }
}

/// The rule for a row, and the number of its sequence's step.
fn sampling<'p>(turn: &Turn<'p>, row: usize) -> &'p (Rule, u32) {
    let Some(sampling) = &turn.pass.batch.of_output(row).sampling else {
        unreachable!("rows that become choices have rules")
    };
    sampling
}
