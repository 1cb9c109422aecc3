//! Times loading a model against copying the bytes of its file, in turn in one process, and
//! measures the memory that a load and a step take.
//!
//!     cargo run --release -p dllm-load -- --model MODEL.gguf --threads 2
//!
//! Only ratios within a round mean anything on a machine that others use.
#![forbid(unsafe_code)]

mod copy;
mod memory;
mod report;
mod turns;

use argh::FromArgs;
use dllm_rt::Lock;
use report::Report;
use std::path::PathBuf;
use std::process::ExitCode;

/// What a shell sees after wrong usage.
const USAGE: u8 = 2;

/// Times loading a model against copying the bytes of its file, with the same threads, page cache
/// warm; and measures the memory that a load and a step take.
#[derive(FromArgs, Debug)]
struct Arguments {
    /// the GGUF file, of one part
    #[argh(option)]
    model: PathBuf,
    /// threads of a load and of a copy (default: 2)
    #[argh(option, default = "2")]
    threads: usize,
    /// rounds, each with one turn of everything (default: 5)
    #[argh(option, default = "5")]
    reps: usize,
    /// longest canvas that a load plans for (default: 512)
    #[argh(option, default = "512")]
    rows: usize,
    /// also load from packed files kept in this folder
    #[argh(option)]
    packed_cache: Option<PathBuf>,
    /// also load, and copy, into huge pages
    #[argh(switch)]
    huge_pages: bool,
    /// auto, on or off, as of dllm-rt (default: auto)
    #[argh(option, default = "Locking(Lock::Auto)")]
    lock: Locking,
    /// tokens of the forward pass after which memory is measured; 0 for none (default: 32)
    #[argh(option, default = "32")]
    step_tokens: usize,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
}

/// `auto`, `on` or `off`.
#[derive(Clone, Copy, Debug)]
struct Locking(Lock);

impl std::str::FromStr for Locking {
    type Err = String;

    fn from_str(value: &str) -> Result<Locking, String> {
        match value {
            "auto" => Ok(Locking(Lock::Auto)),
            "on" => Ok(Locking(Lock::On)),
            "off" => Ok(Locking(Lock::Off)),
            other => Err(format!("`{other}` is none of auto, on and off")),
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let arguments = match Arguments::from_args(&["dllm-load"], &words) {
        Ok(arguments) => arguments,
        Err(exit) if exit.status.is_ok() => {
            println!("{}", exit.output.trim_end());
            return ExitCode::SUCCESS;
        }
        Err(exit) => {
            eprintln!("dllm-load: {}", exit.output.trim_end());
            return ExitCode::from(USAGE);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("dllm-load: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let report: Report = turns::run(arguments)?;
    if arguments.json {
        let json = serde_json::to_string(&report).map_err(|error| error.to_string())?;
        println!("{json}");
    } else {
        print!("{report}");
    }
    Ok(())
}
