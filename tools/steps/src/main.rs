//! How forward passes scale over threads and how even their times are, each beside a loop over
//! registers that is timed in turn with them: what the machine itself does not give is not the
//! runtime's to lose. And what steps of a block save beside whole ones, and shared passes beside
//! passes in turn.

mod figures;
mod jitter;
mod machine;
mod scaling;
mod together;

use argh::FromArgs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Thread scaling and jitter of forward passes; what blocks and shared passes save.
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
    Together(together::Together),
}

fn main() -> ExitCode {
    let arguments: Arguments = argh::from_env();
    let outcome = match arguments.command {
        Task::Scaling(command) => scaling::run(&command),
        Task::Jitter(command) => jitter::run(&command),
        Task::Together(command) => together::run(&command),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("steps: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Writes `result` to `path`, where one was given.
fn write_json(result: &impl serde::Serialize, path: Option<&PathBuf>) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    let text = serde_json::to_string_pretty(result).map_err(|cause| cause.to_string())?;
    std::fs::write(path, text + "\n").map_err(|cause| format!("{}: {cause}", path.display()))
}
