//! Why a command failed, and which exit status that is.

use dllm_rt::{Error, denoise, gguf, model, plan, synth, vocab};
use std::fmt;
use std::path::Path;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The arguments make no sense together.
    Usage(String),
    /// A command or flag that a later version will have.
    Later(String),
    /// The library refuses.
    Library(Error),
    /// A file, or a standard stream, cannot be read or written.
    File {
        /// What was to be done, with the file's name.
        doing: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A text is not UTF-8.
    Encoding {
        /// Where the text is from.
        name: String,
        /// The first byte that is none.
        offset: usize,
    },
    /// A text is longer than any canvas.
    TextTooLong {
        /// Where the text is from.
        name: String,
        /// The most bytes.
        bytes_max: u64,
    },
    /// Standard input has nothing in it.
    NoInput,
    /// The canvas is longer than the model's context.
    Context {
        /// Tokens of prompt and answer.
        positions: usize,
        /// What the file says.
        context: usize,
    },
    /// The tokenizer has tokens that the model cannot take.
    Vocabulary {
        /// Tokens of the tokenizer.
        tokens: usize,
        /// Rows of the embedding.
        rows: usize,
    },
    /// A line of a file of tasks is of no use.
    Task(String),
    /// A prompt's `[[n]]` is of no use.
    Hole(String),
    /// The messages bring a system turn and `--system` another.
    TwoSystems,
    /// This machine or this model cannot do what was asked, said with the sizes.
    Beyond(String),
    /// Whoever read standard output is gone.
    BrokenPipe,
}

impl Failure {
    /// A file that cannot be used.
    pub fn file(doing: &str, path: &Path, cause: std::io::Error) -> Failure {
        Failure::File { doing: format!("{doing} `{}`", path.display()), cause }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) => f.write_str(message),
            Failure::Later(what) => write!(f, "{what} does not exist in this version yet"),
            Failure::Library(error) => error.fmt(f),
            Failure::File { doing, cause } => write!(f, "cannot {doing}: {cause}"),
            Failure::Encoding { name, offset } => {
                write!(
                    f,
                    "{name} is not UTF-8: the byte at offset {offset} belongs to no character"
                )
            }
            Failure::TextTooLong { name, bytes_max } => {
                write!(f, "{name} is longer than {bytes_max} bytes, the most that is read")
            }
            Failure::NoInput => f.write_str(
                "standard input is empty: pipe a prompt into it, or give --prompt, --prompt-file, \
                 --messages or --tokens",
            ),
            Failure::Context { positions, context } => write!(
                f,
                "prompt and answer are {positions} tokens, but the model's context_length is \
                 {context}: shorten the prompt or give fewer --max-tokens"
            ),
            Failure::Vocabulary { tokens, rows } => write!(
                f,
                "tokenizer.ggml.tokens has {tokens} tokens, but token_embd.weight has {rows} rows: \
                 the tokenizer belongs to another model"
            ),
            Failure::Task(message) | Failure::Hole(message) | Failure::Beyond(message) => {
                f.write_str(message)
            }
            Failure::TwoSystems => {
                f.write_str("the messages begin with a system turn; leave --system out")
            }
            Failure::BrokenPipe => f.write_str("standard output was closed"),
        }
    }
}

macro_rules! from {
    ($($cause:ty),*) => {
        $(impl From<$cause> for Failure {
            fn from(cause: $cause) -> Failure {
                Failure::Library(cause.into())
            }
        })*
    };
}

from!(Error, gguf::Fault, model::Fault, vocab::Fault, plan::Fault, denoise::Fault, synth::Fault);
