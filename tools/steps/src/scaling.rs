//! Two threads against one, as a share of how a loop over registers scales.

use crate::figures::median;
use crate::machine::{Loop, Passes};
use argh::FromArgs;
use dllm_cpu::Kernels;
use serde::Serialize;
use std::path::PathBuf;

/// Seconds of a register loop: as long as the shorter forward passes.
const LOOP_SECONDS: f64 = 0.25;

/// Compares several threads with one.
#[derive(FromArgs)]
#[argh(subcommand, name = "scaling")]
pub struct Scaling {
    /// the model's GGUF file
    #[argh(option)]
    model: PathBuf,
    /// rows of the canvas (default: 148)
    #[argh(option, default = "148")]
    rows: usize,
    /// rows whose logits are wanted (default: 32)
    #[argh(option, default = "32")]
    wanted: usize,
    /// threads to compare with one (default: 2)
    #[argh(option, default = "2")]
    threads: usize,
    /// turns (default: 15)
    #[argh(option, default = "15")]
    reps: usize,
    /// file to write the figures to
    #[argh(option)]
    json: Option<PathBuf>,
}

#[derive(Serialize)]
struct Outcome {
    model: String,
    isa: &'static str,
    rows: usize,
    wanted: usize,
    threads: usize,
    one_ms: Vec<f64>,
    many_ms: Vec<f64>,
    /// How much faster many threads are: passes, register loops, and the one as a share of the
    /// other; medians over the turns.
    passes: f64,
    registers: f64,
    share: f64,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be loaded or written, in words.
pub fn run(command: &Scaling) -> Result<(), String> {
    let Scaling { model, rows, wanted, threads, reps, json } = command;
    if *threads < 2 || *reps == 0 {
        return Err("give at least 2 `--threads` and 1 of `--reps`".into());
    }
    let mut one = Passes::new(model, *rows, *wanted, 1)?;
    let mut many = Passes::new(model, *rows, *wanted, *threads)?;
    let kernels = Kernels::by_name(one.isa()).ok_or("the engine's instruction set is unknown")?;
    let loop_one = Loop::of_length(kernels, 1, LOOP_SECONDS);
    let loop_many = Loop::of_length(kernels, *threads, LOOP_SECONDS);
    let (mut one_s, mut many_s) = (vec![], vec![]);
    let (mut passes, mut registers, mut shares) = (vec![], vec![], vec![]);
    one.pass()?;
    many.pass()?;
    for turn in 1..=*reps {
        let loops = [loop_one, loop_many].map(|l| l.macs() / l.seconds());
        let (first, second) = (one.pass()?, many.pass()?);
        let again = [loop_one, loop_many].map(|l| l.macs() / l.seconds());
        one_s.push(first);
        many_s.push(second);
        passes.push(first / second);
        registers.push((loops[1] + again[1]) / (loops[0] + again[0]));
        shares.push(passes[turn - 1] / registers[turn - 1]);
        eprintln!("{turn}/{reps}: {:.1} and {:.1} ms", first * 1e3, second * 1e3);
    }
    let outcome = Outcome {
        model: model.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        isa: one.isa(),
        rows: *rows,
        wanted: *wanted,
        threads: *threads,
        one_ms: one_s.iter().map(|s| s * 1e3).collect(),
        many_ms: many_s.iter().map(|s| s * 1e3).collect(),
        passes: median(&passes),
        registers: median(&registers),
        share: median(&shares),
    };
    println!(
        "{} threads against 1, {} rows, {}: passes x {:.3}, registers x {:.3}, share {:.3}",
        threads, rows, outcome.isa, outcome.passes, outcome.registers, outcome.share
    );
    crate::write_json(&outcome, json.as_ref())
}
