//! Forward passes and denoising steps of a loaded model. Nothing here allocates.

use super::{Engine, StepStats};
use crate::denoise::{Cache, Canvas, ModelFacts, Progress, Schedule, Wanted};
use crate::error::Error;
use crate::plan::Limits;
use crate::sample::{Choice, Rule};
use crate::step::{Job, run};
use crate::team::Counters;
use dllm_arena::Leader;
use dllm_cpu::FloatEnv;
use dllm_cpu::dtype::PANEL_ROWS;
use std::ops::Range;
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
    /// with a cache, where the engine has computed something else since the canvas's block began.
    pub fn step<'c>(&mut self, canvas: &'c mut Canvas) -> Progress<'c> {
        let start = Instant::now();
        let _env = FloatEnv::enter();
        let (rule, step) = (*canvas.rule(), canvas.step_index());
        // A canvas may grow when its step is planned.
        let rows = canvas.rows();
        let keys = canvas.ids().len();
        self.must_fit(canvas);
        let chosen = self.place_wanted(canvas.plan_step(), rows.start);
        if chosen > 0 {
            let wanted = if self.full_logits { self.place_others(chosen, keys) } else { chosen };
            let are_own = self.kept_of == Some(canvas.serial());
            assert!(rows.len() == keys || are_own, "the kept keys are another's");
            if rule.cfg_scale > 0.0 {
                self.place_ids(canvas.unconditional_ids());
                self.pass((&rows, keys), (wanted, chosen), true, None);
            }
            self.place_ids(canvas.ids());
            self.pass((&rows, keys), (wanted, chosen), false, Some((rule, step)));
            self.kept_of = Some(canvas.serial());
        }
        let choices = self.ports.choices;
        let choices = &leader(&mut self.leader).slot::<Choice>(choices)[..chosen];
        let progress = canvas.commit(choices);
        self.stats.record_step(start.elapsed().as_secs_f64() * 1e3);
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
        self.place_ids(ids);
        let slot = leader(&mut self.leader).slot_mut::<u32>(self.ports.wanted);
        slot[..wanted].copy_from_slice(rows);
        self.kept_of = None;
        self.pass((&(0..ids.len()), ids.len()), (wanted, 0), false, None);
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
        self.kept_of = Some(canvas.serial());
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

    fn place_ids(&mut self, ids: &[u32]) {
        let slot = leader(&mut self.leader).slot_mut::<u32>(self.ports.ids);
        slot[..ids.len()].copy_from_slice(ids);
    }

    /// # Panics
    /// See [`Engine::step`].
    fn place_wanted(&mut self, wanted: &[Wanted], first: usize) -> usize {
        let (count, planned) = (wanted.len(), self.limits.wanted);
        assert!(count <= planned, "{count} wanted rows, {planned} were planned");
        let leader = leader(&mut self.leader);
        let rows = leader.slot_mut::<u32>(self.ports.wanted);
        for (to, wanted) in rows.iter_mut().zip(wanted) {
            // A canvas has no more positions than fit a u32.
            *to = wanted.row - first as u32;
        }
        let positions = leader.slot_mut::<u32>(self.ports.positions);
        for (to, wanted) in positions.iter_mut().zip(wanted) {
            *to = wanted.position;
        }
        wanted.len()
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

    /// Runs the operator list on all workers, this thread among them: `rows` of a canvas of `keys`.
    fn pass(
        &mut self,
        (rows, keys): (&Range<usize>, usize),
        (wanted, chosen): (usize, usize),
        guide: bool,
        sampling: Option<(Rule, u32)>,
    ) {
        let ops = self.program.ops().len();
        // Without sampling the last operator, which chooses tokens, is left out.
        let ops = if sampling.is_some() { ops } else { ops - 1 };
        let last_op = ops - 1;
        let (count, canary) = (self.counting, self.canary);
        let greedy = sampling.is_some_and(|(rule, _)| !rule.needs_logits());
        let logits = self.full_logits || !greedy;
        let first = rows.start;
        let rows = rows.len();
        let job = Job {
            rows,
            first,
            keys,
            wanted,
            chosen,
            guide,
            sampling,
            logits,
            count,
            last_op,
            canary,
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
        self.stats.rows_computed += rows as u64;
        self.stats.logit_rows += wanted as u64;
    }
}

/// The leader, which is there until the engine is dropped.
fn leader(leader: &mut Option<Leader<Job>>) -> &mut Leader<Job> {
    let Some(leader) = leader else { unreachable!("the leader is there until drop") };
    leader
}
