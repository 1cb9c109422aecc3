//! Writes a GGUF file of random weights: LLaDA-8B's or Dream-7B's sizes, or any others.
//!
//!     cargo run --release -p dllm-synth -- --shape llada-8b --layers 2 --out target/llada.gguf
//!
//! The file appears whole or not at all: it is written as `FILE.part` and then renamed.
#![forbid(unsafe_code)]

use argh::FromArgs;
use dllm_rt::model::Architecture;
use dllm_rt::synth::{Recipe, Shape, SyntheticFile, Types};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// What a shell sees after wrong usage.
const USAGE: u8 = 2;

/// Writes a GGUF file of random weights that dllm-rt, llama.cpp and its relatives load.
#[derive(FromArgs, Debug)]
struct Arguments {
    /// the sizes to start from: llada-8b, dream-7b or tiny (default: llada-8b)
    #[argh(option, default = "String::from(\"llada-8b\")")]
    shape: String,
    /// architecture: llada, dream or llama (default: the shape's)
    #[argh(option)]
    arch: Option<String>,
    /// types of the matrices: q4_k_m, or the name of a tensor type (default: q4_k_m)
    #[argh(option, long = "type", default = "String::from(\"q4_k_m\")")]
    types: String,
    /// layers
    #[argh(option)]
    layers: Option<usize>,
    /// width of the residual stream
    #[argh(option)]
    width: Option<usize>,
    /// query heads
    #[argh(option)]
    heads: Option<usize>,
    /// key and value heads
    #[argh(option)]
    kv_heads: Option<usize>,
    /// width of the feed-forward
    #[argh(option)]
    ff: Option<usize>,
    /// tokens of the vocabulary
    #[argh(option)]
    vocab: Option<usize>,
    /// positions
    #[argh(option)]
    context: Option<usize>,
    /// another seed gives other weights (default: 0)
    #[argh(option, default = "0")]
    seed: u64,
    /// the file
    #[argh(option)]
    out: PathBuf,
}

fn main() -> ExitCode {
    let read = std::env::args_os().skip(1).map(|argument| argument.into_string());
    let Ok(arguments) = read.collect::<Result<Vec<String>, _>>() else {
        eprintln!("dllm-synth: an argument is not UTF-8");
        return ExitCode::from(USAGE);
    };
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let arguments = match Arguments::from_args(&["dllm-synth"], &words) {
        Ok(arguments) => arguments,
        Err(exit) if exit.status.is_ok() => {
            println!("{}", exit.output.trim_end());
            return ExitCode::SUCCESS;
        }
        Err(exit) => {
            eprintln!("dllm-synth: {}", exit.output.trim_end());
            return ExitCode::from(USAGE);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("dllm-synth: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let file = SyntheticFile::new(recipe(arguments)?).map_err(|fault| fault.to_string())?;
    let start = Instant::now();
    let failed = |error| format!("cannot write `{}`: {error}", arguments.out.display());
    write(&file, &arguments.out).map_err(failed)?;
    let (bytes, seconds) = (file.bytes(), start.elapsed().as_secs_f64());
    let rate = bytes as f64 / seconds / 1e6;
    eprintln!("{}: {bytes} bytes, {seconds:.1} s, {rate:.0} MB/s", arguments.out.display());
    Ok(())
}

fn recipe(arguments: &Arguments) -> Result<Recipe, String> {
    let (own, named) = Shape::named(&arguments.shape).ok_or_else(|| {
        let names = Shape::NAMES.join(", ");
        format!("--shape `{}` is unknown: there are {names}", arguments.shape)
    })?;
    let architecture = match &arguments.arch {
        None => own,
        Some(name) => Architecture::by_name(name).ok_or_else(|| {
            let names = Architecture::ALL.map(Architecture::name).join(", ");
            format!("--arch `{name}` is unknown: there are {names}")
        })?,
    };
    let shape = Shape {
        layers: arguments.layers.unwrap_or(named.layers),
        width: arguments.width.unwrap_or(named.width),
        heads: arguments.heads.unwrap_or(named.heads),
        kv_heads: arguments.kv_heads.unwrap_or(named.kv_heads),
        ff_width: arguments.ff.unwrap_or(named.ff_width),
        vocab: arguments.vocab.unwrap_or(named.vocab),
        context: arguments.context.unwrap_or(named.context),
    };
    let types: Types = arguments.types.parse().map_err(|fault| format!("--type: {fault}"))?;
    Ok(Recipe { architecture, shape, types, seed: arguments.seed })
}

/// Writes `FILE.part`, then gives it its name. What was begun and not finished is taken away.
fn write(file: &SyntheticFile, path: &Path) -> io::Result<()> {
    let mut part = path.to_owned().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    let mut out = File::create(&part)?;
    let written = file.write(&mut out).and_then(|()| out.flush());
    let renamed = written.and_then(|()| fs::rename(&part, path));
    if renamed.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&part);
    }
    renamed
}
