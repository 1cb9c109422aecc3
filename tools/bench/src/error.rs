//! What can go wrong, with the name of what it went wrong with.

use std::path::Path;

/// Why a measurement or a table could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written, or a program not be started.
    #[error("{what}: {error}")]
    Io {
        /// Its path or the program's name.
        what: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// A model file or forward pass of dllm-rt.
    #[error(transparent)]
    Model(#[from] dllm_rt::Error),
    /// An argument that cannot be used, and what would do.
    #[error("{0}")]
    Argument(String),
    /// A program ended or refused; with the end of what it printed.
    #[error("{name}: {what}")]
    Program {
        /// Its name.
        name: String,
        /// What it answered or how it ended.
        what: String,
    },
    /// What was measured is not what it must be: other work than was meant, or a loss.
    #[error("{0}")]
    Figures(String),
    /// A record that holds none, or the place of its table in the page of results.
    #[error("{0}")]
    Record(String),
}

impl Error {
    /// For `map_err`: the error of a path.
    pub fn io(what: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
        let what = what.display().to_string();
        move |error| Error::Io { what, error }
    }

    /// The error of the program called `name`.
    pub fn program(name: &str, what: impl Into<String>) -> Error {
        Error::Program { name: name.into(), what: what.into() }
    }
}
