//! Which model a command uses, opened and loaded.

use crate::cli::args::FilePath;
use crate::cli::failure::Failure;
use crate::cli::flags::ModelFlags;
use crate::cli::output::{self, Progress, warn};
use crate::cli::prompt::read_input;
use dllm_arena::{Bytes, lock_process};
use dllm_rt::backend::LoadReport;
use dllm_rt::backend::cpu::threads::cpus::allowed_count;
use dllm_rt::gguf::{self, Gguf};
use dllm_rt::{Engine, Limits, Lock, Model, Options, demo};
use std::fmt;
use std::io::{self, IsTerminal};
use std::path::Path;

/// Where a model comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelSource<'a> {
    /// A GGUF file, or one part of a split one.
    File(&'a Path),
    /// The demonstration model.
    BuiltIn,
}

impl<'a> ModelSource<'a> {
    /// The model that `--model` names; without it the one that is built in.
    pub fn new(model: Option<&'a FilePath>) -> ModelSource<'a> {
        model.map_or(ModelSource::BuiltIn, |path| ModelSource::File(&path.0))
    }

    /// Says on a terminal that the model is no large one.
    pub fn introduce(self) {
        if self == ModelSource::BuiltIn && io::stderr().is_terminal() {
            output::say(
                "no --model was given: the built-in demonstration model answers, which knows \
                 capitals, sums, spelling and the like, and one question at a time",
            );
        }
    }

    /// Opens the file.
    pub fn open(self) -> Result<Gguf, Failure> {
        Ok(match self {
            ModelSource::File(path) => gguf::open(path)?,
            ModelSource::BuiltIn => demo::gguf()?,
        })
    }
}

impl fmt::Display for ModelSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelSource::File(path) => path.display().fmt(f),
            ModelSource::BuiltIn => f.write_str(demo::NAME),
        }
    }
}

impl ModelFlags {
    /// Where the model comes from.
    pub fn source(&self) -> ModelSource<'_> {
        ModelSource::new(self.model.as_ref())
    }
}

/// Opens the model of these flags for generation, with the chat template of that file.
pub fn open(flags: &ModelFlags, template: Option<&FilePath>) -> Result<Model, Failure> {
    let mut model = Model::from_gguf(flags.source().open()?, flags.mask_token)?;
    if let Some(FilePath(path)) = template {
        model.set_chat_template(read_input(path)?);
    }
    model.warnings().for_each(warn);
    if let (Some(given), Some(own)) = (flags.mask_token, model.vocab().mask_id())
        && given != own
        && (given as usize) < model.config().vocab
    {
        warn(&format!("--mask-token {given}, but the file names {own}"));
    }
    Ok(model)
}

/// Loads a file with a progress bar.
pub fn load(
    gguf: &Gguf,
    limits: Limits,
    options: &Options,
    flags: &ModelFlags,
) -> Result<Engine, Failure> {
    let mut progress = Progress::bytes(true);
    let engine = Engine::load(gguf, limits, options, &mut |done, total| {
        progress.set(done as u64, total as u64);
    })?;
    drop(progress);
    let (threads, allowed) = (limits.threads, allowed_count());
    if flags.cpus.is_none() && threads > allowed {
        warn(&format!("--threads {threads} on {allowed} CPUs: they wait for each other"));
    }
    // Code, stacks and heap as well; without the privilege the arena's own warning says so.
    if options.lock != Lock::Off {
        lock_process();
    }
    if flags.verbose {
        output::say(&loaded(engine.load_report(), flags.source()));
    }
    if flags.wants_warnings() {
        engine.warnings().iter().for_each(|warning| warn(warning));
    }
    Ok(engine)
}

/// A line on how the load went.
fn loaded(report: &LoadReport, source: ModelSource<'_>) -> String {
    let source = match source {
        ModelSource::File(_) => "the model's file",
        ModelSource::BuiltIn => "the program's own pages",
    };
    let locked = if report.is_locked { "locked" } else { "not locked" };
    let huge = match report.huge_bytes {
        Some(bytes) => format!(", {} in huge pages", Bytes(bytes)),
        None => String::new(),
    };
    format!("load      {:.3} s from {source}, {locked}{huge}", report.fill_s)
}
