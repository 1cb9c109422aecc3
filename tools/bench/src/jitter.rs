//! `jitter`: how even the times of forward passes are, beside a register loop of the same length.

use crate::passes::{Loop, Passes, Setup, model_command};
use dllm_bench::Error;
use dllm_bench::figures::percentile;
use dllm_bench::record::write_json;
use serde::Serialize;

model_command! {
    /// Times forward passes and loops over registers in turn, and compares how even they are.
    #[argh(subcommand, name = "jitter")]
    pub struct Jitter {
        /// output rows: those whose logits are computed (default: 32)
        #[argh(option, default = "32")]
        output_rows: usize,
        /// passes (default: 200)
        #[argh(option, default = "200")]
        passes: usize,
    }
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
    #[serde(flatten)]
    setup: Setup,
    output_rows: usize,
    count: usize,
    passes: Spread,
    registers: Spread,
    /// The passes' p99 / p50 over the loops'.
    ratio: f64,
}

pub fn run(command: &Jitter) -> Result<(), Error> {
    let Jitter { model, rows, output_rows, threads, passes: count, json } = command;
    if *threads == 0 || *count == 0 {
        return Err(Error::Argument("give at least 1 of --threads and of --passes".into()));
    }
    let mut setup = Setup::new(model, *rows, *threads);
    let mut one = Passes::new(model, *rows, *output_rows, *threads)?;
    one.pass()?;
    let typical = one.pass()?;
    let registers = Loop::of_length(one.kernels, *threads, typical);
    let (mut pass_s, mut loop_s) = (vec![], vec![]);
    for _ in 0..*count {
        pass_s.push(one.pass()?);
        loop_s.push(registers.seconds());
    }
    let [passes, registers] = [&pass_s, &loop_s].map(|seconds| Spread::new(seconds));
    let ratio = passes.p99_over_p50 / registers.p99_over_p50;
    println!(
        "p99 / p50 of {count} passes {:.3}, of register loops {:.3}, ratio {ratio:.3}",
        passes.p99_over_p50, registers.p99_over_p50
    );
    setup.isa = one.engine.isa();
    let outcome =
        Outcome { setup, output_rows: *output_rows, count: *count, passes, registers, ratio };
    json.as_ref().map_or(Ok(()), |path| write_json(path, &outcome))
}
