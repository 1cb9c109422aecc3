//! The command line of what measures dllm-rt: times beside yardsticks that are timed in turn with
//! them, since what the machine itself does not give is not the runtime's to lose; instructions;
//! scores; and the files of random weights that are measured.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "speaks to a developer")]

mod batch;
mod collect;
mod instructions;
mod jitter;
mod load;
mod passes;
mod scaling;
mod synth;

use argh::FromArgs;
use dllm_bench::tables::{self, Tables};
use std::process::ExitCode;

/// Measures dllm-rt, and writes the tables of results.
#[derive(FromArgs)]
struct Arguments {
    #[argh(subcommand)]
    command: Task,
}

#[derive(FromArgs)]
#[argh(subcommand)]
enum Task {
    Scaling(scaling::Scaling),
    Jitter(jitter::Jitter),
    Batch(batch::Batch),
    Load(load::Load),
    Instructions(instructions::Instructions),
    Savings(collect::Collect),
    Tables(Tables),
    Synth(synth::Synth),
}

fn main() -> ExitCode {
    dllm_bench::main("dllm-bench", |arguments: Arguments| match &arguments.command {
        Task::Scaling(command) => scaling::run(command),
        Task::Jitter(command) => jitter::run(command),
        Task::Batch(command) => batch::run(command),
        Task::Load(command) => load::run(command),
        Task::Instructions(command) => instructions::run(command),
        Task::Savings(command) => collect::run(command),
        Task::Tables(command) => command.put(&tables::blocks(&command.folder)?),
        Task::Synth(command) => synth::run(command),
    })
}
