//! A model opened whole: weights file, configuration, tokenizer, chat template, token facts.

use super::generation::Generation;
use super::prompt::turns_with_holes;
use super::request::{self, PreparedRequest, Request};
use crate::backend::{self, Limits, Options};
use crate::demo;
use crate::denoise::{Canvas, GenerationParameters, RequestParameters, TokenFacts};
use crate::engine::{Engine, kind_of};
use crate::error::Error;
use crate::gguf::{self, Gguf};
use crate::model::{Config, Network};
use crate::sample::Kind;
use crate::vocab::{Show, Vocab};
use std::path::Path;

/// A model that can generate. It only reads, so threads may share it.
pub struct Model {
    gguf: Gguf,
    config: Config,
    vocab: Vocab,
    facts: TokenFacts,
}

impl Model {
    /// Opens a GGUF file; all parts of a split one where any is named.
    ///
    /// # Errors
    /// Whatever is wrong with the file; no mask token; a tokenizer of another model; an
    /// architecture that generates nothing.
    pub fn open(path: impl AsRef<Path>) -> Result<Model, Error> {
        Model::from_gguf(gguf::open(path.as_ref())?, None)
    }

    /// Opens a GGUF file that lies in memory.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Model, Error> {
        Model::from_gguf(Gguf::from_bytes(bytes)?, None)
    }

    /// The demonstration model, which is part of the program.
    ///
    /// # Errors
    /// None that a released program could meet.
    pub fn built_in() -> Result<Model, Error> {
        Model::from_gguf(demo::gguf()?, None)
    }

    /// Takes an open file; `mask_token` goes before the file's own, for files that name none.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn from_gguf(gguf: Gguf, mask_token: Option<u32>) -> Result<Model, Error> {
        let config = Network::from_gguf(&gguf)?.config;
        config.architecture.check_generates()?;
        let vocab = Vocab::from_gguf(&gguf)?;
        let (tokens, rows) = (vocab.token_count(), config.vocab);
        if tokens > rows {
            return Err(Error::Tokenizer { tokens, rows });
        }
        let mask_token = mask_token.or(vocab.mask_id()).ok_or(Error::NoMaskToken)?;
        let end_of_turn: Vec<u32> = vocab.eot_id().into_iter().collect();
        // A file may use one token for both; then it ends the text.
        let is_turn = |id: &&u32| end_of_turn.contains(id) && vocab.eos_id() != Some(**id);
        let end_of_text = vocab.end_ids().iter().filter(|id| !is_turn(id)).copied().collect();
        let facts = TokenFacts {
            mask_token,
            // A configuration's vocabulary has 2^24 tokens at most.
            vocab_size: config.vocab as u32,
            shift_logits: config.shift_logits,
            end_of_text,
            end_of_turn,
        };
        Ok(Model { gguf, config, vocab, facts })
    }

    /// The file.
    pub fn gguf(&self) -> &Gguf {
        &self.gguf
    }

    /// Sizes and constants.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The tokenizer and the chat template.
    pub fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    /// What was assumed of the file, a sentence each.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.config.warnings.iter().chain(self.vocab.warnings()).map(String::as_str)
    }

    /// Takes `source`, which is Jinja, in the place of the file's chat template.
    pub fn set_chat_template(&mut self, source: String) {
        self.vocab.set_chat_template(source);
    }

    /// What a canvas must know of the tokens.
    pub fn facts(&self) -> &TokenFacts {
        &self.facts
    }

    /// The loop that the model was trained for.
    pub fn kind(&self) -> Kind {
        kind_of(self.config.architecture)
    }

    /// The hash of the file's content, read by several threads.
    pub fn hash(&self, threads: usize) -> String {
        backend::hash(&self.gguf, threads)
    }

    /// Whether the token ends a text or a turn.
    pub fn is_end(&self, id: u32) -> bool {
        self.facts.end_of_text.contains(&id) || self.facts.end_of_turn.contains(&id)
    }

    /// The text of ids; masks, control tokens and rows of the model that are no token are left out.
    ///
    /// # Errors
    /// Those of decoding.
    pub fn text(&self, ids: &[u32]) -> Result<String, Error> {
        let is_token = |id: &u32| (*id as usize) < self.vocab.token_count();
        let is_text = |id: &u32| *id != self.facts.mask_token && is_token(id);
        let ids: Vec<u32> = ids.iter().copied().filter(is_text).collect();
        Ok(self.vocab.decode_text(&ids, Show::TextOnly)?)
    }

    /// Refuses a canvas of more positions than the model was trained for.
    ///
    /// # Errors
    /// [`Error::Context`].
    pub fn check_context(&self, positions: usize) -> Result<(), Error> {
        let context = self.config.context;
        if positions > context { Err(Error::Context { positions, context }) } else { Ok(()) }
    }

    /// Encodes and checks a request, on any thread.
    ///
    /// # Errors
    /// A prompt that cannot be encoded or is too long for the model, parameters that it refuses.
    pub fn prepare(&self, request: &Request) -> Result<PreparedRequest, Error> {
        let parameters = GenerationParameters::new(self.kind(), &request.parameters)?;
        if request.stop.iter().any(String::is_empty) {
            return Err(Error::EmptyStop);
        }
        let mask = request.holes.then_some(self.facts.mask_token);
        let prepared = PreparedRequest {
            ids: request.prompt.encode(&self.vocab, mask)?,
            parameters,
            facts: self.facts.clone(),
            turns: if request.holes { turns_with_holes(&request.prompt)? } else { Vec::new() },
            stop: request.stop.clone(),
            deadline: request.deadline,
        };
        Canvas::new(&prepared.ids, &prepared.parameters, &self.facts)?;
        if prepared.parameters.max_tokens == 0 && prepared.masks() == 0 {
            return Err(Error::NothingToDo);
        }
        self.check_context(prepared.positions())?;
        Ok(prepared)
    }

    /// Limits for `sequences` at a time, each of up to `tokens` with its prompt and holes anywhere
    /// in it, with these parameters.
    ///
    /// # Errors
    /// Parameters that the model refuses, more tokens than it was trained for.
    pub fn limits(
        &self,
        parameters: &RequestParameters,
        sequences: usize,
        tokens: usize,
    ) -> Result<Limits, Error> {
        self.check_context(tokens)?;
        let parameters = GenerationParameters::new(self.kind(), parameters)?;
        Ok(Limits { sequences, ..request::limits(&parameters, tokens, tokens) })
    }

    /// Loads the model for `sequences` at a time of up to `tokens` each, with default parameters
    /// and options.
    ///
    /// # Errors
    /// As [`Model::limits`] and [`Model::load`].
    pub fn engine(&self, sequences: usize, tokens: usize) -> Result<Engine, Error> {
        let limits = self.limits(&RequestParameters::default(), sequences, tokens)?;
        self.load(limits, &Options::default(), &mut |_, _| ())
    }

    /// Loads the model within `limits`. `progress` is called with the bytes of the arena that are
    /// ready so far and their total.
    ///
    /// # Errors
    /// Limits or options that this machine cannot meet; values in the file that are not finite.
    pub fn load(
        &self,
        limits: Limits,
        options: &Options,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Engine, Error> {
        Engine::load(&self.gguf, limits, options, progress)
    }

    /// Prepares a request and starts it.
    ///
    /// # Errors
    /// As [`Model::prepare`] and [`Generation::start`].
    pub fn start(&self, engine: &mut Engine, request: &Request) -> Result<Generation, Error> {
        Generation::start(engine, &self.prepare(request)?)
    }
}
