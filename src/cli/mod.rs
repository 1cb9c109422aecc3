//! The command line: one file a sub-command, a folder for the long ones.
//!
//! Results go to standard output, everything else to standard error. The exit status is 0 for
//! done, 1 for an error that names its cause, 2 for wrong usage, 128 + n after signal n.

mod args;
mod bench;
mod detokenize;
mod eval;
mod failure;
mod flags;
mod inspect;
mod interrupt;
mod logits;
mod model;
mod output;
mod plan;
mod prompt;
mod run;
mod tokenize;

use argh::FromArgs;
use failure::{End, Failure};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// What a shell sees after wrong usage.
const USAGE: u8 = 2;

/// Commands of this version.
const COMMANDS: [&str; 8] =
    ["run", "tokenize", "detokenize", "inspect", "logits", "plan", "bench", "eval"];
/// Commands that a later version will have.
const COMMANDS_LATER: [&str; 4] = ["profile", "serve", "batch", "doctor"];

/// Runs masked-diffusion language models from GGUF files.
#[derive(FromArgs, Debug)]
struct Arguments {
    /// print the version
    #[argh(switch)]
    version: bool,
    #[argh(subcommand)]
    command: Option<Command>,
}

#[derive(FromArgs, Debug)]
#[argh(subcommand)]
enum Command {
    Run(Box<run::Run>),
    Tokenize(tokenize::Tokenize),
    Detokenize(detokenize::Detokenize),
    Inspect(inspect::Inspect),
    Logits(logits::Logits),
    Plan(plan::PlanCommand),
    Bench(Box<bench::Bench>),
    Eval(Box<eval::Eval>),
}

/// Runs the command that `args`, without the program's name, ask for.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<String> = args.map(args::escape).collect();
    let result = refuse_later(&args).and_then(|()| parse(&args)).and_then(execute);
    match result {
        Ok(End::Done) => ExitCode::SUCCESS,
        Ok(End::Interrupted(status)) => ExitCode::from(status),
        // Nobody reads on, so nothing is missing.
        Err(Failure::BrokenPipe) => ExitCode::SUCCESS,
        Err(failure) if failure.is_usage() => {
            let lines: Vec<String> = failure.to_string().lines().map(args::one_line).collect();
            output::say(&format!("dllm-rt: {}", lines.join("\n")));
            ExitCode::from(USAGE)
        }
        Err(failure) => {
            output::say(&format!("dllm-rt: {}", args::one_line(&failure.to_string())));
            ExitCode::FAILURE
        }
    }
}

/// Refuses a command that a later version will have, whatever follows it.
fn refuse_later(args: &[String]) -> Result<(), Failure> {
    match args.first() {
        Some(first) if COMMANDS_LATER.contains(&first.as_str()) => {
            Err(Failure::Later(format!("command `{first}`")))
        }
        _ => Ok(()),
    }
}

/// The command, or `None` where help or the version was asked for and printed.
fn parse(args: &[String]) -> Result<Option<Command>, Failure> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let arguments = match Arguments::from_args(&["dllm-rt"], &words) {
        Ok(arguments) => arguments,
        Err(exit) if exit.status.is_ok() => {
            output::results(|out| writeln!(out, "{}", exit.output.trim_end()))?;
            return Ok(None);
        }
        Err(exit) => return Err(usage(args, exit.output.trim_end())),
    };
    if arguments.version {
        output::results(|out| writeln!(out, "dllm-rt {}", env!("CARGO_PKG_VERSION")))?;
        return Ok(None);
    }
    match arguments.command {
        Some(command) => Ok(Some(command)),
        None => Err(usage(args, "no command given")),
    }
}

fn usage(args: &[String], message: &str) -> Failure {
    let command = match args.first() {
        Some(first) if COMMANDS.contains(&first.as_str()) => format!("{first} "),
        _ => String::new(),
    };
    let message = match args.iter().position(|arg| args::is_escaped(arg)) {
        Some(at) if message.contains('\0') => format!("argument {} is not UTF-8", at + 1),
        _ => message.to_owned(),
    };
    Failure::Usage(format!("{message}\nTry `dllm-rt {command}--help`."))
}

fn execute(command: Option<Command>) -> Result<End, Failure> {
    match command {
        None => Ok(End::Done),
        Some(Command::Run(command)) => run::run(*command),
        Some(Command::Tokenize(command)) => tokenize::run(&command),
        Some(Command::Detokenize(command)) => detokenize::run(&command),
        Some(Command::Inspect(command)) => inspect::run(&command),
        Some(Command::Logits(command)) => logits::run(&command),
        Some(Command::Plan(command)) => plan::run(&command),
        Some(Command::Bench(command)) => bench::run(&command),
        Some(Command::Eval(command)) => eval::run(&command),
    }
}
