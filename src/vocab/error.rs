//! Everything that can be wrong with a vocabulary, a conversation or a text.

use crate::gguf;
use crate::gguf::text::quoted;

/// Why a vocabulary could not be built, or a text or conversation not be encoded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Error {
    /// `tokenizer.ggml.model` is not `gpt2`.
    #[error(
        "tokenizer.ggml.model is {}; only \"gpt2\" (byte-level BPE) is supported",
        quoted(found)
    )]
    Model { found: String },
    /// No `tokenizer.ggml.pre`, and the architecture does not settle it.
    #[error(
        "tokenizer.ggml.pre is missing and architecture {} does not settle it; convert the model \
         again with a current converter",
        quoted(architecture)
    )]
    PreMissing { architecture: String },
    /// `tokenizer.ggml.pre` names a rule that is not supported.
    #[error(
        "tokenizer.ggml.pre is {}, which is not supported; supported: {supported}",
        quoted(found)
    )]
    PreUnknown { found: String, supported: String },
    /// An array of the tokenizer is empty, too long, or not as long as another.
    #[error("{key} has {found}; it must be {limit}")]
    Length { key: &'static str, found: usize, limit: String },
    /// A token is longer than any real one.
    #[error("tokenizer.ggml.tokens: token {id} has {bytes} bytes; at most {bytes_max} are allowed")]
    TokenTooLong { id: usize, bytes: usize, bytes_max: usize },
    /// A key names a token that does not exist.
    #[error("{key} is {id}, but the vocabulary has {count} tokens")]
    IdRange { key: &'static str, id: u32, count: usize },
    /// A merge cannot be used.
    #[error("tokenizer.ggml.merges: merge {index} ({text:?}) {reason}")]
    Merge { index: usize, text: String, reason: &'static str },
    /// The BPE or search library refused its input.
    #[error("the tokenizer could not be built: {0}")]
    Library(String),
    /// The text has a byte that no token of the vocabulary spells.
    #[error("the text has byte 0x{byte:02x}, which no token of this vocabulary can spell")]
    ByteMissing { byte: u8 },
    /// An id to decode does not exist.
    #[error("token {id} (at position {index}) does not exist: the vocabulary has {count} tokens")]
    TokenRange { index: usize, id: u32, count: usize },
    /// A conversation is not the JSON it should be.
    #[error("messages: {0}")]
    Messages(String),
    /// One turn of a conversation is wrong.
    #[error("messages[{index}]: {reason}")]
    Message { index: usize, reason: String },
    /// The file has no chat template and none is known for its architecture.
    #[error(
        "the file has no tokenizer.chat_template and none is known for architecture {}; give the \
         prompt as plain text",
        quoted(architecture)
    )]
    TemplateMissing { architecture: String },
    /// The chat template known for the architecture needs a token that the vocabulary lacks.
    #[error(
        "the file has no tokenizer.chat_template, and the one for architecture {} needs the \
         control token {token}, which the vocabulary lacks; give the prompt as plain text",
        quoted(architecture)
    )]
    TemplateToken { architecture: String, token: &'static str },
    /// The chat template does not parse, raised an exception or ran out of its limits.
    #[error("tokenizer.chat_template: {0}")]
    Template(String),
    /// A metadata key is missing or has another type.
    #[error(transparent)]
    Gguf(#[from] gguf::Error),
    /// The tokens take more memory than their file says.
    #[error(transparent)]
    Table(#[from] dllm_arena::TableFull),
}
