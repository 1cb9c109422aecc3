//! The token ids of a request while its masks are being filled.

use super::error::Error;
use super::parameters::{CANVAS_MAX, GenerationParameters};
use super::policy::{Candidate, Policy, Scratch, Selection, touched};
use super::schedule::{self, Blocks};
use crate::sample::rng::{self, Stream};
use crate::sample::{Algorithm, Choice, Kind, Rule, TokenSet};
use std::ops::Range;

/// What a canvas must know of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFacts {
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
}

/// Token ids of prompt and generated part, and the state of the run.
#[derive(Clone, Debug)]
pub struct Canvas {
    parameters: GenerationParameters,
    rule: Rule,
    ends: TokenSet,
    vocab_size: u32,
    shift_logits: bool,
    prompt_len: usize,
    /// Runs of masks in the prompt.
    holes: Box<[Range<usize>]>,
    ids: Box<[u32]>,
    /// Of these, those that passes read.
    visible: usize,
    unconditional: Box<[u32]>,
    masks_left: u32,
    blocks: Blocks,
    place: Place,
    step: u32,
    stopped: bool,
    /// Whether `candidates` and `selection` are those of the current step.
    planned: bool,
    selection: Selection,
    /// Room for as many as there were masks at the start.
    candidates: Box<[Candidate]>,
    candidate_count: usize,
    committed: Box<[Committed]>,
    committed_count: usize,
    /// The step that was ended last.
    last_step: u32,
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
    pub fn new(
        prompt: &[u32],
        parameters: &GenerationParameters,
        facts: &TokenFacts,
    ) -> Result<Self, Error> {
        let positions = checked_len(prompt, parameters, facts)?;
        let (rule, ends) = rule(parameters, facts)?;
        let mut ids = touched(facts.mask_token, positions);
        let guided = if parameters.cfg_scale > 0.0 { positions } else { 0 };
        let unconditional = ids[..guided].into();
        ids[..prompt.len()].copy_from_slice(prompt);
        let masks_left = ids.iter().filter(|id| **id == facts.mask_token).count() as u32;
        let blocks = parameters.blocks(masks_left);
        let begun = if parameters.grow { blocks.end(0) } else { parameters.max_tokens };
        Ok(Canvas {
            rule,
            ends,
            vocab_size: facts.vocab_size,
            shift_logits: facts.shift_logits,
            prompt_len: prompt.len(),
            holes: holes(prompt, facts.mask_token),
            ids,
            unconditional,
            masks_left,
            visible: prompt.len() + begun as usize,
            blocks,
            place: Place::default(),
            step: 0,
            stopped: false,
            planned: false,
            selection: Selection::Best { count: 0 },
            candidates: touched(Candidate::default(), masks_left as usize),
            candidate_count: 0,
            committed: touched(Committed::default(), masks_left as usize),
            committed_count: 0,
            last_step: 0,
            scratch: Scratch::new(masks_left as usize),
            parameters: parameters.clone(),
        })
    }

    /// Its parameters.
    pub fn parameters(&self) -> &GenerationParameters {
        &self.parameters
    }

    /// How each output row is to be turned into a choice.
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

    /// The holes of the prompt: runs of positions that were masks at the start.
    pub fn holes(&self) -> impl ExactSizeIterator<Item = Range<usize>> {
        self.holes.iter().cloned()
    }

    /// The positions that want a token at this step, in order, and the rows that predict them.
    ///
    /// Empty: the step commits nothing, whatever the logits, and its forward pass may be left out
    /// without changing any result. It must be ended with `commit(&[])` all the same, and counts as
    /// a step. Asking twice gives the same answer.
    pub fn plan_step(&mut self) -> &[Candidate] {
        if !self.planned {
            self.planned = true;
            self.candidate_count = 0;
            if !self.is_done() {
                self.visible = self.visible.max(self.block_end());
                match (self.parameters.policy(), self.parameters.kind) {
                    (Policy::Steps, Kind::Llada) => self.plan_llada(),
                    (Policy::Steps, Kind::Dream) => self.plan_dream(),
                    (policy, _) => self.plan_adaptive(policy),
                }
            }
        }
        &self.candidates[..self.candidate_count]
    }

