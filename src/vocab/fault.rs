//! Everything that can be wrong with a vocabulary, a conversation or a text.

use std::fmt;

use crate::gguf;
use crate::gguf::text::quoted;

/// Why a vocabulary could not be built, or a text or conversation not be encoded.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// `tokenizer.ggml.model` is not `gpt2`.
    Model {
        /// What the file says.
        found: String,
    },
    /// No `tokenizer.ggml.pre`, and the architecture does not settle it.
    PreMissing {
        /// The file's architecture.
        architecture: String,
    },
    /// `tokenizer.ggml.pre` names a rule that is not supported.
    PreUnknown {
        /// What the file says.
        found: String,
        /// The supported names, joined by commas.
        supported: String,
    },
    /// An array of the tokenizer is empty, too long, or not as long as another.
    Length {
        /// The GGUF key.
        key: &'static str,
        /// Its number of elements, or of bytes where `limit` says so.
        found: usize,
        /// What is allowed.
        limit: String,
    },
    /// A token is longer than any real one.
    TokenTooLong {
        /// Its id.
        id: usize,
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        bytes_max: usize,
    },
    /// A key names a token that does not exist.
    IdRange {
        /// The GGUF key.
        key: &'static str,
        /// The id it gives.
        id: u32,
        /// Number of tokens.
        count: usize,
    },
    /// A merge cannot be used.
    Merge {
        /// Its index in `tokenizer.ggml.merges`.
        index: usize,
        /// The merge as stored, lossily.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The BPE or search library refused its input.
    Library(String),
    /// The text has a byte that no token of the vocabulary spells.
    ByteMissing {
        /// The byte.
        byte: u8,
    },
    /// An id to decode does not exist.
    TokenRange {
        /// Position in the list of ids.
        index: usize,
        /// The id.
        id: u32,
        /// Number of tokens.
        count: usize,
    },
    /// A conversation is not the JSON it should be.
    Messages(String),
    /// One turn of a conversation is wrong.
    Message {
        /// Its index.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The file has no chat template and none is known for its architecture.
    TemplateMissing {
        /// The file's architecture.
        architecture: String,
    },
    /// The chat template known for the architecture needs a token that the vocabulary lacks.
    TemplateToken {
        /// The file's architecture.
        architecture: String,
        /// The token.
        token: &'static str,
    },
    /// The chat template does not parse, raised an exception or ran out of its limits.
    Template(String),
    /// A metadata key is missing or has another type.
    Gguf(gguf::Fault),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Model { .. } | Fault::PreMissing { .. } | Fault::PreUnknown { .. } => {
                fmt_rule(self, f)
            }
            Fault::Messages(_)
            | Fault::Message { .. }
            | Fault::TemplateMissing { .. }
            | Fault::TemplateToken { .. }
            | Fault::Template(_) => fmt_chat(self, f),
            _ => fmt_tokens(self, f),
        }
    }
}

impl std::error::Error for Fault {}

impl From<gguf::Fault> for Fault {
    fn from(fault: gguf::Fault) -> Fault {
        Fault::Gguf(fault)
    }
}

fn fmt_rule(fault: &Fault, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fault {
        Fault::Model { found } => write!(
            f,
            "tokenizer.ggml.model is {}; only \"gpt2\" (byte-level BPE) is supported",
            quoted(found)
        ),
        Fault::PreMissing { architecture } => write!(
            f,
            "tokenizer.ggml.pre is missing and architecture {} does not settle it; \
             convert the model again with a current converter",
            quoted(architecture)
        ),
        Fault::PreUnknown { found, supported } => write!(
            f,
            "tokenizer.ggml.pre is {}, which is not supported; supported: {supported}",
            quoted(found)
        ),
        _ => Ok(()),
    }
}

fn fmt_tokens(fault: &Fault, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fault {
        Fault::Length { key, found, limit } => write!(f, "{key} has {found}; it must be {limit}"),
        Fault::TokenTooLong { id, bytes, bytes_max } => write!(
            f,
            "tokenizer.ggml.tokens: token {id} has {bytes} bytes; at most {bytes_max} are allowed"
        ),
        Fault::IdRange { key, id, count } => {
            write!(f, "{key} is {id}, but the vocabulary has {count} tokens")
        }
        Fault::Merge { index, text, reason } => {
            write!(f, "tokenizer.ggml.merges: merge {index} ({text:?}) {reason}")
        }
        Fault::Library(reason) => write!(f, "the tokenizer could not be built: {reason}"),
        Fault::ByteMissing { byte } => {
            write!(f, "the text has byte 0x{byte:02x}, which no token of this vocabulary can spell")
        }
        Fault::TokenRange { index, id, count } => write!(
            f,
            "token {id} (at position {index}) does not exist: the vocabulary has {count} tokens"
        ),
        Fault::Gguf(fault) => write!(f, "{fault}"),
        _ => Ok(()),
    }
}

fn fmt_chat(fault: &Fault, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fault {
        Fault::Messages(reason) => write!(f, "messages: {reason}"),
        Fault::Message { index, reason } => write!(f, "messages[{index}]: {reason}"),
        Fault::TemplateMissing { architecture } => write!(
            f,
            "the file has no tokenizer.chat_template and none is known for architecture \
             {}; use --no-chat",
            quoted(architecture)
        ),
        Fault::TemplateToken { architecture, token } => write!(
            f,
            "the file has no tokenizer.chat_template, and the one for architecture \
             {} needs the control token {token}, which the vocabulary lacks; use --no-chat",
            quoted(architecture)
        ),
        Fault::Template(reason) => write!(f, "tokenizer.chat_template: {reason}"),
        _ => Ok(()),
    }
}
