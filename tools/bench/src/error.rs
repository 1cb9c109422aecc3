//! What can go wrong, with the name of what it went wrong with.

use std::path::Path;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written, or a program not be started.
    #[error("{what}: {error}")]
    Io { what: String, error: std::io::Error },
    #[error(transparent)]
    Model(#[from] dllm_rt::Error),
    /// An argument that cannot be used, and what would do.
    #[error("{0}")]
    Argument(String),
    /// A program ended or refused; with the end of what it printed.
    #[error("{name}: {what}")]
    Program { name: String, what: String },
    /// What was measured is not what it must be: other work than was meant, or a loss.
    #[error("{0}")]
    Figures(String),
    /// A record that holds none, or the place of its table in the page of results.
    #[error("{0}")]
    Record(String),
}

impl Error {
    /// For `map_err`.
    pub fn io(what: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
        let what = what.display().to_string();
        move |error| Error::Io { what, error }
    }

    pub fn program(name: &str, what: impl Into<String>) -> Error {
        Error::Program { name: name.into(), what: what.into() }
    }
}
