//! Forward passes on the CPU: the plan, the arena, the thread pool.
//!
//! | file | what it holds |
//! |---|---|
//! | `plan` | operators and buffers with their offsets, from model and limits |
//! | `operators` | the list of operators |
//! | `ops/` | one operator a file |
//! | `turn` | what operators stand on: slots, stages, a worker's turn |
//! | `activations`, `keys` | what several operators share |
//! | `buffers`, `weights` | what operators write and read |
//! | `threads/` | the thread pool and its CPUs |
//! | `load/` | GGUF rows to packed panels |

mod activations;
mod buffers;
mod keys;
pub mod load;
mod operators;
mod ops;
mod plan;
pub mod threads;
mod turn;
mod weights;

pub use buffers::Buffer;
pub use ops::{Count, Op};
pub use plan::Plan;
pub use weights::{WeightKind, WeightPlan};

use crate::backend::error::Error;
use crate::backend::limits::{Limits, LoadReport};
use crate::backend::options::Options;
use crate::backend::pass::{Input, Logits, Pass, Split};
use crate::gguf::Gguf;
use crate::model::Network;
use crate::sample::Choice;
use dllm_arena::{Bytes, Phase, Region};
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::{FloatEnv, Kernels};
use plan::Ports;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use threads::{ThreadPool, cpus};

/// A model in its arena, with its threads.
pub struct Cpu {
    pub(super) pool: ThreadPool<Pass>,
    program: Arc<Program>,
    ports: Ports,
}

/// The operators, and the instruction set that they use.
#[derive(Debug)]
struct Program {
    ops: Vec<Op>,
    kernels: Kernels,
}

impl Program {
    /// A worker's part of the operator that a phase is.
    fn run(&self, phase: &Phase<'_>, pass: &Pass) {
        self.ops[phase.index()].run(phase, self.kernels, pass);
    }
}

impl Cpu {
    /// Plans, maps the arena, fills it and starts the thread pool over it. `progress` is called
    /// with the bytes dealt with and their total.
    ///
    /// # Errors
    /// Whatever is wrong with limits, weights, memory or threads.
    pub fn load(
        gguf: &Gguf,
        model: &Network,
        limits: Limits,
        options: &Options,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<(Cpu, LoadReport), Error> {
        // Tables and scales are computed here, and threads inherit it.
        let _env = FloatEnv::enter();
        let kernels = options.kernels()?;
        let plan = Plan::new(model, limits)?;
        let start = Instant::now();
        let memory = dllm_arena::Options { huge_pages: options.huge_pages, lock: options.lock };
        let mut region = Region::map(plan.total_bytes, &memory)?;
        // Where the workers will be: a caller that is pinned already would keep them all on its
        // CPU.
        let cpus = options.cpus(plan.limits.threads);
        let enter = |number: usize| {
            // Refusals are told when the workers are pinned to the same CPUs.
            let _ = cpus.get(number).map(|cpu| cpus::pin(*cpu));
        };
        let count = plan.limits.threads.min(cpus::allowed_count());
        let threads = load::Threads { count, enter: &enter };
        let total_bytes = region.bytes();
        let progress = &mut |done| progress(done, total_bytes);
        load::fill(gguf, model, &plan, &mut region, &threads, progress)?;
        let huge_bytes = if options.huge_pages { region.huge_bytes() } else { None };
        let mut report = LoadReport {
            limits: plan.limits,
            kv_rows: plan.row_capacity,
            arena_bytes: plan.total_bytes,
            weight_bytes: plan.fixed_bytes,
            fill_s: start.elapsed().as_secs_f64(),
            is_locked: region.locked(),
            huge_bytes,
            warnings: region.warnings().to_vec(),
        };
        report.warnings.extend(huge_bytes.and_then(|huge| few_huge_pages(&region, huge)));
        let cpu = Cpu::start(region, plan, kernels, &cpus, options.pin_caller, &mut report);
        Ok((cpu.map_err(Error::Threads)?, report))
    }

    /// Seals a full arena and starts the thread pool over it.
    fn start(
        region: Region,
        plan: Plan,
        kernels: Kernels,
        cpus: &[usize],
        pin_caller: bool,
        report: &mut LoadReport,
    ) -> io::Result<Cpu> {
        let (leader, workers) = match region.seal(plan.sealing()) {
            Ok(sealed) => sealed,
            // The table follows from the plan alone, and tests seal plans of every shape.
            Err(error) => unreachable!("the plan contradicts itself: {error}"),
        };
        let program = Arc::new(Program { ops: plan.ops, kernels });
        let shared = Arc::clone(&program);
        let work = move |phase: &Phase<'_>, pass: &Pass| shared.run(phase, pass);
        if pin_caller && cpus.first().is_some_and(|cpu| !cpus::pin(*cpu)) {
            report.warnings.push(format!("cannot pin the calling thread to CPU {}", cpus[0]));
        }
        let pool = ThreadPool::start(leader, workers, cpus, work)?;
        report.warnings.extend_from_slice(pool.warnings());
        Ok(Cpu { pool, program, ports: plan.ports })
    }

    /// See [`Backend::input`](super::Backend::input).
    pub fn input(&mut self, input: Input) -> &mut [u32] {
        let slot = match input {
            Input::Ids => self.ports.ids,
            Input::OutputRows => self.ports.output_rows,
            Input::Positions => self.ports.positions,
        };
        self.pool.leader_mut().slot_mut(slot)
    }

    /// See [`Backend::forward`](super::Backend::forward).
    pub fn forward(&mut self, pass: &Pass, mut timed: impl FnMut(Split, f64)) {
        let (program, ops) = (&*self.program, &self.program.ops);
        // Choosing tokens is the last operator.
        let count = if pass.chosen > 0 { ops.len() } else { ops.len() - 1 };
        let mut before = Instant::now();
        let work = |phase: &Phase<'_>, pass: &Pass| program.run(phase, pass);
        self.pool.run(*pass, count, work, |op| {
            let now = Instant::now();
            timed(ops[op].split, now.duration_since(before).as_secs_f64() * 1e3);
            before = now;
        });
    }

    /// See [`Backend::choices`](super::Backend::choices).
    pub fn choices(&self) -> &[Choice] {
        self.pool.leader().slot(self.ports.choices)
    }

    /// See [`Backend::logits`](super::Backend::logits).
    pub fn logits(&self, rows: usize) -> Option<Logits<'_>> {
        let vocab = self.ports.vocab;
        let stride = vocab.next_multiple_of(PANEL_ROWS);
        let values: &[f32] = self.pool.leader().slot(self.ports.logits?);
        Some(Logits { values: &values[..rows * stride], vocab, stride })
    }

    /// The name of the instruction set in use.
    pub fn isa(&self) -> &'static str {
        self.program.kernels.name()
    }
}

/// What to say where huge pages were to be had for a small part only: the rest of memory is in
/// pieces.
fn few_huge_pages(region: &Region, huge_bytes: usize) -> Option<String> {
    /// A region that is not a few huge pages long has few, whatever the memory is like.
    const BYTES_MIN: usize = 64 << 20;
    let (bytes, is_told) = (region.bytes(), !region.warnings().is_empty());
    if is_told || bytes < BYTES_MIN || huge_bytes >= bytes / 10 * 9 {
        return None;
    }
    let [huge, all] = [huge_bytes, bytes].map(Bytes);
    Some(format!("only {huge} of the arena's {all} are in huge pages: memory is fragmented"))
}
