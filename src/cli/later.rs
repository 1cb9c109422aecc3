//! Commands that are known but not part of this version.

use crate::cli::failure::Failure;

/// The commands that there are.
pub const COMMANDS: [&str; 8] =
    ["run", "tokenize", "detokenize", "inspect", "logits", "plan", "bench", "eval"];
const COMMANDS_LATER: [&str; 4] = ["profile", "serve", "batch", "doctor"];

/// Refuses a command that a later version will have, whatever follows it.
///
/// # Errors
/// [`Failure::Later`].
pub fn refuse_command(args: &[String]) -> Result<(), Failure> {
    match args.first() {
        Some(first) if COMMANDS_LATER.contains(&first.as_str()) => {
            Err(Failure::Later(format!("command `{first}`")))
        }
        _ => Ok(()),
    }
}
