//! The token ids of a request while its masks are being filled.
use super::kept::Kept;
use super::pick::{Pick, Scratch, touched};
use super::shares::{self, Blocks};
use super::{CANVAS_MAX, Cache, Fault, Pace, Schedule};
use crate::sample::rng::{self, Stream};
use crate::sample::{Algorithm, Choice, Kind, Rule, TokenSet};
use std::ops::Range;

/// What a canvas must know of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFacts {
    /// Id of a position that has no token yet.
    pub mask_token: u32,
    /// Length of a row of logits.
    pub vocab_size: u32,
    /// Whether the row before a position predicts its token (Dream), instead of its own row.
    pub shift_logits: bool,
    /// Ids that end the text.
    pub end_of_text: Vec<u32>,
    /// Ids that end a turn.
    pub end_of_turn: Vec<u32>,
}

/// A position that wants a token at this step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Where the token would go.
    pub position: u32,
    /// The row of logits that predicts it. Two positions may want the same row (0, when shifted).
    pub row: u32,
}

/// A token that has just become part of the canvas.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Committed {
    /// Where.
    pub position: u32,
    /// The token.
    pub token: u32,
    /// How sure its row was, on the algorithm's scale.
    pub confidence: f64,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Index of the step that has just ended, from 0.
    pub step: u32,
    /// What it committed, by position. Empty for a step that commits nothing.
    pub committed: &'a [Committed],
    /// Masks that remain on the whole canvas.
    pub masks_left: u32,
    /// Whether that was the last step.
    pub is_done: bool,
    /// Whether the next pass needs the keys and values that this one left.
    pub(crate) needs_kept: bool,
}

/// Token ids of prompt and generated part, and the state of the run.
///
/// With a cache the engine keeps its keys from a block's first pass to its last, for as many
/// canvases as it was planned for. A clone begins with a whole pass.
#[derive(Clone, Debug)]
pub struct Canvas {
    schedule: Schedule,
    rule: Rule,
    ends: TokenSet,
    vocab_size: u32,
    shift_logits: bool,
    prompt_len: usize,
    ids: Box<[u32]>,
    /// Of these, those that passes read.
    visible: usize,
    unconditional: Box<[u32]>,
    masks_left: u32,
    blocks: Blocks,
    place: Place,
    step: u32,
    stopped: bool,
    kept: Kept,
    /// Whether `wanted` and `pick` are those of the current step.
    planned: bool,
    pick: Pick,
    /// Room for as many as there were masks at the start.
    wanted: Box<[Wanted]>,
    wanted_count: usize,
    committed: Box<[Committed]>,
    scratch: Scratch,
}

/// Where in the blocks a run is.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    block: u32,
    step_in_block: u32,
    /// Masks left of the block's end when it began.
    masks: u32,
}

impl Canvas {
    /// Lays out prompt and masks, and all memory that the run will need.
    ///
    /// # Errors
    /// An id outside the vocabulary, too many positions, nothing to do at all, no token to choose.
    pub fn new(prompt: &[u32], schedule: &Schedule, facts: &ModelFacts) -> Result<Self, Fault> {
        let positions = checked_len(prompt, schedule, facts)?;
        let (rule, ends) = rule(schedule, facts)?;
        let mut ids = touched(facts.mask_token, positions);
        let guided = if schedule.cfg_scale() > 0.0 { positions } else { 0 };
        let unconditional = ids[..guided].into();
        ids[..prompt.len()].copy_from_slice(prompt);
        let masks_left = ids.iter().filter(|id| **id == facts.mask_token).count() as u32;
        let steps = schedule.steps().unwrap_or(masks_left);
        let blocks = Blocks::new(schedule.gen_length(), schedule.block_length(), steps);
        let begun = if schedule.grows() { blocks.end(0) } else { schedule.gen_length() };
        Ok(Canvas {
            rule,
            ends,
            vocab_size: facts.vocab_size,
            shift_logits: facts.shift_logits,
            prompt_len: prompt.len(),
            ids,
            unconditional,
            masks_left,
            visible: prompt.len() + begun as usize,
            blocks,
            place: Place::default(),
            step: 0,
            stopped: false,
            kept: Kept::new(),
            planned: false,
            pick: Pick::Best { count: 0 },
            wanted: touched(Wanted::default(), masks_left as usize),
            wanted_count: 0,
            committed: touched(Committed::default(), masks_left as usize),
            scratch: Scratch::new(masks_left as usize),
            schedule: schedule.clone(),
        })
    }

