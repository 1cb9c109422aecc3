//! `inspect`: what a GGUF file holds.

use crate::cli::args::FilePath;
use crate::cli::failure::{End, Failure};
use crate::cli::model::ModelSource;
use crate::cli::output;
use argh::FromArgs;
use dllm_rt::gguf::inspect;

/// Prints a GGUF file's metadata, the number and size of its tensors by type, and every tensor's
/// type and shape. Any GGUF file will do; any part of a split one opens all of it.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "inspect")]
pub struct Inspect {
    /// the GGUF file (default: the demonstration model that is built in)
    #[argh(positional)]
    path: Option<FilePath>,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
}

/// Runs the command.
pub fn run(command: &Inspect) -> Result<End, Failure> {
    let gguf = ModelSource::new(command.path.as_ref()).open()?;
    output::results(|out| match command.json {
        true => inspect::write_json(&gguf, out),
        false => inspect::write_text(&gguf, out),
    })?;
    Ok(End::Done)
}
