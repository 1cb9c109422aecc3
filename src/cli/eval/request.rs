//! Tasks as canvases, and what was written on them as answers.

use super::tasks::Task;
use crate::cli::answer;
use crate::cli::args::one_line;
use crate::cli::failure::Failure;
use crate::cli::prompt::message;
use crate::cli::session::Session;
use dllm_rt::denoise::{Pace, Settings};
use dllm_rt::vocab::Special;
use dllm_rt::{Canvas, Schedule};
use std::ops::Range;

/// A task that is ready to be put before a model.
pub struct Request<'a> {
    /// What it was made from.
    pub task: &'a Task,
    /// What is on the canvas at the start: the user's turn, and for a task with holes the answer
    /// with masks in them.
    pub given: Vec<u32>,
    /// Where the answer begins.
    pub start: usize,
    /// Tokens of the right answer.
    pub answer_len: usize,
    /// Masks of its holes; 0: the whole answer is to be written.
    pub holes: usize,
    /// All masks on the canvas at the start: those of the holes, and any that the prompt's own
    /// tokens are.
    pub masks: usize,
}

impl<'a> Request<'a> {
    /// Encodes a task, without the chat template if `is_plain`.
    ///
    /// # Errors
    /// Text that the tokenizer cannot encode, or not so that its tokens add up to it.
    pub fn new(task: &'a Task, session: &Session, is_plain: bool) -> Result<Request<'a>, Failure> {
        let vocab = &session.vocab;
        let mut given = match is_plain {
            true => vocab.encode_prompt(&task.prompt, Special::AsText)?,
            false => vocab.encode_chat(&[message("user", &task.prompt)])?,
        };
        let answer = vocab.encode(&task.answer, Special::AsText)?;
        let (start, mut holes, answer_len) = (given.len(), 0, answer.len());
        if !task.holes.is_empty() {
            let spans = spans(&answer, session, task)?;
            let mut rest = task.holes.as_slice();
            for (id, span) in answer.into_iter().zip(spans) {
                // Both come in order.
                while let Some((first, after)) = rest.split_first()
                    && first.end <= span.start
                {
                    rest = after;
                }
                let is_hole = rest.first().is_some_and(|hole| hole.start < span.end);
                holes += usize::from(is_hole);
                given.push(if is_hole { session.facts.mask_token } else { id });
            }
            // The turn ends where the answer does.
            given.extend(vocab.eot_id().or(vocab.eos_id()));
        }
        let masks = given.iter().filter(|id| **id == session.facts.mask_token).count();
        Ok(Request { task, given, start, answer_len, holes, masks })
    }

    /// Positions of its canvas, with `gen_length` for an answer that is to be written.
    pub fn rows(&self, gen_length: u32) -> usize {
        self.given.len() + if self.holes > 0 { 0 } else { gen_length as usize }
    }

    /// The schedule for it: `whole`, which `settings` make, or for a task with holes one that fills
    /// as many masks a step.
    ///
    /// # Errors
    /// More holes than any run has steps.
    pub fn schedule(&self, settings: &Settings, whole: &Schedule) -> Result<Schedule, Failure> {
        if self.holes == 0 {
            return Ok(whole.clone());
        }
        // In 64 bits, since both may be a million.
        let (holes, length) = (self.holes as u64, u64::from(whole.gen_length()));
        let steps = match (whole.pace(), whole.steps()) {
            (Pace::Threshold(_) | Pace::Factor(_), None) => None,
            _ => {
                let steps = holes * u64::from(whole.steps_total(0));
                Some(steps.div_ceil(length).clamp(1, holes) as u32)
            }
        };
        let settings = Settings { gen_length: 0, steps, ..settings.clone() };
        Ok(Schedule::new(whole.kind(), &settings)?)
    }

    /// The answer that a canvas holds, and how many tokens the model wrote of it.
    ///
    /// # Errors
    /// Those of decoding.
    pub fn read(&self, session: &Session, canvas: &Canvas) -> Result<(String, usize), Failure> {
        let ids = &canvas.ids()[self.start..];
        let len = ids.iter().position(|id| session.is_end(*id)).unwrap_or(ids.len());
        let mask = session.facts.mask_token;
        let given = self.given[self.start..].iter().copied().chain(std::iter::repeat(mask));
        let is_written = |(id, given): &(&u32, u32)| *given == mask && **id != mask;
        let written = ids[..len].iter().zip(given).filter(is_written).count();
        Ok((answer::text(session, &ids[..len])?, written))
    }
}

/// The bytes of the answer that each of its tokens stands for.
fn spans(ids: &[u32], session: &Session, task: &Task) -> Result<Vec<Range<usize>>, Failure> {
    let answer = task.answer.as_bytes();
    let mut spans: Vec<Range<usize>> = Vec::with_capacity(ids.len());
    for id in ids {
        let start = spans.last().map_or(0, |span| span.end);
        let bytes = session.vocab.token_bytes(*id).unwrap_or_default();
        if answer.get(start..start + bytes.len()) != Some(bytes) {
            break;
        }
        spans.push(start..start + bytes.len());
    }
    match spans.len() == ids.len() && spans.last().map_or(0, |span| span.end) == answer.len() {
        true => Ok(spans),
        false => Err(Failure::Task(format!(
            "the tokens of `{}` do not add up to it: this model's tokenizer changes text, so no \
             hole can be placed",
            one_line(&task.answer)
        ))),
    }
}
