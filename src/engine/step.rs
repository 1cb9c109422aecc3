//! Forward passes and denoising steps of a loaded model. Nothing here allocates.

use super::load::Engine;
use super::sequence::Sequence;
use crate::backend::{Batch, FloatEnv, Input, Logits, Pass, SequenceRows};
use crate::denoise::{Candidate, Progress};
use crate::error::Error;
use std::borrow::BorrowMut;
use std::ops::Range;
use std::time::Instant;

impl Engine {
    /// One denoising step of each sequence of a batch, all in one forward pass; those that are done
    /// are left alone, and those under guidance, or with full logits, are computed one by one
    /// first. Neighbours change no token of a sequence. `after` is told the index of each that made
    /// a step, and what that did.
    ///
    /// # Errors
    /// Before anything is computed: sequences of another engine, more of them than planned for, or
    /// one whose KV slot was given away, because the engine has computed as many others as there
    /// are slots since its last step, each [`Engine::logits`] being one. After the others' step:
    /// one with logits that are not finite, which commits nothing.
    pub fn step<S: BorrowMut<Sequence>>(
        &mut self,
        batch: &mut [S],
        mut after: impl FnMut(usize, Progress<'_>),
    ) -> Result<(), Error> {
        let (sequences, sequences_max) = (batch.len(), self.limits().sequences);
        if sequences > sequences_max {
            return Err(Error::SequencesTooMany { sequences, sequences_max });
        }
        for sequence in batch.iter() {
            self.check_own(sequence.borrow())?;
        }
        for sequence in batch.iter() {
            // Touched before any of the others takes a slot.
            let sequence: &Sequence = sequence.borrow();
            let holds = self.slots.touch(sequence.number).is_some();
            if !holds && sequence.age.needs_slot(&sequence.canvas) {
                return Err(Error::KvSlotLost);
            }
        }
        let _env = FloatEnv::enter();
        for single in 0..batch.len() {
            self.step_those(batch, |index, s| index == single && s.is_single(), &mut after)?;
        }
        self.step_those(batch, |_, sequence| !sequence.is_single(), &mut after)
    }

    /// [`Engine::step`] of one sequence.
    ///
    /// # Errors
    /// As [`Engine::step`].
    pub fn step_one<'s>(&mut self, sequence: &'s mut Sequence) -> Result<Progress<'s>, Error> {
        self.step(&mut [&mut *sequence], |_, _| ())?;
        Ok(sequence.canvas.progress())
    }

    /// Gives up a sequence that will not be stepped any more before it is done, with its KV slot;
    /// nothing for one of another engine.
    pub fn release(&mut self, sequence: &Sequence) {
        if self.check_own(sequence).is_ok() {
            self.slots.release(sequence.number);
        }
    }

    /// One forward pass over `ids`: the logits of `rows`, as the model gives them.
    ///
    /// # Errors
    /// More tokens or rows than planned, or ones out of range; limits without logits.
    pub fn logits(&mut self, ids: &[u32], rows: &[u32]) -> Result<Logits<'_>, Error> {
        if !self.limits().logits {
            return Err(Error::LogitsNotPlanned);
        }
        self.check_rows(ids.len())?;
        let vocab = self.config.vocab;
        if let Some(position) = ids.iter().position(|id| *id as usize >= vocab) {
            return Err(Error::Token { position, token: ids[position], vocab });
        }
        if let Some(row) = rows.iter().find(|row| **row as usize >= ids.len()) {
            return Err(Error::Row { row: *row, rows: ids.len() });
        }
        self.check_output_rows(rows.len())?;
        self.write_ids(0, ids);
        self.backend.input(Input::OutputRows)[..rows.len()].copy_from_slice(rows);
        let key_row = self.slots.take(None);
        let (count, outputs) = (ids.len(), rows.len());
        let all = SequenceRows { rows: count, keys: count, key_row, outputs, ..Default::default() };
        let mut batch = Batch::default();
        batch.push(all);
        self.forward(&Pass { batch, logits: true, ..Pass::default() });
        self.backend.logits(outputs).ok_or(Error::LogitsNotPlanned)
    }

    fn check_own(&self, sequence: &Sequence) -> Result<(), Error> {
        match std::sync::Arc::ptr_eq(&sequence.engine, &self.identity) {
            true => Ok(()),
            false => Err(Error::ForeignSequence),
        }
    }

    /// A step of those of a batch that `is_in` and that are not done, in one pass; of a single one
    /// under guidance in two.
    fn step_those<S: BorrowMut<Sequence>>(
        &mut self,
        batch: &mut [S],
        is_in: impl Fn(usize, &Sequence) -> bool,
        after: &mut impl FnMut(usize, Progress<'_>),
    ) -> Result<(), Error> {
        let steps =
            |index, sequence: &Sequence| !sequence.canvas.is_done() && is_in(index, sequence);
        let start = Instant::now();
        let mut pass = Pass::default();
        for (index, sequence) in batch.iter_mut().enumerate() {
            let sequence = sequence.borrow_mut();
            if steps(index, sequence) {
                self.join(sequence, &mut pass);
                if sequence.canvas.rule().cfg_scale > 0.0 && pass.chosen > 0 {
                    self.write_ids(0, sequence.canvas.unconditional_ids());
                    self.forward(&Pass { chosen: 0, guide: true, ..pass });
                    self.write_ids(0, sequence.canvas.ids());
                }
            }
        }
        if pass.chosen > 0 {
            self.forward(&pass);
        }
        let mut seconds = start.elapsed().as_secs_f64();
        let (mut first, mut stepped, mut result) = (0, false, Ok(()));
        for (index, sequence) in batch.iter_mut().enumerate() {
            let sequence = sequence.borrow_mut();
            if steps(index, sequence) {
                let start = Instant::now();
                let chosen = sequence.canvas.plan_step().len();
                let choices = first..first + chosen;
                first += chosen;
                if let Err(error) = self.check_finite(sequence, choices.clone()) {
                    result = result.and(Err(error));
                    continue;
                }
                self.commit(sequence, choices);
                seconds += start.elapsed().as_secs_f64();
                after(index, sequence.canvas.progress());
                stepped = true;
            }
        }
        if stepped {
            self.stats.record_step(seconds * 1e3);
        }
        result
    }

    /// Refuses choices from rows that are not finite, which are those of that confidence.
    fn check_finite(&self, sequence: &mut Sequence, choices: Range<usize>) -> Result<(), Error> {
        let mut candidates =
            sequence.canvas.plan_step().iter().zip(&self.backend.choices()[choices]);
        match candidates.find(|(_, choice)| choice.confidence == f64::NEG_INFINITY) {
            Some((candidate, _)) => Err(Error::NotFinite { position: candidate.position }),
            None => Ok(()),
        }
    }

    /// Adds a sequence's step to a pass, with all that the pass must be told of it; nothing where
    /// the step needs none.
    fn join(&mut self, sequence: &mut Sequence, pass: &mut Pass) {
        let rows = sequence.rows();
        let Sequence { canvas, number, full_logits, .. } = sequence;
        if canvas.plan_step().is_empty() {
            return;
        }
        let (number, keys) = (*number, canvas.ids().len());
        let key_row = self.slots.touch(number).unwrap_or_else(|| self.slots.take(Some(number)));
        let (row, output_row) = (pass.batch.rows(), pass.batch.outputs());
        self.write_ids(row, &canvas.ids()[rows.clone()]);
        // Rows of a pass fit a u32, as those of all sequences that are planned for do.
        let shift = (row as u32).wrapping_sub(rows.start as u32);
        let sampling = Some((*canvas.rule(), canvas.step_index()));
        pass.logits |= *full_logits || canvas.rule().needs_logits();
        let candidates = canvas.plan_step();
        self.write_outputs(output_row, candidates, shift);
        pass.chosen += candidates.len();
        let outputs = if *full_logits { keys } else { candidates.len() };
        if *full_logits {
            self.write_others(candidates.len(), keys);
        }
        let (rows, first) = (rows.len(), rows.start);
        let others = SequenceRows::default();
        pass.batch.push(SequenceRows { rows, first, keys, key_row, outputs, sampling, ..others });
    }

    /// Ends a sequence's step with these choices.
    fn commit(&mut self, sequence: &mut Sequence, choices: Range<usize>) {
        let Sequence { canvas, number, age, .. } = sequence;
        let (block, is_refresh) = (canvas.block().1, age.is_refresh_due(canvas));
        let choices = &self.backend.choices()[choices];
        let committed = canvas.commit(choices).committed;
        if !choices.is_empty() {
            age.count_pass(block, is_refresh, committed);
        }
        if !age.needs_slot(canvas) {
            self.slots.release(*number);
        }
    }

    /// Tokens of the pass's rows from `row` on.
    fn write_ids(&mut self, row: usize, ids: &[u32]) {
        self.backend.input(Input::Ids)[row..row + ids.len()].copy_from_slice(ids);
    }

    /// Output rows of the pass from `first` on: those of a sequence, each `shift` further.
    fn write_outputs(&mut self, first: usize, candidates: &[Candidate], shift: u32) {
        let rows = self.backend.input(Input::OutputRows);
        for (to, candidate) in rows[first..].iter_mut().zip(candidates) {
            *to = candidate.row.wrapping_add(shift);
        }
        let positions = self.backend.input(Input::Positions);
        for (to, candidate) in positions[first..].iter_mut().zip(candidates) {
            *to = candidate.position;
        }
    }

    /// Adds output rows that belong to no candidate, until there are `rows` of them.
    fn write_others(&mut self, chosen: usize, rows: usize) {
        let slot = self.backend.input(Input::OutputRows);
        let (candidates, others) = slot[..rows].split_at_mut(chosen);
        // Candidates' rows rise with their positions.
        let free = (0..rows as u32).filter(|row| candidates.binary_search(row).is_err());
        for (to, row) in others.iter_mut().zip(free) {
            *to = row;
        }
    }

    fn forward(&mut self, pass: &Pass) {
        let stats = &mut self.stats;
        self.backend.forward(pass, |split, ms| stats.record_operator(split, ms));
        stats.passes += 1;
        stats.rows_computed += pass.batch.rows() as u64;
        stats.logit_rows += pass.batch.outputs() as u64;
    }
}
