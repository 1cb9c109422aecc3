//! `detokenize`: the text of token ids.

use crate::cli::args::{FilePath, Ids};
use crate::cli::failure::{End, Failure};
use crate::cli::model::ModelSource;
use crate::cli::output;
use crate::cli::prompt::{STDIN, read_input};
use argh::{FromArgValue, FromArgs};
use dllm_rt::vocab::{Show, Vocab};
use serde_json::json;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Prints the bytes that token ids spell, control tokens as they are written, and nothing else
/// (on a terminal a newline). Needs only the tokenizer's keys of the file.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "detokenize")]
pub struct Detokenize {
    /// the GGUF file (default: the demonstration model that is built in)
    #[argh(option, arg_name = "path")]
    model: Option<FilePath>,
    /// the ids, separated by commas (default: those of standard input, by commas or white space)
    #[argh(option, arg_name = "ids")]
    tokens: Option<Ids>,
    /// print one JSON object with the text; bytes that are no UTF-8 become U+FFFD
    #[argh(switch)]
    json: bool,
}

/// Runs the command.
pub fn run(command: &Detokenize) -> Result<End, Failure> {
    let vocab = Vocab::from_gguf(&ModelSource::new(command.model.as_ref()).open()?)?;
    let ids = &match &command.tokens {
        Some(ids) => ids.0.clone(),
        None => read()?,
    };
    if command.json {
        output::json(&json!({ "text": vocab.decode_text(ids, Show::All)? }))?;
        return Ok(End::Done);
    }
    let bytes = vocab.decode(ids, Show::All)?;
    if io::stdout().is_terminal() {
        output::text(&String::from_utf8_lossy(&bytes))?;
    } else {
        output::results(|out| out.write_all(&bytes))?;
    }
    Ok(End::Done)
}

/// The ids of standard input, as `tokenize` prints them or with white space between them.
fn read() -> Result<Vec<u32>, Failure> {
    if io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "no ids: give --tokens, or pipe them into standard input".into(),
        ));
    }
    let text = read_input(Path::new(STDIN))?;
    // A comma before white space is part of that.
    let bare = |word| str::strip_suffix(word, ',').unwrap_or(word);
    let list = text.split_whitespace().map(bare).collect::<Vec<_>>().join(",");
    let wrong = |message| Failure::Usage(format!("standard input: {message}"));
    Ids::from_arg_value(&list).map(|ids| ids.0).map_err(wrong)
}
