//! Forward passes and denoising steps of a loaded model. Nothing here allocates.

use super::{Engine, StepStats};
use crate::denoise::{Cache, Canvas, ModelFacts, Progress, Schedule, Wanted};
use crate::error::Error;
use crate::plan::Limits;
use crate::sample::Choice;
use crate::step::{Job, Segment, Segments, run};
use crate::team::Counters;
use dllm_arena::Leader;
use dllm_cpu::FloatEnv;
use dllm_cpu::dtype::PANEL_ROWS;
use std::borrow::BorrowMut;
use std::time::Instant;

/// Rows of logits, in the order they were asked for.
#[derive(Clone, Copy, Debug)]
pub struct Logits<'a> {
    values: &'a [f32],
    vocab: usize,
    stride: usize,
}

impl<'a> Logits<'a> {
    /// Each row, `[vocabulary]`.
    pub fn rows(&self) -> impl Iterator<Item = &'a [f32]> + use<'a> {
        let vocab = self.vocab;
        self.values.chunks_exact(self.stride).map(move |row| &row[..vocab])
    }
}

/// What a forward pass is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// Logits for a caller.
    Logits,
    /// Those without the prompt.
    Guide,
    /// Choices.
    Choose,
}

impl Engine {
    /// Lays out a request. The only allocations of a generation are made here.
    ///
    /// # Errors
    /// A prompt or schedule that does not fit the model or the limits; a model that generates
    /// nothing.
    pub fn canvas(
        &self,
        prompt: &[u32],
        schedule: &Schedule,
        facts: &ModelFacts,
    ) -> Result<Canvas, Error> {
        let _env = FloatEnv::enter();
        self.config.architecture.check_generates()?;
        let (facts_vocab, vocab) = (facts.vocab_size as usize, self.config.vocab);
        if facts_vocab != vocab {
            return Err(Error::Vocabulary { facts_vocab, vocab });
        }
        let canvas = Canvas::new(prompt, schedule, facts)?;
        self.check_rows(canvas.positions_max())?;
        if schedule.cfg_scale() > 0.0 && !self.limits.guidance {
            return Err(Error::GuidanceNotPlanned);
        }
        if (self.full_logits || canvas.rule().needs_logits()) && !self.limits.logits {
            return Err(Error::LogitsNotPlanned);
        }
        if schedule.cache() != Cache::None && !self.limits.cache {
            return Err(Error::CacheNotPlanned);
        }
        if schedule.cache() != Cache::None && self.full_logits {
            return Err(Error::FullLogitsWithCache);
        }
        let holes = prompt.iter().filter(|id| **id == facts.mask_token).count();
        let rows = if self.full_logits { canvas.positions_max() } else { 0 };
        let wanted = schedule.wanted_max(holes).max(rows);
        let wanted_max = self.limits.wanted;
        if wanted > wanted_max {
            return Err(Error::WantedTooMany { wanted, wanted_max });
        }
        Ok(canvas)
    }

