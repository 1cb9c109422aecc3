//! `plan`: what would be laid out and run, before anything is loaded.

mod table;

use crate::cli::args::FilePath;
use crate::cli::failure::Failure;
use crate::cli::source::Source;
use crate::cli::{End, output, session};
use argh::FromArgs;
use dllm_rt::denoise::Settings;
use dllm_rt::engine::kind_of;
use dllm_rt::model::Config;
use dllm_rt::team::cpus;
use dllm_rt::{Limits, Model, Plan, Schedule};

/// Prompt tokens where nobody says: as many as are generated.
const PROMPT_TOKENS: u32 = 128;

/// Prints the operators of a forward pass and the arena with every buffer, before anything is
/// loaded, and whether it fits into memory.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "plan")]
pub struct PlanCommand {
    /// the model's GGUF file (default: the demonstration model that is built in)
    #[argh(option, arg_name = "path")]
    model: Option<FilePath>,
    /// tokens to generate (default: 128)
    #[argh(option, arg_name = "n")]
    max_tokens: Option<u32>,
    /// tokens of the prompt (default: 128)
    #[argh(option, arg_name = "n")]
    prompt_tokens: Option<u32>,
    /// tokens a block (LLaDA; default: 32)
    #[argh(option, arg_name = "n")]
    block_length: Option<u32>,
    /// longest canvas (default: prompt and generated tokens, at most the model's context)
    #[argh(option, arg_name = "n")]
    rows: Option<usize>,
    /// most logit rows of a canvas in a pass (default: what a step of such a generation wants)
    #[argh(option, arg_name = "n")]
    wanted: Option<usize>,
    /// canvases that may share a pass, at most 16 (default: 1)
    #[argh(option, arg_name = "n")]
    canvases: Option<usize>,
    /// plan for whole rows of logits (default: where the model's default settings need them)
    #[argh(switch)]
    logits: bool,
    /// plan for classifier-free guidance, which needs them twice
    #[argh(switch)]
    guidance: bool,
    /// plan for keys and values that are kept from step to step
    #[argh(switch)]
    cache: bool,
    /// worker threads (default: the physical cores that may be used)
    #[argh(option, arg_name = "n")]
    threads: Option<usize>,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A model or limits that cannot be planned for.
pub fn run(command: &PlanCommand) -> Result<End, Failure> {
    let source = Source::new(command.model.as_ref());
    let gguf = source.open()?;
    let model = Model::from_gguf(&gguf)?;
    let plan = Plan::new(&model, limits(command, &model.config)?)?;
    let table = table::table(&plan, &model.config, source);
    if command.json {
        output::json(&table)?;
    } else {
        output::results(|out| table.write(out))?;
    }
    Ok(End::Done)
}

/// The limits asked for, or those of the generation described.
fn limits(command: &PlanCommand, config: &Config) -> Result<Limits, Failure> {
    let kind = kind_of(config.architecture);
    let default = Settings::default();
    let settings = Settings {
        gen_length: command.max_tokens.unwrap_or(default.gen_length),
        block_length: command.block_length,
        ..default
    };
    let schedule = Schedule::new(kind, &settings)?;
    let prompt = command.prompt_tokens.unwrap_or(PROMPT_TOKENS) as usize;
    let rows = match command.rows {
        Some(rows) => rows,
        None => {
            let rows = prompt + schedule.gen_length() as usize;
            let is_default = command.max_tokens.or(command.prompt_tokens).is_none();
            if is_default { rows.min(config.context) } else { rows }
        }
    };
    session::check_context(rows, config)?;
    Ok(Limits {
        logits: command.logits || schedule.needs_logits(),
        guidance: command.guidance,
        cache: command.cache,
        canvases: command.canvases.unwrap_or(1),
        ..Limits::new(
            rows,
            command.wanted.unwrap_or_else(|| schedule.wanted_max(0).max(1)),
            command.threads.unwrap_or_else(cpus::physical_count),
        )
    })
}
