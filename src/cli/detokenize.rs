//! `detokenize`: the text of token ids.

use crate::cli::args::{FilePath, Ids};
use crate::cli::failure::{End, Failure};
use crate::cli::model::ModelSource;
use crate::cli::output;
use argh::FromArgs;
use dllm_rt::vocab::{Show, Vocab};
use serde_json::json;
use std::io::{self, IsTerminal, Write};

/// Prints the bytes that token ids spell, control tokens as they are written, and nothing else
/// (on a terminal a newline). Needs only the tokenizer's keys of the file.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "detokenize")]
pub struct Detokenize {
    /// the GGUF file (default: the demonstration model that is built in)
    #[argh(option, arg_name = "path")]
    model: Option<FilePath>,
    /// the ids, separated by commas
    #[argh(option, arg_name = "ids")]
    tokens: Ids,
    /// print one JSON object with the text; bytes that are no UTF-8 become U+FFFD
    #[argh(switch)]
    json: bool,
}

/// Runs the command.
pub fn run(command: &Detokenize) -> Result<End, Failure> {
    let vocab = Vocab::from_gguf(&ModelSource::new(command.model.as_ref()).open()?)?;
    let ids = &command.tokens.0;
    if command.json {
        output::json(&json!({ "text": vocab.decode_text(ids, Show::All)? }))?;
        return Ok(End::Done);
    }
    let bytes = vocab.decode(ids, Show::All)?;
    let end: &[u8] = if io::stdout().is_terminal() { b"\n" } else { b"" };
    output::results(|out| out.write_all(&bytes).and_then(|()| out.write_all(end)))?;
    Ok(End::Done)
}
