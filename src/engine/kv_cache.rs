//! The KV cache: which sequence holds which slot of it, and which rows a pass must compute.

use crate::denoise::{Cache, Canvas, Committed};
use std::ops::Range;

/// Room for the keys and values of as many sequences as are planned for. A slot is known by the
/// rows before its own.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Box<[Slot]>,
    /// Rows of each.
    rows: usize,
    /// Counts what slots are used for.
    uses: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The sequence whose keys and values are in it, and may be needed again.
    holder: Option<u64>,
    /// When it was used last.
    used: u64,
}

impl Slots {
    /// One for each of `sequences`, at least one, that share `rows` rows; none is used.
    pub fn new(sequences: usize, rows: usize) -> Slots {
        let slots = vec![Slot::default(); sequences].into();
        Slots { slots, rows: rows / sequences, uses: 0 }
    }

    /// The first row of the slot that a sequence holds; marks it the most recently used.
    pub fn touch(&mut self, sequence: u64) -> Option<usize> {
        let slot = self.slots.iter().position(|slot| slot.holder == Some(sequence))?;
        Some(self.use_for(slot, Some(sequence)))
    }

    /// The first row of a slot for a sequence, or without one for this pass alone: a free slot, or
    /// the least recently used.
    pub fn take(&mut self, sequence: Option<u64>) -> usize {
        let age = |slot: &usize| (self.slots[*slot].holder.is_some(), self.slots[*slot].used);
        let Some(slot) = (0..self.slots.len()).min_by_key(age) else {
            unreachable!("limits are for one sequence at least")
        };
        self.use_for(slot, sequence)
    }

    fn use_for(&mut self, slot: usize, holder: Option<u64>) -> usize {
        self.uses += 1;
        self.slots[slot] = Slot { holder, used: self.uses };
        slot * self.rows
    }

    /// A sequence needs its slot no more.
    pub fn release(&mut self, sequence: u64) {
        let mut slots = self.slots.iter_mut();
        if let Some(slot) = slots.find(|slot| slot.holder == Some(sequence)) {
            slot.holder = None;
        }
    }

    /// Gives the slot that was used last to a sequence, with what is in it.
    #[cfg(test)]
    pub fn assign_last(&mut self, sequence: u64) {
        if let Some(last) = self.slots.iter_mut().max_by_key(|slot| slot.used) {
            last.holder = Some(sequence);
        }
    }
}

/// How old the keys and values of a sequence are.
#[derive(Debug, Default)]
pub(super) struct Age {
    /// The block of the last pass, and passes since the last refresh; `None`: there was no pass.
    last: Option<(u32, u32)>,
    /// From the first to the last position that has a token since the last pass: no pass has
    /// computed its key.
    changed: Range<usize>,
}

impl Age {
    /// Counts a pass over `block`, a refresh or not, after which what is `committed` has tokens.
    pub fn count_pass(&mut self, block: u32, is_refresh: bool, committed: &[Committed]) {
        let passes = match self.last {
            Some((_, passes)) if !is_refresh => passes,
            _ => 0,
        };
        self.last = Some((block, passes.saturating_add(1)));
        self.changed = match (committed.first(), committed.last()) {
            (Some(first), Some(last)) => first.position as usize..last.position as usize + 1,
            _ => 0..0,
        };
    }

    /// Whether the next pass computes every row: always without a cache, at a block's beginning,
    /// and as often as the request asks for.
    pub fn is_refresh_due(&self, canvas: &Canvas) -> bool {
        let parameters = canvas.parameters();
        let limit = parameters.refresh.unwrap_or(u32::MAX);
        let is_due =
            self.last.is_none_or(|(block, passes)| block != canvas.block().1 || passes >= limit);
        is_due || parameters.cache == Cache::None
    }

    /// Whether the next pass needs keys and values that are in a slot.
    pub fn needs_slot(&self, canvas: &Canvas) -> bool {
        !canvas.is_done() && !self.is_refresh_due(canvas)
    }

