//! Whole forward passes of an engine, as a step runs them but for the choice of tokens.

use super::report::{Forward, median};
use super::subject::macs;
use crate::cli::failure::Failure;
use dllm_arena::available_bytes;
use dllm_rt::backend::cpu::Plan;
use dllm_rt::gguf::Gguf;
use dllm_rt::model::Network;
use dllm_rt::{Engine, Limits, Options};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope};
use std::time::Instant;

/// What passes are to be run.
#[derive(Clone, Debug)]
pub struct Passes {
    pub rows: Vec<usize>,
    /// Rows of logits at most; all of them where it is `None`.
    pub output_rows: Option<usize>,
    pub threads: Vec<usize>,
    pub reps: usize,
    pub options: Options,
}

/// Measures the passes of a model. `done` is called after each pass, `warn` with what the system
/// refused.
pub fn measure(
    gguf: &Gguf,
    label: &str,
    passes: &Passes,
    warn: &mut dyn FnMut(&str),
    done: &mut dyn FnMut(),
) -> Result<Vec<Forward>, Failure> {
    let model = Network::from_gguf(gguf)?;
    let mut forward = Vec::new();
    for threads in groups(&model, passes)? {
        let times = measure_group(gguf, passes, threads, warn, done)?;
        for (at, &threads) in threads.iter().enumerate() {
            for (tokens, ms) in passes.rows.iter().zip(&times[at]) {
                let (tokens, output_rows, ms) =
                    (*tokens, passes.output_rows_of(*tokens), median(ms));
                let macs_per_s = macs(&model, tokens, output_rows) / (ms / 1e3);
                let r#type = label.to_owned();
                forward.push(Forward { r#type, tokens, threads, output_rows, ms, macs_per_s });
            }
        }
    }
    Ok(forward)
}

impl Passes {
    fn output_rows_of(&self, tokens: usize) -> usize {
        self.output_rows.unwrap_or(tokens).min(tokens)
    }

    fn limits(&self, threads: usize) -> Limits {
        let rows = self.rows.iter().copied().max().unwrap_or(1);
        Limits { logits: true, ..Limits::new(rows, self.output_rows_of(rows), threads) }
    }
}

/// Thread counts to measure in turn: all together, where as many engines fit into memory.
fn groups<'p>(model: &Network, passes: &'p Passes) -> Result<Vec<&'p [usize]>, Failure> {
    let mut total = 0usize;
    for &threads in &passes.threads {
        total = total.saturating_add(Plan::new(model, passes.limits(threads))?.total_bytes);
    }
    let together = available_bytes().is_none_or(|available| total <= available);
    Ok(passes.threads.chunks(if together { passes.threads.len() } else { 1 }).collect())
}

/// Milliseconds of every repetition, by thread count and canvas.
fn measure_group(
    gguf: &Gguf,
    passes: &Passes,
    threads: &[usize],
    warn: &mut dyn FnMut(&str),
    done: &mut dyn FnMut(),
) -> Result<Vec<Vec<Vec<f64>>>, Failure> {
    let mut times = vec![vec![Vec::new(); passes.rows.len()]; threads.len()];
    std::thread::scope(|scope| {
        let mut runners = Vec::new();
        for &threads in threads {
            runners.push(Runner::start(scope, gguf, passes, threads, warn)?);
        }
        // The first round warms up.
        for rep in 0..=passes.reps {
            for (runner, times) in runners.iter().zip(&mut times) {
                for (&tokens, times) in passes.rows.iter().zip(times) {
                    let ms = runner.pass(tokens)?;
                    if rep > 0 {
                        times.push(ms);
                    }
                    done();
                }
            }
        }
        Ok(times)
    })
}

/// A thread with an engine. It alone is pinned, with the engine's own: the threads of another
/// engine, started by a pinned thread, would share its CPU.
struct Runner {
    ask: Sender<usize>,
    answers: Receiver<Result<f64, Failure>>,
}

impl Runner {
    fn start<'s, 'e: 's>(
        scope: &'s Scope<'s, 'e>,
        gguf: &'e Gguf,
        passes: &'e Passes,
        threads: usize,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Runner, Failure> {
        let (ask, asked) = channel();
        let (answer, answers) = channel();
        let (ready, loaded) = channel();
        let body = move || {
            let limits = passes.limits(threads);
            match Engine::load(gguf, limits, &passes.options, &mut |_, _| ()) {
                Err(error) => drop(ready.send(Err(error.into()))),
                Ok(engine) => {
                    // Whoever asked is still there, or nothing will be asked.
                    let _ = ready.send(Ok(engine.warnings().to_vec()));
                    serve(engine, passes, &asked, &answer);
                }
            }
        };
        let name = format!("dllm-bench-{threads}");
        Builder::new()
            .name(name)
            .spawn_scoped(scope, body)
            .map_err(dllm_rt::backend::Error::Threads)?;
        let warnings = loaded.recv().unwrap_or_else(|_| Err(gone()))?;
        warnings.iter().for_each(|warning| warn(warning));
        Ok(Runner { ask, answers })
    }

    /// Milliseconds of a pass over `tokens` rows.
    fn pass(&self, tokens: usize) -> Result<f64, Failure> {
        self.ask.send(tokens).map_err(|_| gone())?;
        self.answers.recv().unwrap_or_else(|_| Err(gone()))
    }
}

/// Runs passes until nobody asks any more.
fn serve(
    mut engine: Engine,
    passes: &Passes,
    asked: &Receiver<usize>,
    answer: &Sender<Result<f64, Failure>>,
) {
    let vocab = engine.config().vocab as u32;
    let rows = engine.limits().rows as u32;
    let ids: Vec<u32> = (0..rows).map(|at| at.wrapping_mul(7919) % vocab).collect();
    let all: Vec<u32> = (0..rows).collect();
    for tokens in asked {
        // The last rows: a prompt comes before what is to be filled.
        let output_rows = &all[tokens - passes.output_rows_of(tokens)..tokens];
        let start = Instant::now();
        let result = engine.logits(&ids[..tokens], output_rows).map(|_| ());
        let ms = start.elapsed().as_secs_f64() * 1e3;
        if answer.send(result.map(|()| ms).map_err(Failure::from)).is_err() {
            return;
        }
    }
}

fn gone() -> Failure {
    let cause = std::io::Error::other("its thread ended");
    Failure::File { doing: "run a pass".into(), cause }
}
