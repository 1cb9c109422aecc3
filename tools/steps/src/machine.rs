//! What is timed: forward passes of an engine, and loops over registers on as many threads.

use dllm_cpu::Kernels;
use dllm_cpu::dtype::Dtype;
use dllm_cpu::peak::peak;
use dllm_rt::team::cpus;
use dllm_rt::{Engine, Limits, Options, gguf};
use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

/// The type whose arithmetic the register loops do: most weights of a Q4_K_M file.
const DTYPE: Dtype = Dtype::Q4_K;

/// A loaded model with a canvas of so many rows.
pub struct Passes {
    engine: Engine,
    ids: Vec<u32>,
    wanted: Vec<u32>,
}

impl Passes {
    /// Loads the file for `threads` workers, the calling thread pinned as one of them.
    ///
    /// # Errors
    /// A file that cannot be loaded, in words.
    pub fn new(path: &Path, rows: usize, wanted: usize, threads: usize) -> Result<Passes, String> {
        let file = gguf::open(path).map_err(|cause| cause.to_string())?;
        let limits = Limits { logits: true, ..Limits::new(rows, wanted, threads) };
        let options = Options { pin_caller: true, ..Options::default() };
        let engine = Engine::load(&file, limits, &options, &mut |_, _| ());
        let engine = engine.map_err(|cause| cause.to_string())?;
        let vocab = engine.config().vocab as u32;
        let ids = (0..rows as u32).map(|i| i.wrapping_mul(2_654_435_761) % vocab).collect();
        Ok(Passes { engine, ids, wanted: (0..wanted as u32).collect() })
    }

    /// The instruction set in use.
    pub fn isa(&self) -> &'static str {
        self.engine.isa()
    }

    /// Seconds of one forward pass.
    ///
    /// # Errors
    /// None but those of rows that do not fit, which [`Passes::new`] has seen to.
    pub fn pass(&mut self) -> Result<f64, String> {
        let start = Instant::now();
        self.engine.logits(&self.ids, &self.wanted).map_err(|cause| cause.to_string())?;
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
