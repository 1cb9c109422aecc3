//! What is timed: forward passes of an engine, and loops over registers on as many threads.

use dllm_bench::record::Machine;
use dllm_bench::{Error, canvas, engine};
use dllm_cpu::Kernels;
use dllm_cpu::dtype::Dtype;
use dllm_cpu::peak::peak;
use dllm_rt::backend::cpu::threads::cpus;
use dllm_rt::{Engine, Limits, Options};
use serde::Serialize;
use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

/// The type whose arithmetic the register loops do: most weights of a Q4_K_M file.
const DTYPE: Dtype = Dtype::Q4_K;

/// A subcommand that measures a model: its own options beside those that all such have.
macro_rules! model_command {
    ($(#[$about:meta])* pub struct $name:ident { $($own:tt)* }) => {
        #[derive(argh::FromArgs)]
        $(#[$about])*
        pub struct $name {
            /// the model's GGUF file
            #[argh(option)]
            model: std::path::PathBuf,
            /// rows of a canvas (default: 148)
            #[argh(option, default = "148")]
            rows: usize,
            /// worker threads (default: 2)
            #[argh(option, default = "2")]
            threads: usize,
            /// file to write the figures to
            #[argh(option)]
            json: Option<std::path::PathBuf>,
            $($own)*
        }
    };
}
pub(crate) use model_command;

/// What was measured, on what: the beginning of each record.
#[derive(Serialize)]
pub struct Setup {
    model: String,
    machine: Machine,
    pub isa: &'static str,
    rows: usize,
    threads: usize,
}

impl Setup {
    /// With the file at `model`, on this machine. To be called before the thread is pinned: CPUs
    /// are counted that it may use.
    pub fn new(model: &Path, rows: usize, threads: usize) -> Setup {
        let model = model.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Setup { model, machine: Machine::this(), isa: "", rows, threads }
    }
}

/// A canvas of so many rows of a loaded model.
pub struct Passes {
    pub engine: Engine,
    pub kernels: Kernels,
    ids: Vec<u32>,
    output_rows: Vec<u32>,
}

impl Passes {
    /// Loads the file for `threads` workers, the calling thread pinned as one of them.
    pub fn new(
        path: &Path,
        rows: usize,
        output_rows: usize,
        threads: usize,
    ) -> Result<Passes, Error> {
        let limits = Limits { logits: true, ..Limits::new(rows, output_rows, threads) };
        let engine = engine(path, limits, &Options { pin_caller: true, ..Options::default() })?;
        let unknown = || Error::Argument(format!("no kernels are called {}", engine.isa()));
        let kernels = Kernels::by_name(engine.isa()).ok_or_else(unknown)?;
        let ids = canvas(rows, engine.config().vocab as u32, 0);
        Ok(Passes { engine, kernels, ids, output_rows: (0..output_rows as u32).collect() })
    }

    /// Seconds of one forward pass.
    pub fn pass(&mut self) -> Result<f64, Error> {
        let start = Instant::now();
        self.engine.logits(&self.ids, &self.output_rows)?;
        Ok(start.elapsed().as_secs_f64())
    }
}

/// A loop over registers on some threads.
#[derive(Clone, Copy)]
pub struct Loop {
    kernels: Kernels,
    threads: usize,
    /// Super-blocks a thread.
    rounds: usize,
}

impl Loop {
    /// A loop that takes about `seconds`.
    pub fn of_length(kernels: Kernels, threads: usize, seconds: f64) -> Loop {
        let mut found = Loop { kernels, threads, rounds: 1 << 14 };
        // Twice: a first, short one says little.
        for _ in 0..2 {
            let rounds = found.rounds as f64 * seconds / found.seconds();
            found.rounds = (rounds as usize).max(1);
        }
        found
    }

    /// Multiply-adds of all threads.
    pub fn macs(&self) -> f64 {
        (self.threads as u64 * peak(self.kernels, DTYPE, 1).macs * self.rounds as u64) as f64
    }

    /// Seconds from when all threads are ready to when the last has finished.
    pub fn seconds(&self) -> f64 {
        let cpus = cpus::choose(self.threads);
        let barrier = Barrier::new(self.threads);
        let run = |thread: usize| {
            if let Some(cpu) = cpus.get(thread) {
                cpus::pin(*cpu);
            }
            barrier.wait();
            let start = Instant::now();
            std::hint::black_box(peak(self.kernels, DTYPE, self.rounds));
            start.elapsed().as_secs_f64()
        };
        std::thread::scope(|scope| {
            let run = &run;
            let others: Vec<_> =
                (1..self.threads).map(|thread| scope.spawn(move || run(thread))).collect();
            let own = run(0);
            // A loop over registers does not panic.
            others.into_iter().filter_map(|other| other.join().ok()).fold(own, f64::max)
        })
    }
}
