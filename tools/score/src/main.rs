//! Command line of the recorded scores.

#![forbid(unsafe_code)]

mod collect;

use argh::FromArgs;
use score::Record;
use score::savings::Savings;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

/// Below the top of the tree, where this is to be run.
const RESULTS: &str = "benches/results";

/// Records of the demonstration model's scores. To be run at the top of the tree.
#[derive(FromArgs)]
struct Arguments {
    #[argh(subcommand)]
    command: Task,
}

#[derive(FromArgs)]
#[argh(subcommand)]
enum Task {
    Readme(Readme),
    Savings(Collect),
}

/// Writes the tables of README.md from benches/results.
#[derive(FromArgs)]
#[argh(subcommand, name = "readme")]
struct Readme {}

/// Scores and times every way to save work, into benches/results: half an hour.
#[derive(FromArgs)]
#[argh(subcommand, name = "savings")]
struct Collect {
    /// the program to run (default: target/release/dllm-rt)
    #[argh(option, default = "PathBuf::from(\"target/release/dllm-rt\")")]
    program: PathBuf,
}

fn main() -> ExitCode {
    let arguments: Arguments = argh::from_env();
    let outcome = match arguments.command {
        Task::Readme(Readme {}) => write(),
        Task::Savings(Collect { program }) => collect::collect(&program, Path::new(RESULTS)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("score: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write() -> io::Result<()> {
    let folder = Path::new(RESULTS);
    let readme = fs::read_to_string("README.md")?;
    let readme = Record::read(folder)?.within(&readme)?;
    fs::write("README.md", Savings::read(folder)?.within(&readme)?)
}