    /// The settings that it runs by.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// How each wanted row is to be turned into a choice.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Prompt and generated part, as far as it has been begun, `[positions]`; what the forward pass
    /// reads. Planning a step may make it longer, where the canvas grows.
    pub fn ids(&self) -> &[u32] {
        &self.ids[..self.visible]
    }

    /// Positions that the canvas may grow to; as many as [`ids`](Self::ids) has where it does not.
    pub fn positions_max(&self) -> usize {
        self.ids.len()
    }

    /// The ids for the second pass of guidance: as [`ids`](Self::ids), but every token that was not
    /// a mask at the start is masked. Empty unless `cfg_scale` is above 0.
    pub fn unconditional_ids(&self) -> &[u32] {
        &self.unconditional[..self.visible.min(self.unconditional.len())]
    }

    /// Tokens of the prompt, holes included.
    pub fn prompt_len(&self) -> usize {
        self.prompt_len
    }

    /// The positions that want a token at this step, in order, and the rows that predict them.
    ///
    /// Empty: the step commits nothing, whatever the logits, and its forward pass may be left out
    /// without changing any result. It must be ended with `commit(&[])` all the same, and counts as
    /// a step. Asking twice gives the same answer.
    pub fn plan_step(&mut self) -> &[Wanted] {
        if !self.planned {
            self.planned = true;
            self.wanted_count = 0;
            if !self.is_done() {
                self.visible = self.visible.max(self.block_end());
                match (self.schedule.pace(), self.schedule.kind()) {
                    (Pace::Steps, Kind::Llada) => self.plan_llada(),
                    (Pace::Steps, Kind::Dream) => self.plan_dream(),
                    (pace, _) => self.plan_adaptive(pace),
                }
            }
        }
        &self.wanted[..self.wanted_count]
    }

    /// The rows that this step's pass must compute: all of them, or with a cache those from the
    /// block on (and from any hole left of it, from what has just been committed, and from the row
    /// that predicts its first mask), up to the block's end where what lies right of it is kept
    /// too.
    pub fn rows(&mut self) -> Range<usize> {
        self.plan_step();
        if !self.needs_kept() {
            return 0..self.visible;
        }
        let start = self.prompt_len + self.blocks.start(self.place.block) as usize;
        let block = start..self.block_end();
        let wanted = &self.wanted[..self.wanted_count];
        self.kept.rows(self.schedule.cache(), self.visible, block, wanted)
    }

    /// Whether the next pass is not a whole one.
    fn needs_kept(&self) -> bool {
        let is_due = self.kept.is_whole_due(self.schedule.refresh());
        self.schedule.cache() != Cache::None && !is_due && !self.is_done()
    }

    /// A number that no other canvas has: whose keys an engine has kept.
    pub(crate) fn serial(&self) -> u64 {
        self.kept.serial()
    }

