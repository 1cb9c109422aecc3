//! An open model file with what its metadata say, and its engine.

use crate::cli::failure::Failure;
use crate::cli::flags::ModelFlags;
use crate::cli::output::{self, Progress};
use crate::cli::source::Source;
use dllm_rt::denoise::ModelFacts;
use dllm_rt::engine::{LoadReport, kind_of};
use dllm_rt::error::Gib;
use dllm_rt::gguf::Gguf;
use dllm_rt::model::Config;
use dllm_rt::repack::{Tensors, Threads};
use dllm_rt::sample::Kind;
use dllm_rt::team::cpus;
use dllm_rt::vocab::{Vocab, parts_from_gguf};
use dllm_rt::{Engine, Error, Limits, Lock, Model, Options, lock_process};

/// A model that can generate: file, configuration, tokenizer.
pub struct Session {
    /// The file.
    pub gguf: Gguf,
    /// Sizes and constants.
    pub config: Config,
    /// The tokenizer.
    pub vocab: Vocab,
    /// What a canvas must know.
    pub facts: ModelFacts,
}

impl Session {
    /// Opens the model and reads its metadata.
    ///
    /// # Errors
    /// Whatever is wrong with the file; no mask token; a tokenizer of another model;
    /// an architecture that generates nothing.
    pub fn open(source: Source<'_>, mask_token: Option<u32>) -> Result<Session, Failure> {
        let gguf = source.open()?;
        let config = Model::from_gguf(&gguf)?.config;
        config.architecture.check_generates()?;
        let vocab = vocab(&gguf)?;
        let (tokens, rows) = (vocab.token_count(), config.vocab);
        if tokens > rows {
            return Err(Failure::Vocabulary { tokens, rows });
        }
        if let (Some(given), Some(own)) = (mask_token, vocab.mask_id())
            && given != own
            && (given as usize) < rows
        {
            output::say(&format!("warning: --mask-token {given}, but the file names {own}"));
        }
        let mask_token = mask_token.or(vocab.mask_id()).ok_or(Error::NoMaskToken)?;
        let end_of_turn: Vec<u32> = vocab.eot_id().into_iter().collect();
        // A file may use one token for both; then it ends the text.
        let is_turn = |id: &&u32| end_of_turn.contains(id) && vocab.eos_id() != Some(**id);
        let end_of_text = vocab.end_ids().iter().filter(|id| !is_turn(id)).copied().collect();
        let facts = ModelFacts {
            mask_token,
            // A configuration's vocabulary has 2^24 tokens at most.
            vocab_size: config.vocab as u32,
            shift_logits: config.shift_logits,
            end_of_text,
            end_of_turn,
        };
        Ok(Session { gguf, config, vocab, facts })
    }

    /// The loop that the model was trained for.
    pub fn kind(&self) -> Kind {
        kind_of(self.config.architecture)
    }

    /// The hash of the model's content, read by several threads.
    pub fn hash(&self, threads: usize) -> String {
        let threads = Threads { count: threads.min(cpus::allowed_count()), enter: &|_| () };
        Tensors::new(&self.gguf).hash(&threads, &mut |_| ())
    }

    /// Whether the token ends a text or a turn.
    pub fn is_end(&self, id: u32) -> bool {
        self.facts.end_of_text.contains(&id) || self.facts.end_of_turn.contains(&id)
    }
}

/// The tokenizer of a file.
///
/// # Errors
/// Whatever is wrong with its keys.
pub fn vocab(gguf: &Gguf) -> Result<Vocab, Failure> {
    Ok(Vocab::new(parts_from_gguf(gguf)?)?)
}

/// Refuses a canvas that the model was not trained for.
///
/// # Errors
/// [`Failure::Context`].
pub fn check_context(positions: usize, config: &Config) -> Result<(), Failure> {
    let context = config.context;
    if positions > context { Err(Failure::Context { positions, context }) } else { Ok(()) }
}

/// Loads the model with a progress bar.
///
/// # Errors
/// Whatever the library refuses.
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
    // Code, stacks and heap as well; without the privilege the arena's own warning says so.
    if options.lock != Lock::Off {
        lock_process();
    }
    if flags.verbose {
        let report = engine.load_report();
        output::say(&loaded(report, flags.source()));
        report.notes.iter().for_each(|note| output::say(note));
    }
    if flags.wants_warnings() {
        engine.warnings().iter().for_each(|warning| output::say(&format!("warning: {warning}")));
    }
    Ok(engine)
}

/// A line on how the load went.
fn loaded(report: &LoadReport, source: Source<'_>) -> String {
    let source = match source {
        _ if report.is_from_packed => "a packed file",
        Source::File(_) => "the model's file",
        Source::BuiltIn => "the program's own pages",
    };
    let locked = if report.is_locked { "locked" } else { "not locked" };
    let huge = match report.huge_bytes {
        Some(bytes) => format!(", {} in huge pages", Gib(bytes)),
        None => String::new(),
    };
    format!("load      {:.3} s from {source}, {locked}{huge}", report.fill_s)
}
