//! Runs the operator list for one forward pass, on every worker at once.
//!
//! Each worker walks the same list. An operator is a phase of the arena: a worker claims items
//! until none is left and meets the others at the barrier. Nothing here allocates or blocks
//! otherwise, and nothing can fail.

mod attention;
mod choose;
mod project;
mod rows;
mod segments;

pub use segments::{Segment, Segments};

use crate::model::Config;
use crate::plan::{Count, Op, OpKind, Plan, WeightKind};
use crate::team::Report;
use dllm_arena::count::{thread_counts, thread_usage};
use dllm_arena::{Phase, Span, Step};
use dllm_cpu::{FloatEnv, Kernels};

/// What a pass is told, the same for all workers.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The rows that are computed, by canvas.
    pub segments: Segments,
    /// The first of the wanted rows that become choices.
    pub chosen: usize,
    /// Whether this pass makes the logits without the prompt, for guidance.
    pub guide: bool,
    /// Whether whole rows of logits are stored, instead of statistics for rules that are greedy.
    pub logits: bool,
    /// Whether to count what workers do that they should not; it costs two system calls a worker.
    pub count: bool,
    /// Index of the last operator of the pass.
    pub last_op: usize,
    /// Whether to allocate once on every worker: the proof that the counters see them.
    pub canary: bool,
}

/// The operator list with all that its operators need beside the arena.
#[derive(Debug)]
pub struct Program {
    ops: Vec<Op>,
    config: Config,
    kernels: Kernels,
    row_capacity: usize,
    rope_cos: Span,
    rope_sin: Span,
}

impl Program {
    /// The program of a plan; `None` if the plan has no rotary tables, which no plan lacks.
    pub fn new(plan: &Plan, config: &Config, kernels: Kernels) -> Option<Program> {
        let table = |kind| plan.weights.iter().find(|w| w.kind == kind).map(|w| w.span);
        Some(Program {
            ops: plan.ops.clone(),
            config: config.clone(),
            kernels,
            row_capacity: plan.row_capacity,
            rope_cos: table(WeightKind::RopeCos)?,
            rope_sin: table(WeightKind::RopeSin)?,
        })
    }

    /// The instruction set in use.
    pub fn kernels(&self) -> Kernels {
        self.kernels
    }

    /// The operators.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Does this worker's share of the operator that `phase` stands for.
    pub fn run(&self, phase: &Phase<'_>, job: &Job) {
        let op = &self.ops[phase.index()];
        let segments = &job.segments;
        let rows = match op.count {
            Count::Canvas => segments.rows(),
            Count::Wanted => segments.wanted(),
        };
        match &op.kind {
            OpKind::Embed { span, matrix, ids, x } => {
                rows::embed(self, phase, rows, (*span, *matrix), (*ids, *x));
            }
            OpKind::Norm { weight, from, to } => {
                rows::norm(self, phase, rows, *weight, *from, to);
            }
            OpKind::Quantize { from, stride, to } => {
                rows::quantize(self, phase, rows, (*from, *stride), to);
            }
            OpKind::Gather { from, wanted, to } => {
                rows::gather(self, phase, rows, *from, *wanted, *to);
            }
            OpKind::Project { x, parts, add } => {
                project::project(self, phase, (segments, rows), x, parts, *add);
            }
            OpKind::GateUp { x, gate, up, out } => {
                project::gate_up(self, phase, rows, x, (gate, up), *out);
            }
            OpKind::LmHead { x, matrix, records, logits, guide } => {
                let rows_out = if job.guide { guide } else { logits }.filter(|_| job.logits);
                match rows_out {
                    Some(out) => project::lm_head(self, phase, rows, x, matrix, out),
                    None => project::lm_head_records(self, phase, segments, x, matrix, *records),
                }
            }
            OpKind::RopeKeys { k, rows: key_rows } => {
                attention::rope_keys(self, phase, segments, *k, *key_rows);
            }
            OpKind::Attend { q, k, v, rows: key_rows, blocks, out, wanted } => {
                let inputs = attention::Inputs {
                    q: phase.read(*q),
                    k: phase.read(*k),
                    v: phase.read(*v),
                    key_rows: *key_rows,
                    segments,
                    wanted: wanted.map(|slot| phase.read(slot)),
                };
                attention::attend(self, phase, rows, &inputs, *blocks, *out);
            }
            OpKind::Choose { records, logits, guide, choices, positions } => {
                let positions: &[u32] = phase.read(*positions);
                let chooser = choose::Chooser {
                    program: self,
                    phase,
                    segments,
                    positions,
                    count: job.chosen,
                    choices: *choices,
                };
                match logits.filter(|_| job.logits) {
                    Some(logits) => chooser.scan_logits(logits, *guide),
                    None => chooser.fold_records(*records),
                }
            }
        }
    }

    /// This worker's part of the operator's one scratch buffer.
    fn scratch<'p, T: bytemuck::Pod>(&self, phase: &'p Phase<'_>) -> &'p mut [T] {
        phase.scratch(self.ops[phase.index()].access.scratch[0])
    }
}

/// Runs one worker's part of a pass; `after(operator, program)` is called when all workers have
/// finished an operator.
pub fn run(
    mut step: Step<'_, Job>,
    program: &Program,
    report: &Report,
    mut after: impl FnMut(usize, &Program),
) {
    let _env = FloatEnv::enter();
    let job = step.job();
    let before = job.count.then(|| (thread_counts(), thread_usage()));
    if job.canary {
        std::hint::black_box(Box::new(step.worker()));
    }
    while let Some(phase) = step.next_phase() {
        let index = phase.index();
        program.run(&phase, &job);
        if let Some((counts, usage)) = before
            && index == job.last_op
        {
            // Before the barrier, so that whoever passes it reads this pass's counts.
            report.add(thread_counts().since(&counts), thread_usage().since(&usage));
        }
        drop(phase);
        after(index, program);
    }
}
