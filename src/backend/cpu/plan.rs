//! (Config, Limits) to the list of operators and the named buffers with their offsets: pure.
//!
//! The same list drives the arena (which proves from it that no operator writes what another
//! worker touches), the workers (which run it), and whatever prints a plan.

use super::buffers::{Buffer, Buffers, Slots};
use super::operators;
use super::ops::Op;
use super::turn::{Slot, Stage};
use super::weights::{self, WeightPlan};
use crate::backend::error::Error;
use crate::backend::limits::Limits;
use crate::model::Network;
use dllm_arena::Sealing;
use std::ops::Range;

/// Row counts are planned in multiples of this, so that items and vectors never straddle the end.
const ROW_ALIGN: usize = 32;

/// Everything that has to be known before a byte is loaded.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The limits it was made for, as [`Limits::checked`] gives them.
    pub limits: Limits,
    /// Row capacity of the buffers: for each sequence `limits.rows` rounded up.
    pub row_capacity: usize,
    /// Read-only contents of the arena, in order of offset.
    pub weights: Vec<WeightPlan>,
    /// Bytes of weights and tables, at the start of the arena.
    pub fixed_bytes: usize,
    /// Buffers that operators write, placed after the weights.
    pub buffers: Vec<Buffer>,
    /// Those that a caller fills before a pass and reads after it.
    pub(super) ports: Ports,
    /// The operators of a forward pass with sampling, in order; one phase each.
    pub ops: Vec<Op>,
    /// Bytes of the whole arena.
    pub total_bytes: usize,
}

/// What a caller fills before a pass (the first three) and reads after it, as in [`Slots`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub ids: Slot,
    pub output_rows: Slot,
    pub positions: Slot,
    pub logits: Option<Slot>,
    pub vocab: usize,
    pub choices: Slot,
}

impl Plan {
    /// Plans `model` under `limits`.
    ///
    /// # Errors
    /// [`Error`] when a limit is out of range or sizes overflow.
    pub fn new(model: &Network, limits: Limits) -> Result<Plan, Error> {
        let limits = limits.checked()?;
        let row_capacity = limits.sequences * limits.rows.next_multiple_of(ROW_ALIGN);
        let weights = weights::plan(model, limits.rows).ok_or(Error::TooLarge)?;
        let buffers = Buffers::new(model, limits, row_capacity);
        let ops = operators::list(model, limits, &weights, &buffers);
        let Slots { ids, output_rows, positions, logits, choices, .. } = buffers.slots;
        let vocab = model.config.vocab;
        let ports = Ports { ids, output_rows, positions, logits, vocab, choices };
        let live = |slot, slots: &Slots| live(slot, slots, &ops, limits.kv_cache);
        let placed = buffers.place(weights.bytes, live);
        let (buffers, work_bytes) = placed.ok_or(Error::TooLarge)?;
        let total_bytes = weights.bytes.checked_add(work_bytes).ok_or(Error::TooLarge)?;
        Ok(Plan {
            limits,
            row_capacity,
            fixed_bytes: weights.bytes,
            weights: weights.entries,
            buffers,
            ports,
            ops,
            total_bytes,
        })
    }

    /// What the arena is sealed with.
    pub fn sealing(&self) -> Sealing {
        Sealing {
            fixed_bytes: self.fixed_bytes,
            slots: self.buffers.iter().map(Buffer::span).collect(),
            phases: self.ops.iter().map(|op| op.access.clone()).collect(),
            workers: self.limits.threads,
        }
    }
}

/// The stages in which a buffer's contents matter: from the first to the last that touches it.
/// Every layer has the same stages and nothing but the residual stream passes from one layer to the
/// next.
fn live(slot: Slot, slots: &Slots, ops: &[Op], kv_cache: bool) -> Range<usize> {
    // A caller writes these before a pass, or they live from layer to layer, or, as the guide and
    // the KV cache do, from one pass to the next.
    let always = [slots.ids, slots.output_rows, slots.positions, slots.x];
    let is_cached = kv_cache && slots.is_key_or_value(slot);
    if always.contains(&slot) || slots.guide == Some(slot) || is_cached {
        return 0..Stage::COUNT;
    }
    let touches = |op: &&Op| {
        let access = &op.access;
        access.reads.contains(&slot)
            || access.scratch.contains(&slot)
            || access.writes.iter().any(|(s, _)| *s == slot)
    };
    let stages = ops.iter().filter(touches).map(|op| op.stage);
    let (first, last) = (stages.clone().min(), stages.max());
    first.unwrap_or(0)..last.map_or(0, |last| last + 1)
}
