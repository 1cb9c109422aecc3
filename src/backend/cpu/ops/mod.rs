//! The operators of a forward pass: what each has, reads and writes, and a worker's part of it.
//!
//! Each worker walks the same list. An operator is a phase of the arena: a worker claims items
//! until none is left and meets the others at the barrier. Nothing here allocates or blocks
//! otherwise, and nothing can fail.

mod attention;
mod choose;
mod embed;
mod gate_up;
mod gather;
mod lm_head;
mod norm;
mod project;
mod quantize;
mod rope_keys;

pub use attention::Attend;
pub use choose::Choose;
pub use embed::Embed;
pub use gate_up::GateUp;
pub use gather::Gather;
pub use lm_head::LmHead;
pub use norm::Norm;
pub use project::{Part, Project};
pub use quantize::Quantize;
pub use rope_keys::RopeKeys;

use super::turn::{Turn, row_items};
use crate::backend::pass::{Pass, Split};
use dllm_arena::{Phase, PhaseAccess};
use dllm_cpu::Kernels;
use serde::Serialize;

/// How many rows an operator has in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Count {
    /// All that the pass computes.
    All,
    /// Those whose logits are computed.
    Output,
}

/// One operator: one phase of the arena.
#[derive(Clone, Debug, Serialize)]
pub struct Op {
    /// As plans spell it.
    pub name: &'static str,
    /// The layer, for those in one.
    pub layer: Option<usize>,
    /// Its place in a layer, of which buffers' lives are ranges.
    pub stage: usize,
    /// Where its time is counted.
    pub split: Split,
    /// How many rows it has.
    pub count: Count,
    /// These in a pass of as many sequences, as long, and with as many output rows as planned.
    pub rows: usize,
    /// The work items that workers claim then; of the LM head where its logits are stored, if they
    /// are planned.
    pub items: usize,
    /// What it touches.
    #[serde(skip)]
    pub access: PhaseAccess,
    #[serde(skip)]
    pub(super) kind: OpKind,
}

/// What an operator does.
#[derive(Clone, Debug)]
pub enum OpKind {
    Embed(Embed),
    Norm(Norm),
    Quantize(Quantize),
    Project(Project),
    RopeKeys(RopeKeys),
    Attend(Attend),
    Gather(Gather),
    GateUp(GateUp),
    LmHead(LmHead),
    Choose(Choose),
}

impl OpKind {
    /// What it touches, where buffers have room for `rows` rows of its [`Count`].
    pub(super) fn access(&self, rows: usize) -> PhaseAccess {
        match self {
            OpKind::Embed(op) => op.access(rows),
            OpKind::Norm(op) => op.access(),
            OpKind::Quantize(op) => op.access(),
            OpKind::Project(op) => op.access(rows),
            OpKind::RopeKeys(op) => op.access(),
            OpKind::Attend(op) => op.access(),
            OpKind::Gather(op) => op.access(rows),
            OpKind::GateUp(op) => op.access(),
            OpKind::LmHead(op) => op.access(rows),
            OpKind::Choose(op) => op.access(rows),
        }
    }

    /// The work items of a pass over `rows` rows.
    pub(super) fn items(&self, rows: usize) -> usize {
        match self {
            OpKind::Embed(_) | OpKind::Norm(_) | OpKind::Quantize(_) | OpKind::Gather(_) => {
                row_items(rows)
            }
            OpKind::Project(op) => op.items(),
            OpKind::RopeKeys(op) => op.items(),
            OpKind::Attend(op) => op.items(),
            OpKind::GateUp(op) => op.items(),
            OpKind::LmHead(op) => op.items(op.logits.is_some()),
            OpKind::Choose(_) => rows,
        }
    }
}

impl Op {
    /// Does this worker's share.
    pub(super) fn run(&self, phase: &Phase<'_>, kernels: Kernels, pass: &Pass) {
        let rows = match self.count {
            Count::All => pass.batch.rows(),
            Count::Output => pass.batch.outputs(),
        };
        let turn = &Turn { phase, kernels, pass, rows };
        match &self.kind {
            OpKind::Embed(op) => op.run(turn),
            OpKind::Norm(op) => op.run(turn),
            OpKind::Quantize(op) => op.run(turn),
            OpKind::Project(op) => op.run(turn),
            OpKind::RopeKeys(op) => op.run(turn),
            OpKind::Attend(op) => op.run(turn),
            OpKind::Gather(op) => op.run(turn),
            OpKind::GateUp(op) => op.run(turn),
            OpKind::LmHead(op) => op.run(turn),
            OpKind::Choose(op) => op.run(turn),
        }
    }
}
