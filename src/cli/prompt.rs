//! Where a prompt comes from.

use crate::cli::args::{FilePath, Ids, Text};
use crate::cli::failure::Failure;
use dllm_rt::Prompt;
use dllm_rt::vocab::{self, Message, Special};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

/// The most bytes of a text: 64 a position of the longest canvas.
const TEXT_BYTES_MAX: u64 = 64 << 20;
/// What some editors put before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// The path that names standard input.
pub const STDIN: &str = "-";

/// The flags that say what the prompt is.
#[derive(Clone, Copy, Debug)]
pub struct PromptFlags<'a> {
    pub prompt: Option<&'a Text>,
    pub file: Option<&'a FilePath>,
    pub messages: Option<&'a FilePath>,
    pub tokens: Option<&'a Ids>,
    pub system: Option<&'a Text>,
    pub no_chat: bool,
    pub special: bool,
    pub holes: bool,
}

impl PromptFlags<'_> {
    /// Reads the prompt.
    ///
    /// # Errors
    /// More than one source or none, flags that do not go together, a file that cannot be read.
    pub fn read(&self) -> Result<Prompt, Failure> {
        self.check()?;
        if let Some(tokens) = self.tokens {
            return Ok(Prompt::Ids(tokens.0.clone()));
        }
        if let Some(FilePath(path)) = self.messages {
            let failed = |cause| Failure::Messages { name: input_name(path), cause };
            let turns = vocab::parse_messages(&read_input(path)?).map_err(failed)?;
            return Ok(Prompt::Chat(self.with_system(turns)?));
        }
        let (name, text) = match (self.prompt, self.file) {
            (Some(text), _) => ("--prompt".into(), text.0.clone()),
            (None, file) => {
                let path = file.map_or(Path::new(STDIN), |file| &file.0);
                (input_name(path), read_input(path)?)
            }
        };
        if self.no_chat {
            let special = if self.special { Special::Parse } else { Special::AsText };
            return Ok(Prompt::Text { text, special });
        }
        let content = if self.prompt.is_some() { &text } else { without_last_end(&text) };
        if content.is_empty() {
            return Err(Failure::EmptyPrompt(name));
        }
        Ok(Prompt::Chat(self.with_system(vec![Message::new("user", content)])?))
    }

    fn check(&self) -> Result<(), Failure> {
        let given = [
            ("--prompt", self.prompt.is_some()),
            ("--prompt-file", self.file.is_some()),
            ("--messages", self.messages.is_some()),
            ("--tokens", self.tokens.is_some()),
        ];
        let given: Vec<&str> = given.iter().filter(|(_, given)| *given).map(|(f, _)| *f).collect();
        let usage = |message: String| Err(Failure::Usage(message));
        if given.len() > 1 {
            return usage(format!("{} exclude each other; give one", given.join(" and ")));
        }
        if given.is_empty() && io::stdin().is_terminal() {
            let message = "no prompt: give --prompt, --prompt-file, --messages or --tokens, or \
                           pipe one into standard input";
            return usage(message.into());
        }
        let plain = self.no_chat || self.tokens.is_some();
        if self.special && (!self.no_chat || self.tokens.is_some()) {
            return usage("--special is for the text of --no-chat".into());
        }
        if self.system.is_some() && plain {
            return usage("--system is for chat; leave out --no-chat and --tokens".into());
        }
        if self.messages.is_some() && self.no_chat {
            return usage("--messages are chat turns; leave out --no-chat".into());
        }
        if self.holes && self.tokens.is_some() {
            return usage("--holes is for text; in --tokens the mask token's id is a hole".into());
        }
        Ok(())
    }

    fn with_system(&self, mut turns: Vec<Message>) -> Result<Vec<Message>, Failure> {
        if let Some(system) = self.system {
            if turns.first().is_some_and(|turn| turn.role == "system") {
                return Err(Failure::TwoSystems);
            }
            turns.insert(0, Message::new("system", &system.0));
        }
        Ok(turns)
    }
}

/// The text that a path names, or standard input; no byte order mark.
pub fn read_input(path: &Path) -> Result<String, Failure> {
    let mut text = if path == Path::new(STDIN) {
        let failed = |cause| Failure::File { doing: "read standard input".into(), cause };
        read_text(io::stdin().lock(), TEXT_BYTES_MAX, "standard input", failed)?
    } else {
        read_file(path, TEXT_BYTES_MAX)?
    };
    if text.starts_with(BYTE_ORDER_MARK) {
        text.remove(0);
    }
    Ok(text)
}

fn input_name(path: &Path) -> String {
    if path == Path::new(STDIN) { "standard input".into() } else { format!("`{}`", path.display()) }
}

/// A text without the line end that editors and `echo` put after the last line.
fn without_last_end(text: &str) -> &str {
    text.strip_suffix("\r\n").or(text.strip_suffix('\n')).unwrap_or(text)
}

/// The text of a file of at most `bytes_max`.
///
/// # Errors
/// What the system says; more bytes; bytes that are not UTF-8.
pub fn read_file(path: &Path, bytes_max: u64) -> Result<String, Failure> {
    let failed = |cause| Failure::file("read", path, cause);
    let file = File::open(path).map_err(failed)?;
    read_text(file, bytes_max, &format!("`{}`", path.display()), failed)
}

fn read_text(
    from: impl Read,
    bytes_max: u64,
    name: &str,
    failed: impl Fn(io::Error) -> Failure,
) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(bytes_max + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > bytes_max {
        return Err(Failure::TextTooLong { name: name.into(), bytes_max });
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Failure::Encoding { name: name.into(), offset }
    })
}
