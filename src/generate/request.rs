//! A request, as asked and as prepared for a model, and the limits that follow from it.

use super::prompt::Prompt;
use crate::backend::{Limits, physical_count};
use crate::denoise::{Cache, GenerationParameters, RequestParameters, TokenFacts};
use crate::vocab::{Message, Special};
use std::time::Duration;

/// What is asked of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What the canvas begins with.
    pub prompt: Prompt,
    /// Whether `[[n]]` in the prompt's text is a hole of n tokens to fill in place.
    pub holes: bool,
    /// How the text is generated.
    pub parameters: RequestParameters,
    /// The text ends before the first of these in the generated part.
    pub stop: Vec<String>,
    /// The longest that generating may take, from its start; then the best text so far counts.
    pub deadline: Option<Duration>,
}

impl Request {
    /// A request with default parameters.
    pub fn new(prompt: Prompt) -> Request {
        let (parameters, stop, deadline) = (RequestParameters::default(), Vec::new(), None);
        Request { prompt, holes: false, parameters, stop, deadline }
    }

    /// An answer to the user's turn `content` of a new conversation.
    pub fn chat(content: &str) -> Request {
        Request::new(Prompt::user(content))
    }

    /// The next turn of a conversation.
    pub fn messages(turns: Vec<Message>) -> Request {
        Request::new(Prompt::Chat(turns))
    }

    /// A continuation of `text`, without a chat template; control tokens in it are text.
    pub fn text(text: &str) -> Request {
        Request::new(Prompt::Text { text: text.to_owned(), special: Special::AsText })
    }

    /// The holes `[[n]]` of `text` filled in place, and nothing after it.
    pub fn infill(text: &str) -> Request {
        let parameters = RequestParameters { max_tokens: 0, ..RequestParameters::default() };
        Request { holes: true, parameters, ..Request::text(text) }
    }

    /// A continuation of token ids as they are.
    pub fn ids(ids: Vec<u32>) -> Request {
        Request::new(Prompt::Ids(ids))
    }
}

/// A request that a model has encoded and checked: ready for its engine. See
/// [`Model::prepare`](super::Model::prepare).
#[derive(Clone, Debug)]
pub struct PreparedRequest {
    pub(super) ids: Vec<u32>,
    pub(super) parameters: GenerationParameters,
    pub(super) facts: TokenFacts,
    /// Contents of the turns that have holes, of a conversation.
    pub(super) turns: Vec<String>,
    pub(super) stop: Vec<String>,
    pub(super) deadline: Option<Duration>,
}

impl PreparedRequest {
    /// The prompt's token ids.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The checked parameters.
    pub fn parameters(&self) -> &GenerationParameters {
        &self.parameters
    }

    /// Positions of its canvas at most: prompt and generated part.
    pub fn positions(&self) -> usize {
        self.ids.len() + self.parameters.max_tokens as usize
    }

    /// Masks in the prompt.
    pub fn masks(&self) -> usize {
        self.ids.iter().filter(|id| **id == self.facts.mask_token).count()
    }

    /// Limits that leave room for this request alone.
    pub fn limits(&self) -> Limits {
        limits(&self.parameters, self.positions(), self.masks())
    }
}

/// Limits for one sequence of up to `rows` positions with these parameters, whose prompt holds up
/// to `holes` masks, on the physical cores that may be used. For several kinds of requests see
/// [`Limits::max`].
pub fn limits(parameters: &GenerationParameters, rows: usize, holes: usize) -> Limits {
    Limits {
        logits: parameters.needs_logits(),
        guidance: parameters.cfg_scale > 0.0,
        kv_cache: parameters.cache != Cache::None,
        // A canvas without masks needs no logits, but a plan is for at least one row.
        ..Limits::new(rows, parameters.candidates_max(holes).max(1), physical_count())
    }
}
