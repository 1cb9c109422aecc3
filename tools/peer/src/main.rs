//! Command line of the comparison with other programs.

#![forbid(unsafe_code)]

use argh::FromArgs;
use dllm_peer::compile::Build;
use dllm_peer::fault::Fault;
use dllm_peer::report::Report;
use dllm_peer::run::Settings;
use dllm_peer::{readme, run, table, turns};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

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
    Readme(Readme),
    Turns(Turns),
}

/// Runs forward passes of all programs, in turn, and prints a table.
#[derive(FromArgs)]
#[argh(subcommand, name = "run")]
struct Run {
    /// a GGUF file; may be given several times
    #[argh(option, arg_name = "file")]
    model: Vec<PathBuf>,
    /// source and build folder of llama.cpp, built with shared libraries: SOURCE:BUILD
    #[argh(option, arg_name = "folders")]
    llama: Option<Build>,
    /// the same of ik_llama.cpp
    #[argh(option, arg_name = "folders")]
    ik: Option<Build>,
    /// another build of this program, such as one of an older dllm-rt: NAME:PROGRAM; may be given
    /// several times
    #[argh(option, arg_name = "program")]
    other: Vec<Other>,
    /// tokens of the canvas (default: 148,512)
    #[argh(option, arg_name = "list", default = "List(vec![148, 512])")]
    rows: List,
    /// threads of every program (default: 1,2)
    #[argh(option, arg_name = "list", default = "List(vec![1, 2])")]
    threads: List,
    /// turns for each number of tokens and threads (default: 7)
    #[argh(option, arg_name = "n", default = "7")]
    reps: usize,
    /// seconds after which no further turn begins for a number of tokens and threads, once there
    /// are three (default: no limit)
    #[argh(option, arg_name = "n")]
    seconds: Option<u64>,
    /// instruction set of dllm-rt (default: the fastest)
    #[argh(option, arg_name = "name")]
    isa: Option<String>,
    /// flash attention of llama.cpp: auto, on or off (default: auto)
    #[argh(option, arg_name = "mode", default = "String::from(\"auto\")")]
    llama_flash: String,
    /// also write everything measured to this file
    #[argh(option, arg_name = "file")]
    json: Option<PathBuf>,
}

/// Writes the README's table from the results, or with --check only compares them.
#[derive(FromArgs)]
#[argh(subcommand, name = "readme")]
struct Readme {
    /// the folder of README.md and benches/results (default: the current one)
    #[argh(option, arg_name = "folder", default = "PathBuf::from(\".\")")]
    root: PathBuf,
    /// change nothing, fail if something would change
    #[argh(switch)]
    check: bool,
}

/// Answers lines of standard input with forward passes, as `run` asks for them.
#[derive(FromArgs)]
#[argh(subcommand, name = "turns")]
struct Turns {
    /// a GGUF file
    #[argh(option, arg_name = "file")]
    model: PathBuf,
    /// instruction set (default: the fastest)
    #[argh(option, arg_name = "name")]
    isa: Option<String>,
}

/// Numbers separated by commas.
struct List(Vec<usize>);

impl std::str::FromStr for List {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<List, Self::Err> {
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(List)
    }
}

/// A program by name.
struct Other(String, PathBuf);

impl std::str::FromStr for Other {
    type Err = String;

    fn from_str(text: &str) -> Result<Other, String> {
        match text.split_once(':') {
            Some((name, program)) if !name.is_empty() && !program.is_empty() => {
                Ok(Other(name.into(), program.into()))
            }
            _ => Err("write NAME:PROGRAM".into()),
        }
    }
}

fn main() -> ExitCode {
    let arguments: Arguments = argh::from_env();
    let done = match arguments.command {
        Command::Run(run) => compare(*run),
        Command::Readme(readme) => write_readme(&readme),
        Command::Turns(turns) => {
            let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
            turns::serve(&turns.model, turns.isa.as_deref(), input, output)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("dllm-peer: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn compare(run: Run) -> Result<(), Fault> {
    if !["auto", "on", "off"].contains(&run.llama_flash.as_str()) {
        return Err(Fault::Argument("--llama-flash must be auto, on or off".into()));
    }
    let program = std::env::current_exe().map_err(Fault::io(Path::new("this program")))?;
    let settings = Settings {
        models: run.model,
        llama: run.llama,
        ik: run.ik,
        others: run.other.into_iter().map(|Other(name, program)| (name, program)).collect(),
        rows: run.rows.0,
        threads: run.threads.0,
        reps: run.reps,
        case_time: run.seconds.map(Duration::from_secs),
        isa: run.isa,
        flash: run.llama_flash,
        program,
    };
    // Before the run: a folder that cannot be made should not cost one.
    let folder = run.json.as_deref().and_then(Path::parent);
    folder
        .map_or(Ok(()), fs::create_dir_all)
        .map_err(Fault::io(folder.unwrap_or(Path::new(""))))?;
    let report = run::run(&settings, &mut |line| eprintln!("{line}"))?;
    print!("{}", table::text(&report));
    run.json.map_or(Ok(()), |path| write_report(&report, &path))
}

fn write_report(report: &Report, path: &Path) -> Result<(), Fault> {
    let text =
        serde_json::to_string_pretty(report).map_err(|error| Fault::Results(error.to_string()))?;
    fs::write(path, text + "\n").map_err(Fault::io(path))
}

fn write_readme(arguments: &Readme) -> Result<(), Fault> {
    let path = arguments.root.join("README.md");
    let old = fs::read_to_string(&path).map_err(Fault::io(&path))?;
    let reports = readme::results(&arguments.root.join("benches/results"))?;
    let new = readme::with_block(&old, &reports)?;
    if arguments.check && new != old {
        return Err(Fault::Readme("the README is not what `dllm-peer readme` writes".into()));
    }
    if new == old { Ok(()) } else { fs::write(&path, new).map_err(Fault::io(&path)) }
}
