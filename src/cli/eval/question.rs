//! Tasks as questions, and what was written on them as answers.

use super::tasks::Task;
use crate::cli::args::one_line;
use crate::cli::failure::Failure;
use dllm_rt::generate::PreparedRequest;
use dllm_rt::vocab::Special;
use dllm_rt::{Canvas, GenerationParameters, Model, Prompt, Request, RequestParameters};
use std::ops::Range;
use std::time::Duration;

/// A task that is ready to be put before a model.
pub struct Question<'a> {
    pub task: &'a Task,
    /// What is on the canvas at the start: the user's turn, and for a task with holes the answer
    /// with masks in them.
    pub given: Vec<u32>,
    pub start: usize,
    pub answer_len: usize,
    /// Masks of its holes; 0: the whole answer is to be written.
    pub holes: usize,
}

impl<'a> Question<'a> {
    /// Encodes a task, without the chat template if `is_plain`.
    pub fn new(task: &'a Task, model: &Model, is_plain: bool) -> Result<Question<'a>, Failure> {
        let (vocab, mask) = (model.vocab(), model.facts().mask_token);
        let prompt = match is_plain {
            true => Prompt::Text { text: task.prompt.clone(), special: Special::AsText },
            false => Prompt::user(&task.prompt),
        };
        let mut given = prompt.encode(vocab, None)?;
        let answer = vocab.encode_normalized(&task.answer, Special::AsText)?;
        let (start, mut holes, answer_len) = (given.len(), 0, answer.len());
        if !task.holes.is_empty() {
            let spans = spans(&answer, model, task)?;
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
                given.push(if is_hole { mask } else { id });
            }
            // The turn ends where the answer does.
            given.extend(vocab.eot_id().or(vocab.eos_id()));
        }
        Ok(Question { task, given, start, answer_len, holes })
    }

    /// Positions of its canvas, with `max_tokens` for an answer that is to be written.
    pub fn rows(&self, max_tokens: u32) -> usize {
        self.given.len() + if self.holes > 0 { 0 } else { max_tokens as usize }
    }

    /// The request for it: with `asked`, which make `whole`, or for a task with holes with as many
    /// steps as fill as many masks a step.
    pub fn prepare(
        &self,
        model: &Model,
        asked: &RequestParameters,
        whole: &GenerationParameters,
        deadline: Option<Duration>,
    ) -> Result<PreparedRequest, Failure> {
        let mut parameters = asked.clone();
        if self.holes > 0 {
            // In 64 bits, since both may be a million.
            let (holes, length) = (self.holes as u64, u64::from(whole.max_tokens));
            let steps = holes * u64::from(whole.steps_total(0));
            parameters.steps = match whole.is_adaptive() && whole.steps.is_none() {
                true => None,
                false => Some(steps.div_ceil(length).clamp(1, holes) as u32),
            };
            parameters.max_tokens = 0;
        }
        let request = Request::ids(self.given.clone());
        Ok(model.prepare(&Request { parameters, deadline, ..request })?)
    }

    /// The answer that a canvas holds, and how many tokens the model wrote of it.
    pub fn read(&self, model: &Model, canvas: &Canvas) -> Result<(String, usize), Failure> {
        let ids = &canvas.ids()[self.start..];
        let len = ids.iter().position(|id| model.is_end(*id)).unwrap_or(ids.len());
        let mask = model.facts().mask_token;
        let given = self.given[self.start..].iter().copied().chain(std::iter::repeat(mask));
        let is_written = |(id, given): &(&u32, u32)| *given == mask && **id != mask;
        let written = ids[..len].iter().zip(given).filter(is_written).count();
        Ok((model.text(&ids[..len])?, written))
    }
}

/// The bytes of the answer that each of its tokens stands for.
fn spans(ids: &[u32], model: &Model, task: &Task) -> Result<Vec<Range<usize>>, Failure> {
    let answer = task.answer.as_bytes();
    let mut spans: Vec<Range<usize>> = Vec::with_capacity(ids.len());
    for id in ids {
        let start = spans.last().map_or(0, |span| span.end);
        let bytes = model.vocab().token_bytes(*id).unwrap_or_default();
        if answer.get(start..start + bytes.len()) != Some(bytes) {
            break;
        }
        spans.push(start..start + bytes.len());
    }
    match spans.len() == ids.len() && spans.last().map_or(0, |span| span.end) == answer.len() {
        true => Ok(spans),
        false => Err(Failure::Beyond(format!(
            "the tokens of `{}` do not add up to it: this model's tokenizer changes text, so no \
             hole can be placed",
            one_line(&task.answer)
        ))),
    }
}
