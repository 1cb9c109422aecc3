//! What can go wrong, with the name of what it went wrong with.

use std::fmt;
use std::path::Path;

/// Why a comparison or its table could not be made.
#[derive(Debug)]
pub enum Fault {
    /// A file or folder could not be read, written or run.
    Io {
        /// Its path or the program's name.
        what: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// A model file or forward pass of dllm-rt.
    Model(dllm_rt::Error),
    /// An argument that cannot be used, and what would do.
    Argument(String),
    /// A build of another program without a part of it.
    Build(String),
    /// The driver could not be compiled against a build.
    Compiler(String),
    /// A program ended or refused; with the end of what it printed.
    Side {
        /// Its name.
        name: String,
        /// What it answered or how it ended.
        what: String,
    },
    /// Two programs computed different logits: no time of theirs can be compared.
    Disagree(String),
    /// A file of results that does not hold any.
    Results(String),
    /// The README and the results contradict each other.
    Readme(String),
}

impl Fault {
    /// For `map_err`: the fault of a path.
    pub fn io(what: &Path) -> impl FnOnce(std::io::Error) -> Fault + use<> {
        let what = what.display().to_string();
        move |error| Fault::Io { what, error }
    }

    /// The fault of the program called `name`.
    pub fn side(name: &str, what: impl Into<String>) -> Fault {
        Fault::Side { name: name.into(), what: what.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Io { what, error } => write!(f, "{what}: {error}"),
            Fault::Model(error) => write!(f, "{error}"),
            Fault::Side { name, what } => write!(f, "{name}: {what}"),
            Fault::Compiler(text) => write!(f, "the driver does not compile:\n{text}"),
            Fault::Argument(text)
            | Fault::Build(text)
            | Fault::Disagree(text)
            | Fault::Results(text)
            | Fault::Readme(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Fault {}

impl From<dllm_rt::Error> for Fault {
    fn from(error: dllm_rt::Error) -> Fault {
        Fault::Model(error)
    }
}
