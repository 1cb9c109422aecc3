//! The token ids of a request while its masks are being filled.
use super::{Fault, Schedule};
use crate::sample::{Algorithm, Choice, Rule, TokenSet};

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
}

/// Token ids of prompt and generated part, and the state of the run.
#[derive(Clone, Debug)]
pub struct Canvas {
    rule: Rule,
    ids: Box<[u32]>,
}

impl Canvas {
    /// Lays out prompt and masks, and all memory that the run will need.
    ///
    /// # Errors
    /// An id outside the vocabulary, too many positions, nothing to do at all.
    pub fn new(prompt: &[u32], schedule: &Schedule, facts: &ModelFacts) -> Result<Self, Fault> {
        let _ = schedule;
        Ok(Canvas {
            rule: Rule {
                algorithm: Algorithm::Random,
                temperature: 0.0,
                top_p: 1.0,
                top_k: 0,
                mask_token: facts.mask_token,
                seed: 0,
                cfg_scale: 0.0,
                forbidden: TokenSet::default(),
                distrusted: TokenSet::default(),
            },
            ids: prompt.into(),
        })
    }

    /// How each wanted row is to be turned into a choice.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Prompt and generated part, `[positions]`; what the forward pass reads.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The ids for the second pass of guidance: as [`ids`](Self::ids), but every token that was not
    /// a mask at the start is masked. Empty unless `cfg_scale` is above 0.
    pub fn unconditional_ids(&self) -> &[u32] {
        &self.ids
    }

    /// Tokens of the prompt, holes included.
    pub fn prompt_len(&self) -> usize {
        0
    }

    /// The positions that want a token at this step, in order, and the rows that predict them.
    /// Empty: the step commits nothing and its forward pass may be left out, which changes no
    /// result; it must be ended with `commit(&[])` all the same, and counts as a step.
    pub fn plan_step(&mut self) -> &[Wanted] {
        &[]
    }

    /// Ends the step: commits the best of `choices`, one for each wanted position in that order.
    pub fn commit(&mut self, choices: &[Choice]) -> Progress<'_> {
        let _ = choices;
        Progress {
            step: 0,
            committed: &[],
            masks_left: 0,
            is_done: true,
        }
    }

    /// Whether all steps are done, or everything left of the first end token is committed.
    pub fn is_done(&self) -> bool {
        true
    }

    /// Steps ended so far, which is the index of the next one (`choose` wants it).
    pub fn step_index(&self) -> u32 {
        0
    }

    /// Steps of the whole run, unless it stops early.
    pub fn steps_total(&self) -> u32 {
        0
    }

    /// Masks on the whole canvas.
    pub fn masks_left(&self) -> u32 {
        0
    }
}
