//! Everything that can go wrong at load or request time. A step on the CPU cannot fail.

use crate::{backend, denoise, gguf, model, synth, vocab};

/// Why something could not be loaded or started. Messages name fields in backticks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is no readable GGUF.
    #[error(transparent)]
    Gguf(#[from] gguf::Error),
    /// The file is no model that can be run.
    #[error(transparent)]
    Model(#[from] model::Error),
    /// The tokenizer or chat template cannot be used.
    #[error(transparent)]
    Vocab(#[from] vocab::Error),
    /// The model cannot be loaded within these limits, or on this machine.
    #[error(transparent)]
    Backend(#[from] backend::Error),
    /// No synthetic file of these sizes can be made.
    #[error(transparent)]
    Synth(#[from] synth::Error),
    /// The request cannot be run.
    #[error(transparent)]
    Request(#[from] denoise::Error),
    /// The file names no mask token and the caller gave none.
    #[error("the file names no mask token: give one with `mask_token`")]
    NoMaskToken,
    /// The tokenizer has tokens that the model cannot take.
    #[error(
        "tokenizer.ggml.tokens has {tokens} tokens, but token_embd.weight has {rows} rows: the \
         tokenizer belongs to another model"
    )]
    Tokenizer {
        /// Tokens of the tokenizer.
        tokens: usize,
        /// Rows of the embedding.
        rows: usize,
    },
    /// No token is to be generated and no hole to be filled.
    #[error("there is nothing to do: `max_tokens` is 0 and the prompt has no holes")]
    NothingToDo,
    /// A stop text that would end every answer before it begins.
    #[error("`stop` has an empty text; give one with characters")]
    EmptyStop,
    /// A prompt's `[[n]]` cannot be a hole.
    #[error("{0}")]
    Hole(String),
    /// The canvas is longer than the model's context.
    #[error(
        "prompt and answer are {positions} tokens, but the model's context_length is {context}: \
         shorten the prompt or give fewer `max_tokens`"
    )]
    Context {
        /// Tokens of prompt and answer.
        positions: usize,
        /// What the file says.
        context: usize,
    },
    /// The canvas is longer than what was planned for.
    #[error("the canvas has {rows} tokens; planned were at most {rows_max}")]
    CanvasTooLong {
        /// Tokens of the canvas.
        rows: usize,
        /// Planned at load.
        rows_max: usize,
    },
    /// A pass needs more rows of logits than were planned for.
    #[error("a step needs {output_rows} output rows; planned were at most {output_rows_max}")]
    OutputRows {
        /// Rows.
        output_rows: usize,
        /// Planned at load.
        output_rows_max: usize,
    },
    /// Guidance was not planned for.
    #[error("guidance needs a second set of logits, which was not planned")]
    GuidanceNotPlanned,
    /// A pass or a request that needs whole rows of logits, for which the limits leave no room.
    #[error(
        "whole rows of logits are needed, which were not planned: allow for them in the limits \
         (`logits`)"
    )]
    LogitsNotPlanned,
    /// A request with a cache, for which the limits leave no room.
    #[error("a KV cache is needed, which was not planned: allow for it in the limits (`kv_cache`)")]
    KvCacheNotPlanned,
    /// The logits of every position, from a pass that computes some rows alone.
    #[error(
        "the logits of every position need passes over every row, which a cache avoids: leave \
         `full_logits` out, or give `cache` none"
    )]
    FullLogitsWithCache,
    /// No logit of a position is a number: the weights are damaged, or too large for f32.
    #[error(
        "no logit of position {position} is finite: the model's weights are damaged or too large"
    )]
    NotFinite {
        /// The first such position that the step needed.
        position: u32,
    },
    /// A sequence of another engine.
    #[error("the sequence was made by another engine")]
    ForeignSequence,
    /// More sequences in a batch than were planned for.
    #[error("a batch has {sequences} sequences; planned were at most {sequences_max}")]
    SequencesTooMany {
        /// Sequences.
        sequences: usize,
        /// Planned at load.
        sequences_max: usize,
    },
    /// A sequence whose KV slot was given to another, so that it cannot go on as if alone.
    #[error(
        "the sequence's KV slot was given to another: step no more sequences in turn than are \
         planned for, and release those that are given up"
    )]
    KvSlotLost,
    /// A token beyond the vocabulary.
    #[error("token {token} at position {position}: the vocabulary has {vocab} tokens")]
    Token {
        /// Where.
        position: usize,
        /// The token.
        token: u32,
        /// The vocabulary's size.
        vocab: usize,
    },
    /// A row beyond the canvas.
    #[error("row {row}: there are {rows} tokens")]
    Row {
        /// The row.
        row: u32,
        /// Tokens of the canvas.
        rows: usize,
    },
    /// The facts given with a request are another model's.
    #[error("the request is for a vocabulary of {facts_vocab} tokens, the model has {vocab}")]
    Vocabulary {
        /// Size of the vocabulary that the facts give.
        facts_vocab: usize,
        /// The model's.
        vocab: usize,
    },
}
