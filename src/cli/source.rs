//! Where a model comes from: a file, or the program itself.

use crate::cli::args::FilePath;
use crate::cli::failure::Failure;
use crate::cli::output;
use dllm_rt::demo;
use dllm_rt::gguf::{self, Gguf};
use std::fmt;
use std::io::{self, IsTerminal};
use std::path::Path;

/// A model to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// A GGUF file, or one part of a split one.
    File(&'a Path),
    /// The demonstration model.
    BuiltIn,
}

impl<'a> Source<'a> {
    /// The model that `--model` names; without it the one that is built in.
    pub fn new(model: Option<&'a FilePath>) -> Source<'a> {
        model.map_or(Source::BuiltIn, |path| Source::File(&path.0))
    }

    /// Tells whoever sits at a terminal that the model is no large one.
    pub fn introduce(self) {
        if self == Source::BuiltIn && io::stderr().is_terminal() {
            output::say(
                "no --model was given: the built-in demonstration model answers, which knows \
                 capitals, sums, spelling and the like, and one question at a time",
            );
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// Whatever is wrong with the file.
    pub fn open(self) -> Result<Gguf, Failure> {
        Ok(match self {
            Source::File(path) => gguf::open(path)?,
            Source::BuiltIn => demo::gguf()?,
        })
    }
}

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => path.display().fmt(f),
            Source::BuiltIn => f.write_str(demo::NAME),
        }
    }
}
