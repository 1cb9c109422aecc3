//! `scaling`: several threads against one, as a share of how a loop over registers scales.

use crate::passes::{Loop, Passes, Setup, model_command};
use dllm_bench::Error;
use dllm_bench::figures::median;
use dllm_bench::record::write_json;
use serde::Serialize;

/// Seconds of a register loop: as long as the shorter forward passes.
const LOOP_SECONDS: f64 = 0.25;

model_command! {
    /// Compares forward passes on several threads with those on one.
    #[argh(subcommand, name = "scaling")]
    pub struct Scaling {
        /// output rows: those whose logits are computed (default: 32)
        #[argh(option, default = "32")]
        output_rows: usize,
        /// turns (default: 15)
        #[argh(option, default = "15")]
        reps: usize,
    }
}

#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    setup: Setup,
    output_rows: usize,
    one_ms: Vec<f64>,
    many_ms: Vec<f64>,
    /// How much faster many threads are: passes, register loops, and the one as a share of the
    /// other; medians over the turns.
    passes: f64,
    registers: f64,
    share: f64,
}

pub fn run(command: &Scaling) -> Result<(), Error> {
    let Scaling { model, rows, output_rows, threads, reps, json } = command;
    if *threads < 2 || *reps == 0 {
        return Err(Error::Argument("give at least 2 --threads and 1 of --reps".into()));
    }
    let mut setup = Setup::new(model, *rows, *threads);
    let mut one = Passes::new(model, *rows, *output_rows, 1)?;
    let mut many = Passes::new(model, *rows, *output_rows, *threads)?;
    let loops = [1, *threads].map(|n| Loop::of_length(one.kernels, n, LOOP_SECONDS));
    let (mut one_ms, mut many_ms) = (vec![], vec![]);
    let (mut passes, mut registers, mut shares) = (vec![], vec![], vec![]);
    one.pass()?;
    many.pass()?;
    for turn in 1..=*reps {
        let speeds = || loops.map(|l| l.macs() / l.seconds());
        let before = speeds();
        let (first, second) = (one.pass()?, many.pass()?);
        let after = speeds();
        one_ms.push(first * 1e3);
        many_ms.push(second * 1e3);
        let (pass, register) = (first / second, (before[1] + after[1]) / (before[0] + after[0]));
        passes.push(pass);
        registers.push(register);
        shares.push(pass / register);
        eprintln!("{turn}/{reps}: {:.1} and {:.1} ms", first * 1e3, second * 1e3);
    }
    setup.isa = one.engine.isa();
    let outcome = Outcome {
        setup,
        output_rows: *output_rows,
        one_ms,
        many_ms,
        passes: median(&passes),
        registers: median(&registers),
        share: median(&shares),
    };
    println!(
        "{threads} threads against 1, {rows} rows, {}: passes x {:.3}, registers x {:.3}, share \
         {:.3}",
        outcome.setup.isa, outcome.passes, outcome.registers, outcome.share
    );
    json.as_ref().map_or(Ok(()), |path| write_json(path, &outcome))
}
