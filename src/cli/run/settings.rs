//! `run`'s flags: those that do not go together.

use super::Run;
use crate::cli::failure::Failure;

impl Run {
    /// Refuses flags that do not go together.
    ///
    /// # Errors
    /// The first such flag.
    pub fn check(&self) -> Result<(), Failure> {
        if self.stop.iter().any(|stop| stop.0.is_empty()) {
            return Err(Failure::Usage("--stop is empty; give a text".into()));
        }
        if self.trace && !self.json {
            return Err(Failure::Usage("--trace is part of --json; give both".into()));
        }
        if self.interactive { self.check_interactive() } else { Ok(()) }
    }

    fn check_interactive(&self) -> Result<(), Failure> {
        let alone = [
            ("--prompt", self.prompt.is_some()),
            ("--prompt-file", self.prompt_file.is_some()),
            ("--messages", self.messages.is_some()),
            ("--tokens", self.tokens.is_some()),
            ("--no-chat", self.no_chat),
            ("--special", self.special),
            ("--holes", self.holes),
            ("--json", self.json),
        ];
        if self.max_tokens == Some(0) {
            let message = "--max-tokens 0 only fills holes, which --interactive has none of";
            return Err(Failure::Usage(message.into()));
        }
        match alone.iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                Err(Failure::Usage(format!("{flag} and --interactive exclude each other")))
            }
            None => Ok(()),
        }
    }
}
