//! A request on an engine: its canvas, and what the engine knows of it.

use super::kv_cache::Age;
use crate::denoise::Canvas;
use std::ops::Range;
use std::sync::Arc;

/// A request that [`Engine::sequence`](super::Engine::sequence) has laid out. It may be stepped by
/// that engine alone.
#[derive(Debug)]
pub struct Sequence {
    pub(super) canvas: Canvas,
    /// The engine's identity: the same allocation.
    pub(super) engine: Arc<()>,
    /// No other sequence of the engine has it.
    pub(super) number: u64,
    pub(super) age: Age,
    /// Whether each step computes the logits of every position.
    pub(super) full_logits: bool,
}

impl Sequence {
    /// The tokens so far, and how the run goes.
    pub fn canvas(&self) -> &Canvas {
        &self.canvas
    }

    /// Whether both are of one engine.
    pub fn shares_engine(&self, other: &Sequence) -> bool {
        Arc::ptr_eq(&self.engine, &other.engine)
    }

    /// The rows that the next pass computes: all of them, or with a KV cache those that may differ
    /// from what is in it. Plans the step.
    pub fn rows(&mut self) -> Range<usize> {
        self.age.rows(&mut self.canvas)
    }

    /// Whether it is computed by itself: guidance makes two passes, and all logits are compared
    /// with those of runtimes that know no batches.
    pub(super) fn is_single(&self) -> bool {
        self.canvas.rule().cfg_scale > 0.0 || self.full_logits
    }
}
