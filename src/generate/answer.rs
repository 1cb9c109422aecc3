//! The answer that a canvas holds: its text to where it ends, why it ends there, what it cost.

use super::generation::{FinishReason, Generation};
use super::model::Model;
use super::prompt::filled;
use super::request::Request;
use crate::engine::Engine;
use crate::error::Error;
use serde::Serialize;
use std::fmt;

/// What an answer took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Tokens of the prompt, holes included.
    pub prompt_tokens: usize,
    /// Tokens that were generated up to the first end token; the end token, masks and what comes
    /// after are not counted, tokens in holes and after a stop text are.
    pub completion_tokens: usize,
}

/// What a hole of the prompt was filled with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FilledHole {
    /// Its first position on the canvas.
    pub position: usize,
    /// The ids in it.
    pub tokens: Vec<u32>,
    /// Their text, masks left out.
    pub text: String,
}

impl fmt::Display for FilledHole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hole at position {}: {:?}", self.position, self.text)
    }
}

/// The text that a canvas holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The generated part up to its end, masks left out. Where there is none: the turns that had
    /// holes, filled, or the whole canvas of a prompt that is no conversation.
    pub text: String,
    /// Why it ends there.
    pub finish_reason: FinishReason,
    /// The prompt's holes, adjacent masks as one.
    pub holes: Vec<FilledHole>,
    /// What it took.
    pub usage: Usage,
    /// Positions that are still masked.
    pub masks_left: u32,
}

impl Model {
    /// The whole answer to a request.
    ///
    /// # Errors
    /// As [`Model::start`], and those of decoding.
    pub fn generate(&self, engine: &mut Engine, request: &Request) -> Result<Answer, Error> {
        let mut generation = self.start(engine, request)?;
        let mut stepped = Ok(());
        while stepped.is_ok() && !generation.is_over() {
            stepped = generation.step(engine).map(drop);
        }
        engine.release(generation.sequence());
        stepped.and_then(|()| self.answer(&generation))
    }

    /// The answer that a generation holds, at any time.
    ///
    /// # Errors
    /// Those of decoding.
    pub fn answer(&self, generation: &Generation) -> Result<Answer, Error> {
        let canvas = generation.canvas();
        let (prompt, generated) = canvas.ids().split_at(canvas.prompt_len());
        let end = generated.iter().position(|id| self.is_end(*id));
        let mask = self.facts().mask_token;
        // Stop texts are looked for in what was generated, not in the user's own text.
        let (shown, stop) = match generated.is_empty() {
            true => (prompt, &[][..]),
            false => (&generated[..end.unwrap_or(generated.len())], generation.stop()),
        };
        let (mut text, mut masks, mut has_ended) = (String::new(), 0, end.is_some());
        // What masks keep apart is not one text, in which a stop text might be found.
        for (before, run) in shown.split(|id| *id == mask).enumerate() {
            masks = before;
            let part = self.text(run)?;
            let stop = stop.iter().filter_map(|stop| part.find(stop.as_str())).min();
            text.push_str(&part[..stop.unwrap_or(part.len())]);
            if stop.is_some() {
                has_ended = true;
                break;
            }
        }
        let is_whole = has_ended && masks == 0 && !prompt.contains(&mask);
        let finish_reason = match generation.cut() {
            Some(FinishReason::Interrupt) => FinishReason::Interrupt,
            _ if is_whole => FinishReason::Stop,
            Some(cut) => cut,
            None if canvas.has_run_out_of_steps() => FinishReason::Steps,
            None if has_ended => FinishReason::Stop,
            None => FinishReason::Length,
        };
        let holes = holes(self, generation)?;
        if generated.is_empty() && !generation.turns().is_empty() {
            text = filled(generation.turns(), holes.iter().map(|hole| hole.text.as_str()))?;
        }
        let is_token = |id: &&u32| **id != mask;
        let written = generated[..end.unwrap_or(generated.len())].iter().filter(is_token).count();
        let filled: usize =
            holes.iter().map(|hole| hole.tokens.iter().filter(is_token).count()).sum();
        let usage = Usage { prompt_tokens: prompt.len(), completion_tokens: written + filled };
        Ok(Answer { text, finish_reason, holes, usage, masks_left: canvas.masks_left() })
    }
}

fn holes(model: &Model, generation: &Generation) -> Result<Vec<FilledHole>, Error> {
    let canvas = generation.canvas();
    let hole = |range: std::ops::Range<usize>| {
        let tokens = canvas.ids()[range.clone()].to_vec();
        Ok(FilledHole { position: range.start, text: model.text(&tokens)?, tokens })
    };
    canvas.holes().map(hole).collect()
}
