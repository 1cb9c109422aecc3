//! Where a forward pass runs: four verbs, the same for every device.
//!
//! [`Backend::load`] plans and loads a model, [`Backend::input`] is written to,
//! [`Backend::forward`] runs a [`Pass`], [`Backend::choices`] and [`Backend::logits`] are read.

pub mod cpu;
mod error;
mod limits;
mod options;
mod pass;

pub use cpu::threads::Counters;
pub use cpu::threads::cpus::physical_count;
pub use dllm_arena::Lock;
pub use dllm_cpu::FloatEnv;
pub use error::Error;
pub use limits::{Limits, LoadReport, ROWS_MAX, SEQUENCES_MAX, THREADS_MAX};
pub use options::{Device, Options, Unavailable};
pub use pass::{Batch, Input, Logits, Pass, SequenceRows, Split};

use crate::gguf::Gguf;
use crate::model::Network;
use crate::sample::Choice;
use cpu::Cpu;
use cpu::load::Threads;
use cpu::threads::cpus::allowed_count;

/// A model on its device. Everything was allocated by [`Backend::load`].
pub enum Backend {
    /// On the CPU.
    Cpu(Cpu),
}

impl Backend {
    /// Plans `model`, whose file `gguf` is, under `limits` and loads it. `progress` is called with
    /// the bytes of memory that are ready so far and their total.
    ///
    /// # Errors
    /// A limit out of range, a weight that cannot be used, memory that does not fit; each by name.
    pub fn load(
        gguf: &Gguf,
        model: &Network,
        limits: Limits,
        options: &Options,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<(Backend, LoadReport), Error> {
        let Device::Cpu = options.device;
        let (cpu, report) = Cpu::load(gguf, model, limits, options, progress)?;
        Ok((Backend::Cpu(cpu), report))
    }

    /// What the next pass reads: as many words as the limits have rows or output rows of all
    /// sequences, of which a pass reads the first.
    pub fn input(&mut self, input: Input) -> &mut [u32] {
        let Backend::Cpu(cpu) = self;
        cpu.input(input)
    }

    /// Runs a pass. `timed` is told of each operator's kind of work and its milliseconds.
    pub fn forward(&mut self, pass: &Pass, timed: impl FnMut(Split, f64)) {
        let Backend::Cpu(cpu) = self;
        cpu.forward(pass, timed);
    }

    /// The choices of the last pass, one an output row that was to become one.
    pub fn choices(&self) -> &[Choice] {
        let Backend::Cpu(cpu) = self;
        cpu.choices()
    }

    /// The first `rows` rows of logits of the last pass, where it stored them.
    pub fn logits(&self, rows: usize) -> Option<Logits<'_>> {
        let Backend::Cpu(cpu) = self;
        cpu.logits(rows)
    }

    /// The name of the instruction set in use.
    pub fn isa(&self) -> &'static str {
        let Backend::Cpu(cpu) = self;
        cpu.isa()
    }

    /// What its threads did since the last reset that a step should not do.
    pub fn counters(&self) -> Counters {
        let Backend::Cpu(cpu) = self;
        cpu.pool.counters()
    }

    /// Starts the counters anew.
    pub fn reset_counters(&mut self) {
        let Backend::Cpu(cpu) = self;
        cpu.pool.reset_counters();
    }

    /// Whether counters count. Off at first: it takes two system calls a worker and pass.
    pub fn set_counting(&mut self, on: bool) {
        let Backend::Cpu(cpu) = self;
        cpu.pool.set_counting(on);
    }

    /// Fills every buffer with `pattern`: what a pass reads it must have written. For tests.
    #[doc(hidden)]
    pub fn poison(&mut self, pattern: u32) {
        let Backend::Cpu(cpu) = self;
        cpu.pool.leader_mut().poison(pattern);
    }
}

/// The hash of a file's content, read by up to `threads` threads.
pub fn hash(gguf: &Gguf, threads: usize) -> String {
    let threads = Threads { count: threads.min(allowed_count()), enter: &|_| () };
    cpu::load::hash(gguf, &threads, &mut |_| ())
}
