//! Everything that can go wrong at load or request time. A step on the CPU cannot fail.

use crate::{denoise, gguf, model, packed, plan, synth, vocab};
use dllm_arena::region::ReserveError;
use std::fmt;

/// Why something could not be loaded or started.
#[derive(Debug)]
pub enum Error {
    /// The file is no readable GGUF.
    Gguf(gguf::Fault),
    /// The file is no model that can be run.
    Model(model::Fault),
    /// The tokenizer or chat template cannot be used.
    Vocab(vocab::Fault),
    /// The limits cannot be planned for.
    Plan(plan::Fault),
    /// No synthetic file of these sizes can be made.
    Synth(synth::Fault),
    /// The request cannot be run.
    Request(denoise::Fault),
    /// The arena does not fit, or the system refuses it.
    Reserve(ReserveError),
    /// There is no folder to keep packed files in.
    PackedFolder(packed::FolderFault),
    /// The CPU or this version lacks an instruction set.
    Isa {
        /// What was asked for.
        name: String,
        /// Where: the flag or the environment variable.
        origin: &'static str,
    },
    /// No worker thread can be started.
    Threads(std::io::Error),
    /// The canvas is longer than what was planned for.
    CanvasTooLong {
        /// Tokens of the canvas.
        rows: usize,
        /// Planned at load.
        rows_max: usize,
    },
    /// A pass wants more logit rows than were planned for.
    WantedTooMany {
        /// Rows.
        wanted: usize,
        /// Planned at load.
        wanted_max: usize,
    },
    /// Guidance was not planned for.
    GuidanceNotPlanned,
    /// A pass or a request that needs whole rows of logits, for which the limits leave no room.
    LogitsNotPlanned,
    /// A request with a cache, for which the limits leave no room.
    CacheNotPlanned,
    /// The logits of every position, from a pass that computes some rows alone.
    FullLogitsWithCache,
    /// A token beyond the vocabulary.
    Token {
        /// Where.
        position: usize,
        /// The token.
        token: u32,
        /// The vocabulary's size.
        vocab: usize,
    },
    /// A row beyond the canvas.
    Row {
        /// The row.
        row: u32,
        /// Tokens of the canvas.
        rows: usize,
    },
    /// The facts given with a request are another model's.
    Vocabulary {
        /// Size of the vocabulary that the facts give.
        facts_vocab: usize,
        /// The model's.
        vocab: usize,
    },
    /// The file names no mask token and the caller gave none.
    NoMaskToken,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Gguf(fault) => fault.fmt(f),
            Error::Model(fault) => fault.fmt(f),
            Error::Vocab(fault) => fault.fmt(f),
            Error::Plan(fault) => fault.fmt(f),
            Error::Synth(fault) => fault.fmt(f),
            Error::Request(fault) => fault.fmt(f),
            Error::Reserve(error) => error.fmt(f),
            Error::PackedFolder(fault) => fault.fmt(f),
            Error::Isa { name, origin } => {
                let names: Vec<_> = dllm_cpu::Kernels::all().map(|k| k.name()).collect();
                write!(f, "{origin} asks for `{name}`: this CPU has {}", names.join(", "))
            }
            Error::Threads(error) => write!(f, "cannot start a worker thread: {error}"),
            Error::CanvasTooLong { rows, rows_max } => {
                write!(f, "the canvas has {rows} tokens; planned were at most {rows_max}")
            }
            Error::WantedTooMany { wanted, wanted_max } => {
                write!(f, "a step wants {wanted} logit rows; planned were at most {wanted_max}")
            }
            Error::GuidanceNotPlanned => {
                write!(f, "guidance needs a second set of logits, which was not planned")
            }
            Error::LogitsNotPlanned => write!(
                f,
                "whole rows of logits are needed, which were not planned: allow for them in the \
                 limits (`logits`)"
            ),
            Error::CacheNotPlanned => write!(
                f,
                "keys and values are to be kept, which was not planned: allow for them in the \
                 limits (`cache`)"
            ),
            Error::FullLogitsWithCache => write!(
                f,
                "the logits of every position need passes over every row, which a cache avoids: \
                 leave full-logits out, or the cache (--cache none)"
            ),
            Error::Token { position, token, vocab } => {
                write!(f, "token {token} at position {position}: the vocabulary has {vocab} tokens")
            }
            Error::Row { row, rows } => write!(f, "row {row}: there are {rows} tokens"),
            Error::Vocabulary { facts_vocab, vocab } => write!(
                f,
                "the request is for a vocabulary of {facts_vocab} tokens, the model has {vocab}"
            ),
            Error::NoMaskToken => {
                write!(f, "the file names no mask token: give one with `--mask-token ID`")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Bytes in binary units for people.
pub struct Gib(pub usize);

impl fmt::Display for Gib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..1024 => write!(f, "{} B", self.0),
            1024..0x10_0000 => write!(f, "{:.1} KiB", bytes / 1024.0),
            0x10_0000..0x4000_0000 => write!(f, "{:.1} MiB", bytes / 1048576.0),
            _ => write!(f, "{:.1} GiB", bytes / 1073741824.0),
        }
    }
}

macro_rules! from {
    ($($fault:ty => $variant:ident),*) => {
        $(impl From<$fault> for Error {
            fn from(fault: $fault) -> Error {
                Error::$variant(fault)
            }
        })*
    };
}

from!(
    gguf::Fault => Gguf, model::Fault => Model, vocab::Fault => Vocab, plan::Fault => Plan,
    synth::Fault => Synth, denoise::Fault => Request, ReserveError => Reserve,
    packed::FolderFault => PackedFolder
);