    /// One denoising step: a forward pass, or two under guidance, and a commit.
    ///
    /// # Panics
    /// For a canvas that [`Engine::canvas`] of this engine would not have given: longer, with more
    /// wanted rows or other tokens than were planned for, or with a cache that was not. For one
    /// whose next pass is not whole, after [`Engine::forget`], or where the engine has computed as
    /// many others as it may hold, each [`Engine::logits`] being one, since the canvas's last step.
    pub fn step<'c>(&mut self, canvas: &'c mut Canvas) -> Progress<'c> {
        let start = Instant::now();
        let _env = FloatEnv::enter();
        let mut segments = Segments::default();
        self.join(canvas, &mut segments);
        if segments.rows() > 0 {
            if canvas.rule().cfg_scale > 0.0 {
                self.place_ids(0, canvas.unconditional_ids());
                self.pass(&segments, 0, Pass::Guide);
                self.place_ids(0, canvas.ids());
            }
            self.pass(&segments, canvas.plan_step().len(), Pass::Choose);
        }
        let progress = self.commit(canvas, 0);
        self.stats.record_step(start.elapsed().as_secs_f64() * 1e3);
        progress
    }

    /// One denoising step of each of several canvases, all in one pass; those that are done are
    /// left alone, and those under guidance, or with full logits, are computed one by one first.
    /// Whoever is beside it changes no token of a canvas. `after` is told the index of each that
    /// made a step, and what that did.
    ///
    /// # Panics
    /// As [`Engine::step`]; for more canvases than were planned for.
    pub fn step_together<C: BorrowMut<Canvas>>(
        &mut self,
        canvases: &mut [C],
        mut after: impl FnMut(usize, Progress<'_>),
    ) {
        let (count, planned) = (canvases.len(), self.limits.canvases);
        assert!(count <= planned, "{count} canvases, {planned} were planned");
        let _env = FloatEnv::enter();
        // Before any of the others takes its lane.
        for canvas in canvases.iter_mut() {
            self.lanes.touch(canvas.borrow_mut().serial());
        }
        let full_logits = self.full_logits;
        let is_single = |canvas: &Canvas| canvas.rule().cfg_scale > 0.0 || full_logits;
        let sharing = |canvas: &Canvas| !canvas.is_done() && !is_single(canvas);
        for (index, canvas) in canvases.iter_mut().enumerate() {
            let canvas = canvas.borrow_mut();
            if !canvas.is_done() && is_single(canvas) {
                after(index, self.step(canvas));
            }
        }
        let start = Instant::now();
        let mut segments = Segments::default();
        for canvas in canvases.iter_mut() {
            let canvas = canvas.borrow_mut();
            if sharing(canvas) {
                self.join(canvas, &mut segments);
            }
        }
        if segments.rows() > 0 {
            self.pass(&segments, segments.wanted(), Pass::Choose);
        }
        let mut seconds = start.elapsed().as_secs_f64();
        let (mut first, mut stepped) = (0, 0);
        for (index, canvas) in canvases.iter_mut().enumerate() {
            let canvas = canvas.borrow_mut();
            if sharing(canvas) {
                let start = Instant::now();
                let chosen = canvas.plan_step().len();
                let progress = self.commit(canvas, first);
                seconds += start.elapsed().as_secs_f64();
                after(index, progress);
                first += chosen;
                stepped += 1;
            }
        }
        if stepped > 0 {
            self.stats.record_step(seconds * 1e3);
        }
    }

    /// Gives up a canvas that will not be stepped any more before it is done, with the keys and
    /// values that are kept for it.
    pub fn forget(&mut self, canvas: &Canvas) {
        self.lanes.release(canvas.serial());
    }

    /// Adds a canvas's step to a pass, with all that the pass must be told of it; nothing where
    /// the step needs none.
    ///
    /// # Panics
    /// See [`Engine::step`].
    fn join(&mut self, canvas: &mut Canvas, segments: &mut Segments) {
        // A canvas may grow when its step is planned.
        let rows = canvas.rows();
        self.must_fit(canvas);
        let (serial, keys) = (canvas.serial(), canvas.ids().len());
        let kept = self.lanes.touch(serial);
        if canvas.plan_step().is_empty() {
            return;
        }
        assert!(rows.len() == keys || kept.is_some(), "the kept keys are another's");
        let key_row = kept.unwrap_or_else(|| self.lanes.take(Some(serial)));
        let (row, wanted_row) = (segments.rows(), segments.wanted());
        self.place_ids(row, &canvas.ids()[rows.clone()]);
        // Rows of a pass fit a u32, as those of all canvases that are planned for do.
        let shift = (row as u32).wrapping_sub(rows.start as u32);
        let sampling = Some((*canvas.rule(), canvas.step_index()));
        let chosen = self.place_wanted(wanted_row, canvas.plan_step(), shift);
        let wanted = if self.full_logits { self.place_others(chosen, keys) } else { chosen };
        segments.push(Segment {
            rows: rows.len(),
            first: rows.start,
            keys,
            key_row,
            wanted,
            sampling,
            ..Segment::default()
        });
    }

    /// Ends a canvas's step with the choices from `first` on.
    fn commit<'c>(&mut self, canvas: &'c mut Canvas, first: usize) -> Progress<'c> {
        let chosen = canvas.plan_step().len();
        let choices = leader(&mut self.leader).slot::<Choice>(self.ports.choices);
        let serial = canvas.serial();
        let progress = canvas.commit(&choices[first..first + chosen]);
        if !progress.needs_kept {
            self.lanes.release(serial);
        }
        progress
    }

    /// One forward pass over `ids`: the logits of `rows`, as the model gives them.
    ///
    /// # Errors
    /// More tokens or rows than planned, or ones out of range; limits without logits.
    pub fn logits(&mut self, ids: &[u32], rows: &[u32]) -> Result<Logits<'_>, Error> {
        let port = self.ports.logits.ok_or(Error::LogitsNotPlanned)?;
        self.check_rows(ids.len())?;
        let vocab = self.config.vocab;
        if let Some(position) = ids.iter().position(|id| *id as usize >= vocab) {
            return Err(Error::Token { position, token: ids[position], vocab });
        }
        if let Some(row) = rows.iter().find(|row| **row as usize >= ids.len()) {
            return Err(Error::Row { row: *row, rows: ids.len() });
        }
        let (wanted, wanted_max) = (rows.len(), self.limits.wanted);
        if wanted > wanted_max {
            return Err(Error::WantedTooMany { wanted, wanted_max });
        }
        self.place_ids(0, ids);
        let slot = leader(&mut self.leader).slot_mut::<u32>(self.ports.wanted);
        slot[..wanted].copy_from_slice(rows);
        let (count, key_row) = (ids.len(), self.lanes.take(None));
        let mut segments = Segments::default();
        let segment = Segment { rows: count, keys: count, key_row, wanted, ..Segment::default() };
        segments.push(segment);
        self.pass(&segments, 0, Pass::Logits);
        let stride = vocab.next_multiple_of(PANEL_ROWS);
        let values = leader(&mut self.leader).slot::<f32>(port);
        Ok(Logits { values: &values[..wanted * stride], vocab, stride })
    }

    /// What engine threads did since [`Engine::reset_stats`] that a step should not do, while
    /// [`Engine::set_counting`] was on.
    pub fn counters(&self) -> Counters {
        self.team.as_ref().map(|team| team.counters()).unwrap_or_default()
    }

    /// Times and counts since [`Engine::reset_stats`].
    pub fn stats(&self) -> &StepStats {
        &self.stats
    }

    /// Milliseconds a pass by operator, those of all layers together, the slowest first. Allocates.
    pub fn operator_ms(&self) -> Vec<(String, f64)> {
        let mut totals = self.operators.totals(self.stats.operators_ms());
        let passes = self.stats.passes.max(1) as f64;
        totals.iter_mut().for_each(|(_, ms)| *ms /= passes);
        totals
    }

    /// Starts counters and times anew.
    pub fn reset_stats(&mut self) {
        self.stats.reset();
        self.reset_counters();
    }

    /// Starts the counters alone anew: what the first step does is warm-up.
    pub fn reset_counters(&mut self) {
        if let Some(team) = &self.team {
            team.reset_counters();
        }
    }

    /// Whether [`Engine::counters`] counts. Off at first: it takes two system calls a worker and
    /// pass.
    pub fn set_counting(&mut self, on: bool) {
        self.counting = on;
    }

    /// Fills every buffer between the weights and the end of the arena with `pattern`: what a step
    /// reads it must have written. For tests.
    #[doc(hidden)]
    pub fn poison(&mut self, pattern: u32) {
        leader(&mut self.leader).poison(pattern);
    }

    /// Computes the logits of every position at each step, as other runtimes do: for comparing
    /// times, no token changes. The limits must allow for logits, and as many wanted rows as a
    /// canvas has.
    pub fn set_full_logits(&mut self, on: bool) {
        self.full_logits = on;
    }

    /// Takes the keys of the last pass for those of `canvas`. For tests.
    #[doc(hidden)]
    pub fn take_keys_for(&mut self, canvas: &Canvas) {
        self.lanes.assign_last(canvas.serial());
    }

    /// Makes every worker allocate in each pass, which the counters must show. For tests.
    #[doc(hidden)]
    pub fn set_canary(&mut self, on: bool) {
        self.canary = on;
    }

    /// Before any worker is told to start: what would go wrong there could not be put right.
    ///
    /// # Panics
    /// See [`Engine::step`].
    fn must_fit(&self, canvas: &Canvas) {
        let Limits { rows, guidance, logits, cache, .. } = self.limits;
        let (ids, vocab) = (canvas.ids(), self.config.vocab);
        assert!(ids.len() <= rows, "a canvas of {} tokens, {rows} were planned", ids.len());
        assert!(ids.iter().all(|id| (*id as usize) < vocab), "a token beyond {vocab}");
        assert!(guidance || canvas.rule().cfg_scale <= 0.0, "guidance was not planned");
        let needs_logits = self.full_logits || canvas.rule().needs_logits();
        assert!(logits || !needs_logits, "whole rows of logits were not planned");
        let keeps = canvas.schedule().cache() != Cache::None;
        assert!(cache || !keeps, "kept keys were not planned");
        assert!(!(keeps && self.full_logits), "a cache leaves rows out, full logits take all");
    }

    fn check_rows(&self, rows: usize) -> Result<(), Error> {
        let rows_max = self.limits.rows;
        if rows > rows_max { Err(Error::CanvasTooLong { rows, rows_max }) } else { Ok(()) }
    }

    /// Tokens of the pass's rows from `row` on.
    fn place_ids(&mut self, row: usize, ids: &[u32]) {
        let slot = leader(&mut self.leader).slot_mut::<u32>(self.ports.ids);
        slot[row..row + ids.len()].copy_from_slice(ids);
    }

    /// Wanted rows of the pass from `first` on: those of a canvas, each `shift` further.
    ///
    /// # Panics
    /// See [`Engine::step`].
    fn place_wanted(&mut self, first: usize, wanted: &[Wanted], shift: u32) -> usize {
        let (count, planned) = (wanted.len(), self.limits.wanted);
        assert!(count <= planned, "{count} wanted rows, {planned} were planned");
        let leader = leader(&mut self.leader);
        let rows = leader.slot_mut::<u32>(self.ports.wanted);
        for (to, wanted) in rows[first..].iter_mut().zip(wanted) {
            *to = wanted.row.wrapping_add(shift);
        }
        let positions = leader.slot_mut::<u32>(self.ports.positions);
        for (to, wanted) in positions[first..].iter_mut().zip(wanted) {
            *to = wanted.position;
        }
        count
    }

    /// Adds rows that no position wants, until there are `rows` of them.
    ///
    /// # Panics
    /// See [`Engine::step`].
    fn place_others(&mut self, chosen: usize, rows: usize) -> usize {
        let planned = self.limits.wanted;
        assert!(rows <= planned, "{rows} wanted rows, {planned} were planned");
        let slot = leader(&mut self.leader).slot_mut::<u32>(self.ports.wanted);
        let (wanted, others) = slot[..rows].split_at_mut(chosen);
        // Wanted rows rise with their positions.
        let unwanted = (0..rows as u32).filter(|row| wanted.binary_search(row).is_err());
        for (to, row) in others.iter_mut().zip(unwanted) {
            *to = row;
        }
        rows
    }

    /// Runs the operator list on all workers, this thread among them; the first `chosen` of the
    /// wanted rows become choices.
    fn pass(&mut self, segments: &Segments, chosen: usize, pass: Pass) {
        let ops = self.program.ops().len();
        // Choosing tokens is the last operator.
        let ops = if pass == Pass::Choose { ops } else { ops - 1 };
        let needs_logits =
            |segment: &Segment| segment.sampling.is_none_or(|(rule, _)| rule.needs_logits());
        let job = Job {
            segments: *segments,
            chosen,
            guide: pass == Pass::Guide,
            logits: self.full_logits || segments.iter().any(needs_logits),
            count: self.counting,
            last_op: ops - 1,
            canary: self.canary,
        };
        let Some(team) = &self.team else { unreachable!("the team is there until drop") };
        let stats = &mut self.stats;
        let mut before = Instant::now();
        let step = leader(&mut self.leader).begin(job, 0..ops);
        run(step, &self.program, team.report(0), |op, program| {
            let now = Instant::now();
            let ms = now.duration_since(before).as_secs_f64() * 1e3;
            stats.record_operator(op, program.ops()[op].split, ms);
            before = now;
        });
        self.stats.passes += 1;
        self.stats.rows_computed += segments.rows() as u64;
        self.stats.logit_rows += segments.wanted() as u64;
    }
}

/// The leader, which is there until the engine is dropped.
fn leader(leader: &mut Option<Leader<Job>>) -> &mut Leader<Job> {
    let Some(leader) = leader else { unreachable!("the leader is there until drop") };
    leader
}
