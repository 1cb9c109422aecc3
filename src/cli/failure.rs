//! How a command ended, and why one failed.

use dllm_rt::{Error, backend, denoise, gguf, model, synth, vocab};
use std::path::Path;

/// How a command that did not fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With all that was asked for.
    Done,
    /// Before, because of a signal, with this exit status; what there was is printed.
    Interrupted(u8),
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The arguments make no sense together.
    #[error("{0}")]
    Usage(String),
    /// A command or flag that a later version will have.
    #[error("{0} does not exist in this version yet")]
    Later(String),
    /// The library refuses. It names fields, which are flags here.
    #[error("{}", in_flags(.0))]
    Library(Error),
    /// A file, or a standard stream, cannot be read or written.
    #[error("cannot {doing}: {cause}")]
    File {
        /// What was to be done, with the file's name.
        doing: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A text is not UTF-8.
    #[error("{name} is not UTF-8: the byte at offset {offset} belongs to no character")]
    Encoding {
        /// Where the text is from.
        name: String,
        /// The first byte that is none.
        offset: usize,
    },
    /// A text is longer than any canvas.
    #[error("{name} is longer than {bytes_max} bytes, the most that is read")]
    TextTooLong {
        /// Where the text is from.
        name: String,
        /// The most bytes.
        bytes_max: u64,
    },
    /// A prompt without a text.
    #[error(
        "{0} is empty: give a text with --prompt, --prompt-file or --messages, ids with --tokens, \
         or pipe a text into standard input"
    )]
    EmptyPrompt(String),
    /// Turns that cannot be read.
    #[error("{name}: {cause}")]
    Messages {
        /// Where they are from.
        name: String,
        /// What is wrong.
        cause: vocab::Error,
    },
    /// A line of a file of tasks is of no use, or this machine or model cannot do what was asked.
    #[error("{0}")]
    Beyond(String),
    /// The messages bring a system turn and `--system` another.
    #[error("the messages begin with a system turn; leave --system out")]
    TwoSystems,
    /// The reader of standard output is gone.
    #[error("standard output was closed")]
    BrokenPipe,
}

impl Failure {
    /// Whether the arguments alone are to blame.
    pub fn is_usage(&self) -> bool {
        use denoise::Error::ThresholdAndFactor;
        matches!(self, Failure::Usage(_) | Failure::Library(Error::Request(ThresholdAndFactor)))
    }

    /// A file that cannot be used.
    pub fn file(doing: &str, path: &Path, cause: std::io::Error) -> Failure {
        Failure::File { doing: format!("{doing} `{}`", path.display()), cause }
    }
}

/// The library's message with the flags that set the fields it names.
fn in_flags(error: &Error) -> String {
    let message = named(&error.to_string());
    match error {
        Error::Vocab(vocab::Error::TemplateMissing { .. } | vocab::Error::TemplateToken { .. }) => {
            format!("{message} (--no-chat)")
        }
        _ => message,
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

from!(Error, backend::Error, gguf::Error, model::Error, vocab::Error, denoise::Error, synth::Error);

/// Names of fields that a message of the library may hold in backticks and that are flags here.
const FIELDS: [&str; 28] = [
    "rows",
    "output_rows",
    "sequences",
    "stop",
    "preset",
    "max_tokens",
    "steps",
    "block_length",
    "threshold",
    "factor",
    "cache",
    "refresh",
    "grow",
    "algorithm",
    "temperature",
    "top_p",
    "top_k",
    "alg_temp",
    "eps",
    "cfg_scale",
    "seed",
    "early_stop",
    "forbid_end",
    "distrust_end",
    "mask_token",
    "isa",
    "full_logits",
    "threads",
];

/// A message of the library with the fields that it names as the flags that set them. What stands
/// in double quotes is somebody's text and stays as it is.
fn named(message: &str) -> String {
    let (mut named, mut rest) = (String::new(), message);
    while let Some(start) = rest.find(['`', '"']) {
        let quote = &rest[start..start + 1];
        let inner = &rest[start + 1..];
        let Some(length) = end_of_quoted(inner, quote) else { break };
        named.push_str(&rest[..start]);
        let name = &inner[..length];
        match quote == "`" && FIELDS.contains(&name) {
            true => named.push_str(&format!("--{}", name.replace('_', "-"))),
            false => named.push_str(&format!("{quote}{name}{quote}")),
        }
        rest = &inner[length + 1..];
    }
    named + rest
}

/// Where the quote that `inner` follows is closed; after a backslash it is not.
fn end_of_quoted(inner: &str, quote: &str) -> Option<usize> {
    let mut is_escaped = false;
    inner.char_indices().find_map(|(at, c)| {
        let closes = !is_escaped && inner[at..].starts_with(quote);
        is_escaped = c == '\\' && !is_escaped;
        closes.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_flags_and_other_names_stay() {
        let said = "`top_p` is 2; tensor `output.weight` and `cache` none";
        assert_eq!(named(said), "--top-p is 2; tensor `output.weight` and --cache none");
        assert_eq!(named("plain"), "plain");
        assert_eq!(named("an odd ` and `cache`"), "an odd ` and `cache`");
    }

    #[test]
    fn quoted_texts_are_nobodys_fields() {
        let said = "`isa` asks for \"cache\": `seed`";
        assert_eq!(named(said), "--isa asks for \"cache\": --seed");
        let said = r#"architecture "a`cache`\"`seed`" is none; `steps` é"#;
        assert_eq!(named(said), r#"architecture "a`cache`\"`seed`" is none; --steps é"#);
    }
}
