//! `synth`: writes a GGUF file of random weights: LLaDA-8B's or Dream-7B's sizes, or any others.
//!
//! The file appears whole or not at all: it is written as `FILE.part` and then renamed.

use argh::FromArgs;
use dllm_bench::Error;
use dllm_rt::model::Architecture;
use dllm_rt::synth::{Recipe, Shape, SyntheticFile, Types};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Writes a GGUF file of random weights that dllm-rt, llama.cpp and its relatives load.
#[derive(FromArgs)]
#[argh(subcommand, name = "synth")]
pub struct Synth {
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

pub fn run(command: &Synth) -> Result<(), Error> {
    let file = SyntheticFile::new(recipe(command)?).map_err(dllm_rt::Error::from)?;
    let start = Instant::now();
    write(&file, &command.out).map_err(Error::io(&command.out))?;
    let (bytes, seconds) = (file.bytes(), start.elapsed().as_secs_f64());
    let rate = bytes as f64 / seconds / 1e6;
    eprintln!("{}: {bytes} bytes, {seconds:.1} s, {rate:.0} MB/s", command.out.display());
    Ok(())
}

fn recipe(command: &Synth) -> Result<Recipe, Error> {
    let (own, named) = Shape::named(&command.shape)
        .ok_or_else(|| unknown("shape", &command.shape, &Shape::NAMES.join(", ")))?;
    let architecture = match &command.arch {
        None => own,
        Some(name) => Architecture::by_name(name).ok_or_else(|| {
            unknown("arch", name, &Architecture::ALL.map(Architecture::name).join(", "))
        })?,
    };
    let shape = Shape {
        layers: command.layers.unwrap_or(named.layers),
        width: command.width.unwrap_or(named.width),
        heads: command.heads.unwrap_or(named.heads),
        kv_heads: command.kv_heads.unwrap_or(named.kv_heads),
        ff_width: command.ff.unwrap_or(named.ff_width),
        vocab: command.vocab.unwrap_or(named.vocab),
        context: command.context.unwrap_or(named.context),
    };
    let wrong = |error| Error::Argument(format!("--type: {error}"));
    let types: Types = command.types.parse().map_err(wrong)?;
    Ok(Recipe { architecture, shape, types, seed: command.seed })
}

fn unknown(flag: &str, name: &str, names: &str) -> Error {
    Error::Argument(format!("--{flag} `{name}` is unknown: there are {names}"))
}

/// Writes `FILE.part`, then gives it its name. What was begun and not finished is taken away.
fn write(file: &SyntheticFile, path: &Path) -> io::Result<()> {
    let part = PathBuf::from(format!("{}.part", path.display()));
    let mut out = File::create(&part)?;
    let written = file.write(&mut out).and_then(|()| out.flush());
    let renamed = written.and_then(|()| fs::rename(&part, path));
    if renamed.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&part);
    }
    renamed
}
