//! `plan`: what would be laid out and run, before anything is loaded.

mod table;

use crate::cli::args::FilePath;
use crate::cli::failure::{End, Failure};
use crate::cli::model::ModelSource;
use crate::cli::output;
use argh::FromArgs;
use dllm_rt::backend::cpu::Plan;
use dllm_rt::engine::kind_of;
use dllm_rt::model::{Config, Network};
use dllm_rt::{Error, GenerationParameters, Limits, RequestParameters, generate};

/// Prompt tokens by default: as many as are generated.
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
    /// most rows of logits of a sequence in a pass (default: what a step of such a generation
    /// needs)
    #[argh(option, arg_name = "n")]
    output_rows: Option<usize>,
    /// sequences that may share a pass, at most 16 (default: 1)
    #[argh(option, arg_name = "n")]
    sequences: Option<usize>,
    /// plan for whole rows of logits (default: where the model's default settings need them)
    #[argh(switch)]
    logits: bool,
    /// plan for classifier-free guidance, which needs them twice
    #[argh(switch)]
    guidance: bool,
    /// plan for a KV cache: keys and values that are kept from step to step
    #[argh(switch)]
    kv_cache: bool,
    /// worker threads (default: the physical cores that may be used)
    #[argh(option, arg_name = "n")]
    threads: Option<usize>,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
}

/// Runs the command.
pub fn run(command: &PlanCommand) -> Result<End, Failure> {
    let source = ModelSource::new(command.model.as_ref());
    let gguf = source.open()?;
    let network = Network::from_gguf(&gguf)?;
    let plan = Plan::new(&network, limits(command, &network.config)?)?;
    let table = table::Table::new(&plan, &network.config, source);
    if command.json {
        output::json(&table)?;
    } else {
        output::results(|out| table.write(out))?;
    }
    Ok(End::Done)
}

/// The limits asked for, or those of the generation described.
fn limits(command: &PlanCommand, config: &Config) -> Result<Limits, Failure> {
    let default = RequestParameters::default();
    let request = RequestParameters {
        max_tokens: command.max_tokens.unwrap_or(default.max_tokens),
        block_length: command.block_length,
        ..default
    };
    let parameters = GenerationParameters::new(kind_of(config.architecture), &request)?;
    let prompt = command.prompt_tokens.unwrap_or(PROMPT_TOKENS) as usize;
    let positions = prompt + parameters.max_tokens as usize;
    let is_default =
        command.rows.is_none() && command.max_tokens.or(command.prompt_tokens).is_none();
    let positions = if is_default { positions.min(config.context) } else { positions };
    let rows = command.rows.unwrap_or(positions);
    if rows > config.context {
        return Err(Error::Context { positions: rows, context: config.context }.into());
    }
    let limits = generate::limits(&parameters, rows, 0);
    Ok(Limits {
        output_rows: command.output_rows.unwrap_or(limits.output_rows),
        sequences: command.sequences.unwrap_or(1),
        logits: command.logits || limits.logits,
        guidance: command.guidance,
        kv_cache: command.kv_cache,
        threads: command.threads.unwrap_or(limits.threads),
        ..limits
    })
}