    /// Ends the step: commits the best of `choices`, one for each wanted position in that order.
    ///
    /// A position without a choice, or whose choice is the mask token or no token at all, keeps its
    /// mask. Once the run is done nothing happens.
    pub fn commit(&mut self, choices: &[Choice]) -> Progress<'_> {
        let was_done = self.is_done();
        self.plan_step();
        debug_assert_eq!(choices.len(), self.wanted_count, "a choice for each wanted position");
        let wanted = &self.wanted[..self.wanted_count];
        let may_flood = self.schedule.pace().is_adaptive() && self.place.step_in_block == 0;
        let mut picked = self.pick.among(wanted, choices, &mut self.scratch);
        let mut first = 0;
        if may_flood && is_flood(picked, wanted, choices, &self.ends) {
            let others = others_than_first_generated(wanted, self.prompt_len);
            first = others.start;
            let best = Pick::Best { count: 1 };
            picked = best.among(&wanted[others.clone()], &choices[others], &mut self.scratch);
        }
        let mut count = 0;
        for &index in picked {
            let Wanted { position, .. } = wanted[first + index as usize];
            let Choice { token, confidence, .. } = choices[first + index as usize];
            if token == self.rule.mask_token || token >= self.vocab_size {
                continue;
            }
            self.ids[position as usize] = token;
            // Only masks are ever replaced, so this was one at the start.
            if let Some(id) = self.unconditional.get_mut(position as usize) {
                *id = token;
            }
            self.committed[count] = Committed { position, token, confidence };
            count += 1;
        }
        self.masks_left -= count as u32;
        if self.wanted_count > 0 {
            let ends = |committed: &[Committed]| {
                let (first, last) = (committed.first()?, committed.last()?);
                Some(first.position as usize..last.position as usize + 1)
            };
            let changed = ends(&self.committed[..count]).unwrap_or_default();
            self.kept.count_pass(self.schedule.refresh(), changed);
        }
        let step = self.step;
        if !was_done {
            self.advance();
        }
        Progress {
            step,
            committed: &self.committed[..count],
            masks_left: self.masks_left,
            is_done: self.is_done(),
            needs_kept: self.needs_kept(),
        }
    }

    /// Whether all steps are done, or everything left of the first end token is committed, or an
    /// adaptive pace has filled the canvas.
    pub fn is_done(&self) -> bool {
        let is_full = self.masks_left == 0 && self.schedule.pace().is_adaptive();
        self.stopped || is_full || self.step >= self.steps_total()
    }

    /// Whether an adaptive run ended because it had no more steps, with masks that it would have
    /// filled.
    pub fn has_run_out_of_steps(&self) -> bool {
        let is_adaptive = self.schedule.pace().is_adaptive();
        is_adaptive && !self.stopped && self.masks_left > 0 && self.step >= self.steps_total()
    }

    /// Whether the run ended at an end token before all steps were done.
    pub fn has_stopped_early(&self) -> bool {
        self.stopped && self.step < self.steps_total()
    }

    /// Steps ended so far, which is the index of the next one (`choose` wants it).
    pub fn step_index(&self) -> u32 {
        self.step
    }

    /// Steps of the whole run, unless it stops early; of an adaptive pace the most there can be.
    pub fn steps_total(&self) -> u32 {
        match self.schedule.pace() {
            Pace::Steps => self.blocks.steps_total(),
            // A step commits something, unless its choices are no tokens: then this ends it.
            _ => self.schedule.steps_total(self.masks_total() - self.schedule.gen_length()),
        }
    }

    /// Masks that there were at the start, those that a canvas may grow by among them.
    pub fn masks_total(&self) -> u32 {
        self.wanted.len() as u32
    }

    /// Masks on the whole canvas.
    pub fn masks_left(&self) -> u32 {
        self.masks_left
    }

    fn plan_llada(&mut self) {
        let (block, end) = (self.place.block, self.block_end());
        if self.place.step_in_block == 0 {
            let is_mask = |id: &&u32| **id == self.rule.mask_token;
            self.place.masks = self.ids[..end].iter().filter(is_mask).count() as u32;
        }
        let steps = self.blocks.steps(block);
        let count = shares::share(self.place.masks, steps, self.place.step_in_block);
        self.pick = Pick::Best { count };
        if count > 0 {
            self.want(end, |_| true);
        }
    }

    fn plan_adaptive(&mut self, pace: Pace) {
        let algorithm = self.rule.algorithm;
        self.pick = match pace {
            Pace::Threshold(threshold) => Pick::Sure { algorithm, threshold },
            Pace::Factor(factor) => Pick::Within { algorithm, factor },
            Pace::Steps => unreachable!("a pace of steps has plans of its own"),
        };
        self.want(self.block_end(), |_| true);
    }

    /// Positions left of the current block's end.
    fn block_end(&self) -> usize {
        self.prompt_len + self.blocks.end(self.place.block) as usize
    }

    fn plan_dream(&mut self) {
        let Self { step, rule: Rule { seed, .. }, .. } = *self;
        let leaving = shares::leaving(self.schedule.eps(), self.steps_total(), step);
        let positions = self.ids.len();
        if self.rule.algorithm == Algorithm::Origin {
            self.pick = Pick::Best { count: u32::MAX };
            let chance = f64::from(leaving);
            self.want(positions, |position| {
                rng::draw_uniform(seed, step, position, Stream::Transfer) < chance
            });
            return;
        }
        // Truncated, so that the first step may commit none; the last one takes all.
        let count = (self.masks_left as f32 * leaving) as u32;
        self.pick = match self.schedule.alg_temp() {
            heat if heat > 0.0 => Pick::Drawn { count, heat, seed, step },
            _ => Pick::Best { count },
        };
        if count > 0 {
            self.want(positions, |_| true);
        }
    }

    /// Wants every mask left of `end` that `is_candidate`.
    fn want(&mut self, end: usize, is_candidate: impl Fn(u32) -> bool) {
        for (position, &id) in (0_u32..).zip(&self.ids[..end]) {
            if id == self.rule.mask_token && is_candidate(position) {
                let row = position.saturating_sub(u32::from(self.shift_logits));
                self.wanted[self.wanted_count] = Wanted { position, row };
                self.wanted_count += 1;
            }
        }
    }

    /// Goes on to the next step of a run that is not done.
    fn advance(&mut self) {
        self.planned = false;
        self.step += 1;
        self.place.step_in_block += 1;
        if self.schedule.pace().is_adaptive() {
            while self.masks_left > 0
                && !self.ids[..self.block_end()].contains(&self.rule.mask_token)
            {
                self.next_block();
            }
        } else if self.place.step_in_block >= self.blocks.steps(self.place.block) {
            self.next_block();
        }
        self.stopped = self.schedule.early_stop() && self.has_ended();
        if self.is_done() {
            self.planned = true;
            self.wanted_count = 0;
        }
    }

    fn next_block(&mut self) {
        self.place = Place { block: self.place.block + 1, ..Place::default() };
        self.kept.begin_block();
    }

    /// Whether an end token of the generated part comes before every mask.
    fn has_ended(&self) -> bool {
        let decisive = |&(position, id): &(usize, u32)| {
            id == self.rule.mask_token || (position >= self.prompt_len && self.ends.contains(id))
        };
        let first = self.ids.iter().copied().enumerate().find(decisive);
        first.is_some_and(|(_, id)| id != self.rule.mask_token)
    }
}

