//! `logits`: one forward pass.

use crate::cli::args::{FilePath, Ids};
use crate::cli::failure::{End, Failure};
use crate::cli::flags::model_command;
use crate::cli::{model, output};
use dllm_rt::model::{Config, Network};
use dllm_rt::{Error, Limits};
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;

model_command! {
    /// Computes one forward pass and writes the logits as raw little-endian f32, rows by
    /// vocabulary, as the model gives them (of a Dream model not shifted).
    #[argh(subcommand, name = "logits")]
    pub struct Logits {
        /// the token ids, separated by commas; taken as they are
        #[argh(option, arg_name = "ids")]
        tokens: Ids,
        /// the positions whose logits to write, in this order (default: all)
        #[argh(option, arg_name = "positions")]
        rows: Option<Ids>,
        /// where to write; - is standard output. A file is whole or as it was before
        #[argh(option, arg_name = "path")]
        out: FilePath,
    }
}

/// Runs the command.
pub fn run(command: &Logits) -> Result<End, Failure> {
    let flags = command.model_flags();
    let options = flags.options()?;
    let ids = &command.tokens.0;
    if ids.is_empty() {
        return Err(Failure::Usage("--tokens is empty; give at least one id".into()));
    }
    let all = || (0..ids.len() as u32).collect();
    let rows: Vec<u32> = command.rows.as_ref().map_or_else(all, |rows| rows.0.clone());
    if rows.is_empty() {
        return Err(Failure::Usage("--rows is empty; give at least one position".into()));
    }
    let to_stdout = command.out.0 == Path::new("-");
    if to_stdout && command.json {
        return Err(Failure::Usage("--out - and --json both write to standard output".into()));
    }
    if !to_stdout {
        output::check_target(&command.out.0)?;
    }
    let gguf = flags.source().open()?;
    check(ids, &rows, &Network::from_gguf(&gguf)?.config)?;
    let mut computed = rows.clone();
    computed.sort_unstable();
    computed.dedup();
    let limits = Limits { logits: true, ..Limits::new(ids.len(), computed.len(), flags.threads()) };
    let mut engine = model::load(&gguf, limits, &options, &flags)?;
    let logits: Vec<&[f32]> = engine.logits(ids, &computed)?.rows().collect();
    // Every row asked for is among those computed.
    let asked = || rows.iter().filter_map(|row| computed.binary_search(row).ok());
    let write = |out: &mut dyn Write| asked().try_for_each(|at| write_row(out, logits[at]));
    if to_stdout {
        output::results(|out| write(out))?;
    } else {
        output::file(&command.out.0, write)?;
    }
    if command.json {
        let vocab = logits.first().map_or(0, |row| row.len());
        let out = command.out.0.display().to_string();
        output::json(&json!({ "rows": rows.len(), "vocab": vocab, "out": out }))?;
    }
    Ok(End::Done)
}

/// Refuses before anything is loaded what the engine would refuse after it.
fn check(ids: &[u32], rows: &[u32], config: &Config) -> Result<(), Failure> {
    // The logits of such a model mean something under a causal mask only.
    config.architecture.check_generates()?;
    let (positions, context) = (ids.len(), config.context);
    if positions > context {
        return Err(Error::Context { positions, context }.into());
    }
    let vocab = config.vocab;
    if let Some(position) = ids.iter().position(|id| *id as usize >= vocab) {
        return Err(Error::Token { position, token: ids[position], vocab }.into());
    }
    match rows.iter().find(|row| **row as usize >= ids.len()) {
        Some(row) => Err(Error::Row { row: *row, rows: ids.len() }.into()),
        None => Ok(()),
    }
}

fn write_row(out: &mut dyn Write, row: &[f32]) -> io::Result<()> {
    row.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))
}
