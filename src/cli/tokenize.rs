//! `tokenize`: the token ids of a prompt.

use crate::cli::args::{FilePath, Text};
use crate::cli::failure::{End, Failure};
use crate::cli::model::ModelSource;
use crate::cli::output;
use crate::cli::prompt::{PromptFlags, read_input};
use argh::FromArgs;
use dllm_rt::vocab::Vocab;
use serde_json::json;
use std::io::Write;

/// Prints the token ids of the chat-formatted prompt, or with --no-chat of the text alone. Needs
/// only the tokenizer's keys of the file. Reads standard input where no prompt is given.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "tokenize")]
pub struct Tokenize {
    /// the GGUF file (default: the demonstration model that is built in)
    #[argh(option, arg_name = "path")]
    model: Option<FilePath>,
    /// the text
    #[argh(option, arg_name = "text")]
    prompt: Option<Text>,
    /// a file with the text, or - for standard input; a last line end is not part of it without
    /// --no-chat
    #[argh(option, arg_name = "path")]
    prompt_file: Option<FilePath>,
    /// a JSON file with chat turns, or - for standard input
    #[argh(option, arg_name = "path")]
    messages: Option<FilePath>,
    /// a file with a Jinja chat template to use in the place of the model's
    #[argh(option, arg_name = "path")]
    chat_template: Option<FilePath>,
    /// a system turn before the others
    #[argh(option, arg_name = "text")]
    system: Option<Text>,
    /// without the chat template; a BOS leads only where the file asks for one
    #[argh(switch)]
    no_chat: bool,
    /// with --no-chat: control tokens written in the text are tokens
    #[argh(switch)]
    special: bool,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
}

/// Runs the command.
pub fn run(command: &Tokenize) -> Result<End, Failure> {
    let prompt = PromptFlags {
        prompt: command.prompt.as_ref(),
        file: command.prompt_file.as_ref(),
        messages: command.messages.as_ref(),
        tokens: None,
        system: command.system.as_ref(),
        no_chat: command.no_chat,
        special: command.special,
        holes: false,
    };
    let prompt = prompt.read()?;
    let mut vocab = Vocab::from_gguf(&ModelSource::new(command.model.as_ref()).open()?)?;
    if let Some(FilePath(path)) = &command.chat_template {
        vocab.set_chat_template(read_input(path)?);
    }
    vocab.warnings().iter().for_each(|warning| output::warn(warning));
    let ids = prompt.encode(&vocab, None)?;
    if command.json {
        output::json(&json!({ "tokens": ids }))?;
    } else {
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        output::results(|out| writeln!(out, "{}", ids.join(",")))?;
    }
    Ok(End::Done)
}