    /// The positions of the current block, and its number; the block is empty where nothing is
    /// generated.
    pub fn block(&self) -> (Range<usize>, u32) {
        let start = self.prompt_len + self.blocks.start(self.place.block) as usize;
        (start..self.block_end(), self.place.block)
    }

    /// Ends the step: commits the best of `choices`, one for each candidate in that order.
    ///
    /// A position without a choice, or whose choice is the mask token or no token at all, keeps its
    /// mask. Once the run is done nothing happens.
    pub fn commit(&mut self, choices: &[Choice]) -> Progress<'_> {
        let was_done = self.is_done();
        self.plan_step();
        debug_assert_eq!(choices.len(), self.candidate_count, "a choice for each candidate");
        let candidates = &self.candidates[..self.candidate_count];
        let may_flood = self.parameters.is_adaptive() && self.place.step_in_block == 0;
        let mut picked = self.selection.among(candidates, choices, &mut self.scratch);
        let mut first = 0;
        if may_flood && is_flood(picked, candidates, choices, &self.ends) {
            let others = others_than_first_generated(candidates, self.prompt_len);
            first = others.start;
            let best = Selection::Best { count: 1 };
            picked = best.among(&candidates[others.clone()], &choices[others], &mut self.scratch);
        }
        let mut count = 0;
        for &index in picked {
            let Candidate { position, .. } = candidates[first + index as usize];
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
        (self.committed_count, self.last_step) = (count, self.step);
        if !was_done {
            self.advance();
        }
        self.progress()
    }