/// Whether every candidate would become an end at once. At a block's first step that is an answer
/// that is over before it began: no model is that sure of it for a good reason, and one that means
/// it says so again at the next step, beside the one end that this one commits.
fn is_flood(picked: &[u32], wanted: &[Wanted], choices: &[Choice], ends: &TokenSet) -> bool {
    let is_end = |index: &u32| ends.contains(choices[*index as usize].token);
    picked.len() > 1 && picked.len() == wanted.len() && picked.iter().all(is_end)
}

/// Of the candidates of a flood, two at least, those that may commit all the same: not the first
/// generated position, where an end would be the last word.
fn others_than_first_generated(wanted: &[Wanted], prompt_len: usize) -> Range<usize> {
    let holes = wanted.partition_point(|wanted| (wanted.position as usize) < prompt_len);
    if holes + 1 < wanted.len() { holes + 1..wanted.len() } else { 0..holes }
}

/// Positions of the canvas, when prompt and model allow one.
fn checked_len(prompt: &[u32], schedule: &Schedule, facts: &ModelFacts) -> Result<usize, Fault> {
    let ModelFacts { mask_token, vocab_size, .. } = *facts;
    if mask_token >= vocab_size {
        return Err(Fault::MaskToken { token: mask_token, vocab_size });
    }
    let positions_max = CANVAS_MAX as usize;
    let positions = prompt.len().saturating_add(schedule.gen_length() as usize);
    if positions > positions_max {
        return Err(Fault::TooLong { positions, positions_max });
    }
    if positions == 0 {
        return Err(Fault::Empty);
    }
    let outside = |(position, &token): (usize, &u32)| {
        (token >= vocab_size).then_some(Fault::PromptToken { position, token, vocab_size })
    };
    prompt.iter().enumerate().find_map(outside).map_or(Ok(positions), Err)
}

/// The rule for a schedule on a model, and the tokens that end a text.
fn rule(schedule: &Schedule, facts: &ModelFacts) -> Result<(Rule, TokenSet), Fault> {
    let set = |ids: &[u32], other: &[u32]| {
        let count = ids.len() + other.len();
        TokenSet::new(ids.iter().chain(other).copied()).ok_or(Fault::EndTokens { count })
    };
    let ends = set(&facts.end_of_text, &facts.end_of_turn)?;
    let none = TokenSet::default();
    let forbid = schedule.forbid_end_in_logits();
    let forbidden = if forbid { set(&facts.end_of_text, &[])? } else { none };
    let is_real = |id: &&u32| **id < facts.vocab_size && **id != facts.mask_token;
    let refused = 1 + forbidden.ids().iter().filter(is_real).count();
    if refused >= facts.vocab_size as usize {
        return Err(Fault::NothingAllowed);
    }
    let distrusted = if schedule.zero_end_confidence() { ends } else { none };
    Ok((schedule.rule(facts.mask_token, forbidden, distrusted), ends))
}