    /// The rows that the next pass must compute: all at a refresh; otherwise the block, the output
    /// rows (which may lie left of it), and what has changed; up to the end where nothing right of
    /// the block is cached. Where nothing is generated the block, at the prompt's end, is empty.
    pub fn rows(&self, canvas: &mut Canvas) -> Range<usize> {
        // A canvas may grow when its step is planned.
        let candidates = canvas.plan_step();
        let candidates = candidates.first().zip(candidates.last()).map(|(f, l)| (f.row, l.row));
        let (positions, (block, _)) = (canvas.ids().len(), canvas.block());
        let Some((first, last)) = candidates.filter(|_| self.needs_slot(canvas)) else {
            return 0..positions;
        };
        let mut start = block.start.min(first as usize);
        let mut end = if block.is_empty() { 0 } else { block.end };
        end = end.max(last as usize + 1);
        if !self.changed.is_empty() {
            start = start.min(self.changed.start);
            end = end.max(self.changed.end);
        }
        start..if canvas.parameters().cache == Cache::Dual { end } else { positions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::denoise::{GenerationParameters, RequestParameters, TokenFacts};
    use crate::sample::{Choice, Kind};

    const MASK: u32 = 3;
    const PROMPT: [u32; 9] = [5, 9, 17, 33, 65, 129, 257, 300, 7];

    #[test]
    fn slots_are_given_away_by_need_then_by_age() {
        let mut slots = Slots::new(3, 192);
        assert_eq!([7, 8, 9].map(|sequence| slots.take(Some(sequence))), [0, 64, 128]);
        // The first is used again, so that the second is the oldest.
        assert_eq!((slots.touch(7), slots.touch(10)), (Some(0), None));
        assert_eq!(slots.take(Some(10)), 64);
        assert_eq!(slots.touch(8), None);
        slots.release(7);
        assert_eq!(slots.touch(7), None);
        assert_eq!((slots.take(Some(11)), slots.take(Some(12))), (0, 128));
        slots.assign_last(13);
        assert_eq!((slots.touch(13), slots.touch(12)), (Some(128), None));
        // What nobody holds goes first.
        assert_eq!(slots.take(None), 64);
        assert_eq!((slots.touch(10), slots.take(Some(14))), (None, 64));
    }

    /// Plans and ends steps: the rows of each, of which the candidate `best` commits.
    fn rows(
        kind: Kind,
        prompt: &[u32],
        request: RequestParameters,
        best: &[usize],
    ) -> Vec<(usize, usize)> {
        let base = RequestParameters { early_stop: false, ..request };
        let parameters = GenerationParameters::new(kind, &base).unwrap();
        let facts = TokenFacts {
            mask_token: MASK,
            vocab_size: 304,
            shift_logits: kind == Kind::Dream,
            end_of_text: vec![2],
            end_of_turn: vec![4],
        };
        let mut canvas = Canvas::new(prompt, &parameters, &facts).unwrap();
        let mut age = Age::default();
        let step = |best: &usize| {
            let choice = |at| {
                let confidence = if at == *best { -0.1 } else { -1.0 };
                Choice { confidence, token: 8, pad: 0 }
            };
            let count = canvas.plan_step().len();
            let rows = age.rows(&mut canvas);
            let (block, refresh) = (canvas.block().1, age.is_refresh_due(&canvas));
            let committed = canvas.commit(&(0..count).map(choice).collect::<Vec<_>>()).committed;
            age.count_pass(block, refresh, committed);
            (rows.start, rows.end)
        };
        best.iter().map(step).collect()
    }

    fn one_at_a_time(cache: Cache) -> RequestParameters {
        let (max_tokens, block_length, threshold) = (30, Some(12), Some(1.0));
        RequestParameters {
            max_tokens,
            block_length,
            threshold,
            cache: Some(cache),
            ..RequestParameters::default()
        }
    }

    #[test]
    fn a_hole_left_of_the_block_is_computed_until_its_token_has_keys() {
        let rows =
            rows(Kind::Llada, &[5, MASK, 9, 17], one_at_a_time(Cache::Dual), &[3, 3, 0, 0, 0]);
        // The hole is filled at the third step; at the fourth its keys are those of its token.
        assert_eq!(rows, [(0, 34), (1, 16), (1, 16), (1, 16), (4, 16)]);
    }

    #[test]
    fn the_row_before_the_block_is_computed_while_its_first_position_waits() {
        let rows = rows(Kind::Dream, &PROMPT, one_at_a_time(Cache::Dual), &[3, 0, 0]);
        // Position 9 is predicted by row 8.
        assert_eq!(rows, [(0, 39), (8, 21), (9, 21)]);
    }

    #[test]
    fn a_prefix_cache_computes_all_from_the_block_on() {
        let rows = rows(Kind::Llada, &PROMPT, one_at_a_time(Cache::Prefix), &[3, 0, 0]);
        assert_eq!(rows, [(0, 39), (9, 39), (9, 39)]);
    }

    /// Holes alone: from the first to the last that is a candidate or has changed.
    #[test]
    fn an_empty_block_is_no_reason_to_compute_a_row() {
        let prompt = [MASK, 5, 5, MASK, 5, MASK, 5, MASK, 5];
        let of =
            |cache| RequestParameters { max_tokens: 0, block_length: None, ..one_at_a_time(cache) };
        let best = [3, 0, 0, 0];
        let dual = rows(Kind::Llada, &prompt, of(Cache::Dual), &best);
        assert_eq!(dual, [(0, 9), (0, 8), (0, 6), (3, 6)]);
        let prefix = rows(Kind::Llada, &prompt, of(Cache::Prefix), &best);
        assert_eq!(prefix, [(0, 9), (0, 9), (0, 9), (3, 9)]);
    }

    #[test]
    fn a_refresh_is_due_at_a_blocks_beginning_and_as_often_as_asked_for() {
        let request = RequestParameters {
            max_tokens: 8,
            block_length: Some(4),
            refresh: Some(3),
            ..one_at_a_time(Cache::Dual)
        };
        let (all, first, second) = ((0, 17), (9, 13), (13, 17));
        let rows = rows(Kind::Llada, &PROMPT, request, &[0; 8]);
        assert_eq!(rows, [all, first, first, all, all, second, second, all]);
    }
}
