//! (Config, Limits) to the list of operators and the named buffers with their offsets: pure.
//!
//! The same list drives the arena (which proves from it that no operator writes what another
//! worker touches), the workers (which run it), and `dllm-rt plan` (which prints it).

mod buffers;
mod heads;
mod items;
mod operators;
mod partitions;
mod weights;

pub use buffers::{Act, Buffer, CHOICE_BYTES, Ports, Quantized, RECORD_BYTES, Slot};
pub use heads::{KEY_ITEM, KeyRows};
pub use operators::{Count, GROUP_PANELS, Op, OpKind, Part, Split, stage};
pub use weights::{MatrixPlan, WeightKind, WeightPlan};

use crate::model::Model;

/// Rows of a work item of the row-wise operators (norms, quantization): enough for a call to be
/// cheap, few enough for short canvases to spread over threads.
pub const ROW_ITEM: usize = 4;
/// Row counts are planned in multiples of this, so that items and vectors never straddle the end.
pub const ROW_ALIGN: usize = 32;
/// Longest canvas: positions fit the rotary table's and the sampler's u32 arithmetic with room,
/// and a plan this long is already far beyond any supported model's context.
pub const ROWS_MAX: usize = 1 << 20;
/// Most canvases that step together. What a pass is told of each is copied to every worker, and
/// that many blocks of 32 rows are far beyond the length from which matrices run at full speed.
pub const CANVASES_MAX: usize = 16;
/// Most worker threads: scratch is planned per worker.
pub const THREADS_MAX: usize = 1024;

/// What the caller will never exceed; every buffer's size follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest canvas in tokens, prompt included.
    pub rows: usize,
    /// Most logit rows of a canvas in one forward pass.
    pub wanted: usize,
    /// Canvases that may share a pass, and whose keys and values are kept at a time; each as long
    /// as `rows`.
    pub canvases: usize,
    /// Whether whole rows of logits may be asked for: by a caller, or by a request whose rule
    /// [needs them](crate::sample::Rule::needs_logits). Without, a step keeps statistics of them
    /// alone, a tenth of their `wanted x vocabulary x 4` bytes.
    pub logits: bool,
    /// Whether classifier-free guidance may be used: a second set of logits. Implies `logits`.
    pub guidance: bool,
    /// Whether keys and values may be kept from pass to pass: as many of them as there are layers,
    /// where passes that compute every row share one set.
    pub cache: bool,
    /// Worker threads, the caller's included.
    pub threads: usize,
}

impl Limits {
    /// For one canvas at a time and statistics of logits alone, with nothing kept.
    pub const fn new(rows: usize, wanted: usize, threads: usize) -> Limits {
        let (canvases, logits, guidance, cache) = (1, false, false, false);
        Limits { rows, wanted, canvases, logits, guidance, cache, threads }
    }
}

/// Why a model cannot be planned under some limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A limit is zero or beyond its maximum.
    Limit {
        /// Which limit.
        name: &'static str,
        /// What was asked for.
        asked: usize,
        /// The largest possible value.
        max: usize,
    },
    /// The sizes do not fit this machine's address space.
    TooLarge,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Limit { name, asked, max } => {
                write!(f, "limit `{name}` is {asked}: it must be between 1 and {max}")
            }
            Fault::TooLarge => write!(f, "the planned buffers exceed the address space"),
        }
    }
}

impl std::error::Error for Fault {}

/// Everything that has to be known before a byte is loaded.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The limits it was made for, `wanted` clamped to `rows`, `logits` where guidance implies it.
    pub limits: Limits,
    /// Row capacity of the buffers: for each canvas `limits.rows` rounded up.
    pub row_capacity: usize,
    /// Read-only contents of the arena, in order of offset.
    pub weights: Vec<WeightPlan>,
    /// Bytes of weights and tables, at the start of the arena.
    pub fixed_bytes: usize,
    /// Buffers that operators write, placed after the weights.
    pub buffers: Vec<Buffer>,
    /// The buffers that a caller fills before a step and reads after it.
    pub ports: Ports,
    /// The operators of a forward pass with sampling, in order; one phase each.
    pub ops: Vec<Op>,
    /// Bytes of the whole arena.
    pub total_bytes: usize,
}

impl Plan {
    /// Plans `model` under `limits`.
    ///
    /// # Errors
    /// [`Fault`] when a limit is out of range or sizes overflow.
    pub fn new(model: &Model, limits: Limits) -> Result<Plan, Fault> {
        let limits = checked(limits)?;
        let row_capacity = limits.canvases * limits.rows.next_multiple_of(ROW_ALIGN);
        let weights = weights::plan(model, limits.rows).ok_or(Fault::TooLarge)?;
        let mut buffers = buffers::Builder::new(model, limits, row_capacity);
        let ops = operators::plan(model, &weights, &mut buffers);
        let ports = buffers.ports();
        let (buffers, work_bytes) = buffers.place(&ops, weights.bytes).ok_or(Fault::TooLarge)?;
        let total_bytes = weights.bytes.checked_add(work_bytes).ok_or(Fault::TooLarge)?;
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
}

fn checked(limits: Limits) -> Result<Limits, Fault> {
    let wanted = limits.wanted.min(limits.rows);
    for (name, asked, max) in [
        ("rows", limits.rows, ROWS_MAX),
        ("wanted", wanted, ROWS_MAX),
        ("canvases", limits.canvases, CANVASES_MAX),
        ("threads", limits.threads, THREADS_MAX),
    ] {
        if asked == 0 || asked > max {
            return Err(Fault::Limit { name, asked, max });
        }
    }
    Ok(Limits { wanted, logits: limits.logits || limits.guidance, ..limits })
}
