//! How even the times of forward passes are, beside a register loop of the same length.

use crate::figures::percentile;
use crate::machine::{Loop, Passes};
use argh::FromArgs;
use dllm_cpu::Kernels;
use serde::Serialize;
use std::path::PathBuf;

/// Times passes and loops in turn.
#[derive(FromArgs)]
#[argh(subcommand, name = "jitter")]
pub struct Jitter {
    /// the model's GGUF file
    #[argh(option)]
    model: PathBuf,
    /// rows of the canvas (default: 148)
    #[argh(option, default = "148")]
    rows: usize,
    /// rows whose logits are wanted (default: 32)
    #[argh(option, default = "32")]
    wanted: usize,
    /// worker threads (default: 2)
    #[argh(option, default = "2")]
    threads: usize,
    /// passes (default: 200)
    #[argh(option, default = "200")]
    passes: usize,
    /// file to write the figures to
    #[argh(option)]
    json: Option<PathBuf>,
}

#[derive(Serialize)]
struct Spread {
    p50_ms: f64,
    p99_ms: f64,
    p99_over_p50: f64,
}

impl Spread {
    fn new(seconds: &[f64]) -> Spread {
        let [p50, p99] = [0.5, 0.99].map(|part| percentile(seconds, part));
        Spread { p50_ms: p50 * 1e3, p99_ms: p99 * 1e3, p99_over_p50: p99 / p50 }
    }
}

#[derive(Serialize)]
struct Outcome {
    model: String,
    isa: &'static str,
    rows: usize,
    wanted: usize,
    threads: usize,
    count: usize,
    passes: Spread,
    registers: Spread,
    /// The passes' p99 / p50 over the loops'.
    ratio: f64,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be loaded or written, in words.
pub fn run(command: &Jitter) -> Result<(), String> {
    let Jitter { model, rows, wanted, threads, passes, json } = command;
    if *threads == 0 || *passes == 0 {
        return Err("give at least 1 of `--threads` and of `--passes`".into());
    }
    let mut engine = Passes::new(model, *rows, *wanted, *threads)?;
    let kernels =
        Kernels::by_name(engine.isa()).ok_or("the engine's instruction set is unknown")?;
    engine.pass()?;
    let typical = engine.pass()?;
    let registers = Loop::of_length(kernels, *threads, typical);
    let (mut pass_s, mut loop_s) = (vec![], vec![]);
    for _ in 0..*passes {
        pass_s.push(engine.pass()?);
        loop_s.push(registers.seconds());
    }
    let (of_passes, of_loops) = (Spread::new(&pass_s), Spread::new(&loop_s));
    let outcome = Outcome {
        model: model.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        isa: engine.isa(),
        rows: *rows,
        wanted: *wanted,
        threads: *threads,
        count: *passes,
        ratio: of_passes.p99_over_p50 / of_loops.p99_over_p50,
        passes: of_passes,
        registers: of_loops,
    };
    println!(
        "p99 / p50 of {} passes {:.3}, of register loops {:.3}, ratio {:.3}",
        passes, outcome.passes.p99_over_p50, outcome.registers.p99_over_p50, outcome.ratio
    );
    crate::write_json(&outcome, json.as_ref())
}