    /// What the last step did; of a run that has not begun, nothing.
    pub fn progress(&self) -> Progress<'_> {
        Progress {
            step: self.last_step,
            committed: &self.committed[..self.committed_count],
            masks_left: self.masks_left,
            is_done: self.is_done(),
        }
    }

    /// Whether all steps are done, or everything left of the first end token is committed, or an
    /// adaptive policy has filled the canvas.
    pub fn is_done(&self) -> bool {
        let is_full = self.masks_left == 0 && self.parameters.is_adaptive();
        self.stopped || is_full || self.step >= self.steps_total()
    }

    /// Whether an adaptive run ended because it had no more steps, with masks that it would have
    /// filled.
    pub fn has_run_out_of_steps(&self) -> bool {
        let is_adaptive = self.parameters.is_adaptive();
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

    /// Steps of the whole run, unless it stops early; of an adaptive policy the most there can be.
    pub fn steps_total(&self) -> u32 {
        match self.parameters.policy() {
            Policy::Steps => self.blocks.steps_total(),
            // A step commits something, unless its choices are no tokens: then this ends it.
            _ => self.parameters.steps_total(self.masks_total() - self.parameters.max_tokens),
        }
    }

    /// Masks that there were at the start, those that a canvas may grow by among them.
    pub fn masks_total(&self) -> u32 {
        self.candidates.len() as u32
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
        let count = schedule::share(self.place.masks, steps, self.place.step_in_block);
        self.selection = Selection::Best { count };
        if count > 0 {
            self.want(end, |_| true);
        }
    }

    fn plan_adaptive(&mut self, policy: Policy) {
        let algorithm = self.rule.algorithm;
        self.selection = match policy {
            Policy::Threshold(threshold) => Selection::Sure { algorithm, threshold },
            Policy::Factor(factor) => Selection::Within { algorithm, factor },
            Policy::Steps => unreachable!("the plain loops have plans of their own"),
        };
        self.want(self.block_end(), |_| true);
    }

    /// Positions left of the current block's end.
    fn block_end(&self) -> usize {
        self.prompt_len + self.blocks.end(self.place.block) as usize
    }

    fn plan_dream(&mut self) {
        let Self { step, rule: Rule { seed, .. }, .. } = *self;
        let leaving = schedule::leaving(self.parameters.eps, self.steps_total(), step);
        let positions = self.ids.len();
        if self.rule.algorithm == Algorithm::Origin {
            self.selection = Selection::Best { count: u32::MAX };
            let chance = f64::from(leaving);
            self.want(positions, |position| {
                rng::draw_uniform(seed, step, position, Stream::Transfer) < chance
            });
            return;
        }
        // Truncated, so that the first step may commit none; the last one takes all.
        let count = (self.masks_left as f32 * leaving) as u32;
        self.selection = match self.parameters.alg_temp {
            heat if heat > 0.0 => Selection::Drawn { count, heat, seed, step },
            _ => Selection::Best { count },
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
                self.candidates[self.candidate_count] = Candidate { position, row };
                self.candidate_count += 1;
            }
        }
    }

    /// Goes on to the next step of a run that is not done.
    fn advance(&mut self) {
        self.planned = false;
        self.step += 1;
        self.place.step_in_block += 1;
        if self.parameters.is_adaptive() {
            while self.masks_left > 0
                && !self.ids[..self.block_end()].contains(&self.rule.mask_token)
            {
                self.next_block();
            }
        } else if self.place.step_in_block >= self.blocks.steps(self.place.block) {
            self.next_block();
        }
        self.stopped = self.parameters.early_stop && self.has_ended();
        if self.is_done() {
            self.planned = true;
            self.candidate_count = 0;
        }
    }

    fn next_block(&mut self) {
        self.place = Place { block: self.place.block + 1, ..Place::default() };
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
fn is_flood(picked: &[u32], candidates: &[Candidate], choices: &[Choice], ends: &TokenSet) -> bool {
    let is_end = |index: &u32| ends.contains(choices[*index as usize].token);
    picked.len() > 1 && picked.len() == candidates.len() && picked.iter().all(is_end)
}

/// Of the candidates of a flood, two at least, those that may commit all the same: not the first
/// generated position, where an end would be the last word.
fn others_than_first_generated(candidates: &[Candidate], prompt_len: usize) -> Range<usize> {
    let holes =
        candidates.partition_point(|candidates| (candidates.position as usize) < prompt_len);
    if holes + 1 < candidates.len() { holes + 1..candidates.len() } else { 0..holes }
}

/// Runs of masks.
fn holes(prompt: &[u32], mask: u32) -> Box<[Range<usize>]> {
    let (mut holes, mut position) = (Vec::new(), 0);
    for run in prompt.chunk_by(|a, b| (*a == mask) == (*b == mask)) {
        if run.contains(&mask) {
            holes.push(position..position + run.len());
        }
        position += run.len();
    }
    holes.into()
}

/// Positions of the canvas, when prompt and model allow one.
fn checked_len(
    prompt: &[u32],
    parameters: &GenerationParameters,
    facts: &TokenFacts,
) -> Result<usize, Error> {
    let TokenFacts { mask_token, vocab_size, .. } = *facts;
    if mask_token >= vocab_size {
        return Err(Error::MaskToken { token: mask_token, vocab_size });
    }
    let positions_max = CANVAS_MAX as usize;
    let positions = prompt.len().saturating_add(parameters.max_tokens as usize);
    if positions > positions_max {
        return Err(Error::TooLong { positions, positions_max });
    }
    if positions == 0 {
        return Err(Error::Empty);
    }
    let outside = |(position, &token): (usize, &u32)| {
        (token >= vocab_size).then_some(Error::PromptToken { position, token, vocab_size })
    };
    prompt.iter().enumerate().find_map(outside).map_or(Ok(positions), Err)
}

/// The rule for a schedule on a model, and the tokens that end a text.
fn rule(parameters: &GenerationParameters, facts: &TokenFacts) -> Result<(Rule, TokenSet), Error> {
    let set = |ids: &[u32], other: &[u32]| {
        let count = ids.len() + other.len();
        TokenSet::new(ids.iter().chain(other).copied()).ok_or(Error::EndTokens { count })
    };
    let ends = set(&facts.end_of_text, &facts.end_of_turn)?;
    let none = TokenSet::default();
    let forbid = parameters.forbid_end;
    let forbid_end = if forbid { set(&facts.end_of_text, &[])? } else { none };
    let is_real = |id: &&u32| **id < facts.vocab_size && **id != facts.mask_token;
    let refused = 1 + forbid_end.ids().iter().filter(is_real).count();
    if refused >= facts.vocab_size as usize {
        return Err(Error::NothingAllowed);
    }
    let distrust_end = if parameters.distrust_end { ends } else { none };
    Ok((parameters.rule(facts.mask_token, forbid_end, distrust_end), ends))
}
