//! `run`: generates text.

mod chat;
mod command;
mod report;
mod watch;

use crate::cli::args::Seed;
use crate::cli::failure::{End, Failure};
use crate::cli::flags::ModelFlags;
use crate::cli::interrupt::Interrupt;
use crate::cli::{model, output};
pub use command::Run;
use dllm_rt::FinishReason;
use dllm_rt::generate::Generation;
use report::Loaded;
use std::time::Instant;
use watch::{Watchers, generate, say_cut};

/// Runs the command.
pub fn run(command: Run) -> Result<End, Failure> {
    command.check()?;
    if let Some(Seed { seed, is_drawn: true }) = command.seed {
        output::say(&format!("seed {seed}"));
    }
    let flags = command.model_flags();
    if command.interactive { chat::run(&command, &flags) } else { once(&command, &flags) }
}

/// One prompt, one answer.
fn once(command: &Run, flags: &ModelFlags) -> Result<End, Failure> {
    let (source, options) = (flags.source(), flags.options()?);
    let request = command.request(command.prompt_flags().read()?);
    let model = model::open(flags, command.chat_template.as_ref())?;
    source.introduce();
    command.checked(&model)?;
    let prepared = model.prepare(&request)?;
    let limits = command.limits(prepared.limits(), flags);
    let model_hash = if command.json { model.hash(flags.threads()) } else { String::new() };
    let start = Instant::now();
    let mut engine = model::load(model.gguf(), limits, &options, flags)?;
    engine.set_full_logits(command.full_logits);
    let load_s = start.elapsed().as_secs_f64();
    let mut generation = Generation::start(&mut engine, &prepared)?;
    let interrupt = Interrupt::listen()?;
    generation.cancel_by(interrupt.flag());
    let mut watchers = Watchers::new(command, &model);
    let outcome = generate(&mut engine, &mut generation, &mut watchers)?;
    let trace = watchers.finish();
    let answer = model.answer(&generation)?;
    say_cut(&answer);
    if flags.verbose {
        report::say(&engine, &outcome);
    }
    if command.json {
        let loaded = Loaded { source, model_hash, load_s, options: &options, model: &model };
        let parameters = prepared.parameters();
        output::json(&loaded.report(&engine, &generation, parameters, &outcome, &answer, trace))?;
    } else {
        if prepared.parameters().max_tokens > 0 {
            answer.holes.iter().for_each(|hole| output::say(&hole.to_string()));
        }
        output::text(&answer.text)?;
    }
    let is_interrupted = generation.cut() == Some(FinishReason::Interrupt);
    Ok(if is_interrupted { End::Interrupted(interrupt.status()) } else { End::Done })
}
