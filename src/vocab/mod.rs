//! Text to token ids and back, and the chat template, from a GGUF file's metadata alone.
//!
//! [`VocabParts`] (`parts`) holds the metadata as it is, [`Vocab`] (`vocabulary`) what has been
//! checked. `pre` cuts text into words, `words` merges a word's bytes into tokens, `special` finds
//! the tokens that are written out, `tokens` turns ids into bytes; `chat` and `template` render a
//! conversation (`jinja` is the engine's set-up, with Python's `operators`, `methods` and ways of
//! printing, `python`; `screen` says what it must not be given), `provenance` keeps control tokens
//! out of user text by marking the template's own `literals`.

mod bytes;
mod chat;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod jinja;
mod literals;
mod methods;
mod operators;
mod parts;
mod pre;
mod provenance;
mod python;
mod screen;
mod special;
mod template;
mod tokens;
mod vocabulary;
mod words;

pub use chat::{Message, parse_messages};
pub use error::Error;
pub use parts::{VocabParts, parts_from_gguf};
pub use vocabulary::{Show, Special, Vocab};
