//! Choices from rows of logits, or from what the LM head has kept of them.

use super::{Program, Segments};
use crate::plan::Slot;
use crate::sample::stats::{Record, Row};
use crate::sample::{self, Choice, Rule};
use dllm_arena::Phase;

/// What both ways of choosing share.
pub(super) struct Chooser<'p> {
    pub program: &'p Program,
    pub phase: &'p Phase<'p>,
    /// Whose rows they are, and by what rules they become choices.
    pub segments: &'p Segments,
    /// The position of each row.
    pub positions: &'p [u32],
    /// Rows that become choices.
    pub count: usize,
    /// Where these go.
    pub choices: Slot,
}

impl Chooser<'_> {
    /// The rule for a row, and the number of its canvas's step.
    fn sampling(&self, row: usize) -> &(Rule, u32) {
        let Some(sampling) = &self.segments.of_wanted(row).sampling else {
            unreachable!("rows that become choices have rules")
        };
        sampling
    }

    /// Folds `[groups][rows]` records; an item is a row.
    pub fn fold_records(&self, records: Slot) {
        let records: &[Record] = self.phase.read(records);
        let groups = self.program.config.vocab.div_ceil(dllm_cpu::ops::GROUP_LOGITS);
        let stride = records.len() / groups;
        while let Some(item) = self.phase.claim(self.count) {
            let index = item.index();
            let mut row = Row::EMPTY;
            records[index..].iter().step_by(stride).take(groups).for_each(|group| row.add(group));
            let (rule, step) = self.sampling(index);
            let choice = sample::choose_best(rule, *step, self.positions[index], &row);
            item.write::<Choice>(self.choices).into_only()[0] = choice;
        }
    }

    /// From whole rows, which are overwritten.
    pub fn scan_logits(&self, logits: Slot, guide: Option<Slot>) {
        let guide: Option<&[f32]> = guide.map(|slot| self.phase.read(slot));
        let order = self.program.scratch::<u32>(self.phase);
        let (kernels, vocab) = (self.program.kernels, self.program.config.vocab);
        while let Some(item) = self.phase.claim(self.count) {
            let index = item.index();
            let row = item.write::<f32>(logits).into_only();
            let (rule, step) = self.sampling(index);
            let guide = guide.filter(|_| rule.cfg_scale > 0.0);
            let guide = guide.map(|g| &g[index * row.len()..][..vocab]);
            let scratch = &mut order[..sample::scratch_len(rule, vocab)];
            let (row, position) = (&mut row[..vocab], self.positions[index]);
            let choice = sample::choose(kernels, rule, *step, position, row, guide, scratch);
            item.write(self.choices).into_only()[0] = choice;
        }
    }
}
