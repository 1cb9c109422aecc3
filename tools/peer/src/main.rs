//! Command line of the comparison with other programs.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "speaks to a developer")]

use argh::FromArgs;
use dllm_bench::Error;
use dllm_bench::record::write_json;
use dllm_bench::tables::Tables;
use dllm_peer::run::Run;
use dllm_peer::turns::Turns;
use dllm_peer::{report, run, table, turns};
use std::path::Path;
use std::process::ExitCode;

/// Compares dllm-rt with llama.cpp and ik_llama.cpp on the same file, in turn.
#[derive(FromArgs)]
struct Arguments {
    #[argh(subcommand)]
    command: Command,
}

#[derive(FromArgs)]
#[argh(subcommand)]
enum Command {
    Run(Box<Run>),
    Tables(Tables),
    Turns(Turns),
}

fn main() -> ExitCode {
    dllm_bench::main("dllm-peer", |arguments: Arguments| match arguments.command {
        Command::Run(run) => compare(&run),
        Command::Tables(tables) => {
            let block = table::block(&report::results(&tables.folder)?)?;
            tables.put(&[(table::BLOCK, block)])
        }
        Command::Turns(turns) => {
            let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
            turns::serve(&turns, input, output)
        }
    })
}

fn compare(run: &Run) -> Result<(), Error> {
    // Before the run: a folder that cannot be made should not cost one.
    if let Some(folder) = run.json.as_deref().and_then(Path::parent) {
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
    }
    let report = run::run(run)?;
    print!("{}", table::text(&report));
    run.json.as_ref().map_or(Ok(()), |path| write_json(path, &report))
}
