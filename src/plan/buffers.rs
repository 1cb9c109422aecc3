//! The buffers that operators write: their sizes, and when their contents matter.

use super::heads::KeyRows;
use super::operators::{GROUP_PANELS, Op, stage};
use super::{Limits, ROW_ITEM};
use crate::model::Model;
use dllm_arena::layout::{self, Request};
use dllm_arena::{ALIGN, Span};
use dllm_cpu::dtype::{PANEL_ROWS, SUPER_WEIGHTS};
use dllm_cpu::gemm::{ActivationKind, CODE_WORDS, SUM_WORDS};
use dllm_cpu::ops::{GROUP_LOGITS, QUERY_TILE, attention_scratch_floats};
use std::ops::Range;

/// Index of a buffer in [`super::Plan::buffers`], and of its slot in the arena.
pub type Slot = usize;

/// One buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// What it holds.
    pub name: &'static str,
    /// The layer, for kept keys and values.
    pub layer: Option<usize>,
    /// Its size in bytes.
    pub bytes: usize,
    /// Stages of a layer (see [`stage`]) in which its contents matter; buffers of which these do
    /// not overlap may share memory.
    pub live: Range<usize>,
    /// Where it lies in the arena.
    pub span: Span,
}

/// Activations in the forms that their consumers need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    /// Values a row.
    pub cols: usize,
    /// int8 with one scale per 256.
    pub per_256: Option<Quantized>,
    /// int8 with one scale per 32.
    pub per_32: Option<Quantized>,
    /// f32 rows, for float matrices.
    pub float: Option<Slot>,
    /// Floats between those rows.
    pub float_stride: usize,
}

/// The three buffers of quantized activations, see `dllm_cpu::gemm::Activations`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantized {
    /// Codes.
    pub codes: Slot,
    /// Sums.
    pub sums: Slot,
    /// Scales.
    pub scales: Slot,
}

/// Every buffer by role.
pub(super) struct Slots {
    /// u32 `[rows]`: the tokens of the pass's rows.
    pub ids: Slot,
    /// u32 `[wanted]`: the rows of the pass whose logits are wanted.
    pub wanted: Slot,
    /// u32 `[wanted]`: the position that each of them decides, for random numbers.
    pub positions: Slot,
    /// f32 `[rows][width]`: the residual stream.
    pub x: Slot,
    /// The same for the wanted rows alone, from the last layer's attention on.
    pub x_wanted: Slot,
    /// f32 `[rows][heads * head_width]`
    pub q: Slot,
    /// f32 `[rows][kv_heads * head_width]`, in the order that [`KeyRows`] says: keys of each layer
    /// where they are kept, otherwise one for all.
    keys: Vec<Slot>,
    /// Values, likewise.
    values: Vec<Slot>,
    /// f32 `[rows][heads * head_width]`: what attention returns.
    pub attended: Slot,
    /// f32 `[rows][ff_width]`: silu(gate) * up.
    pub hidden: Slot,
    /// f32 `[wanted][vocabulary, rounded up to 16]`, where whole rows may be wanted.
    pub logits: Option<Slot>,
    /// The same without the prompt, for guidance.
    pub guide: Option<Slot>,
    /// `[vocabulary / 64, rounded up][wanted]` statistics of logits, [`RECORD_BYTES`] each.
    pub records: Slot,
    /// `[wanted]` choices of the sampler.
    pub choices: Slot,
    /// Normalized rows, quantized.
    pub norm: Act,
    /// Attention's output, quantized.
    pub attended_act: Act,
    /// The hidden rows, quantized.
    pub hidden_act: Act,
    /// Per worker: f32 `[2][rows][16]` or `[4][wanted][16]`, the tiles of matrix multiplications.
    pub tile: Slot,
    /// Per worker: f32, one row.
    pub row: Slot,
    /// Per worker: f32, what attention needs.
    pub attention: Slot,
    /// Per worker: u32 `[vocabulary]`, the sampler's order of tokens, where whole rows are wanted.
    pub order: Option<Slot>,
}

impl Slots {
    /// Keys and values of a layer.
    pub fn keys_values(&self, layer: usize) -> (Slot, Slot) {
        let at = if self.keys.len() == 1 { 0 } else { layer };
        (self.keys[at], self.values[at])
    }

    /// Whether a buffer holds keys or values.
    pub fn is_key_or_value(&self, slot: Slot) -> bool {
        self.keys.contains(&slot) || self.values.contains(&slot)
    }
}

/// What a caller fills before a step (the first three) and reads after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// u32 `[rows]`: the tokens of the pass's rows.
    pub ids: Slot,
    /// u32 `[wanted]`: the rows of the pass whose logits are wanted.
    pub wanted: Slot,
    /// u32 `[wanted]`: the position that each of them decides.
    pub positions: Slot,
    /// f32 `[wanted][vocabulary, rounded up to 16]`, if the limits allow for whole rows.
    pub logits: Option<Slot>,
    /// `[wanted]` choices, [`CHOICE_BYTES`] each.
    pub choices: Slot,
}

/// Collects buffers, then places them.
pub(super) struct Builder {
    pub rows: usize,
    pub wanted: usize,
    /// How keys and values lie.
    pub kv_rows: KeyRows,
    pub slots: Slots,
    cache: bool,
    buffers: Vec<Option<Buffer>>,
}

impl Builder {
    pub fn new(model: &Model, limits: Limits, rows: usize) -> Builder {
        let wanted = (limits.canvases * limits.wanted).next_multiple_of(ROW_ITEM);
        let threads = limits.threads;
        let mut list = List { buffers: Vec::new(), layer: None, rows, threads };
        let slots = slots(model, limits, wanted, &mut list);
        let kv_rows = KeyRows::new(&model.config, rows);
        Builder { rows, wanted, kv_rows, slots, cache: limits.cache, buffers: list.buffers }
    }

    /// The buffers that a caller uses.
    pub fn ports(&self) -> Ports {
        let s = &self.slots;
        Ports {
            ids: s.ids,
            wanted: s.wanted,
            positions: s.positions,
            logits: s.logits,
            choices: s.choices,
        }
    }

    /// Offsets after `start`, and the bytes used; `None` on overflow.
    pub fn place(self, ops: &[Op], start: usize) -> Option<(Vec<Buffer>, usize)> {
        let mut buffers = self.buffers.into_iter().collect::<Option<Vec<_>>>()?;
        let held = [self.slots.ids, self.slots.wanted, self.slots.positions];
        for (slot, buffer) in buffers.iter_mut().enumerate() {
            buffer.live = live_stages(slot, ops);
            // The leader writes these before a step, or they live from layer to layer, or, as the
            // guide and kept keys do, from one pass to the next.
            let is_guide = self.slots.guide == Some(slot);
            let is_kept = self.cache && self.slots.is_key_or_value(slot);
            if held.contains(&slot) || slot == self.slots.x || is_guide || is_kept {
                buffer.live = 0..stage::COUNT;
            }
        }
        let request = |b: &Buffer| Request { bytes: b.bytes, live: b.live.clone() };
        let requests: Vec<_> = buffers.iter().map(request).collect();
        let placed = layout::place(&requests)?;
        for (buffer, span) in buffers.iter_mut().zip(placed.spans) {
            buffer.span = Span { offset: span.offset.checked_add(start)?, bytes: span.bytes };
        }
        Some((buffers, placed.bytes))
    }
}

/// From the first to the last stage of any operator that touches the buffer. Every layer has the
/// same stages and nothing but the residual stream passes from one layer to the next.
fn live_stages(slot: Slot, ops: &[Op]) -> Range<usize> {
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

/// Buffers in order of slot; a size that overflowed is `None`.
struct List {
    buffers: Vec<Option<Buffer>>,
    /// The layer that what is pushed belongs to.
    layer: Option<usize>,
    rows: usize,
    threads: usize,
}

impl List {
    fn push(&mut self, name: &'static str, sizes: &[usize]) -> Slot {
        let bytes = sizes.iter().try_fold(1usize, |product, n| product.checked_mul(*n));
        let (layer, live, span) = (self.layer, 0..0, Span::default());
        let buffer = |bytes| Buffer { name, layer, bytes, live, span };
        self.buffers.push(bytes.map(buffer));
        self.buffers.len() - 1
    }

    fn floats(&mut self, name: &'static str, rows: usize, cols: usize) -> Slot {
        self.push(name, &[rows, cols, size_of::<f32>()])
    }

    /// Rows of keys or values: as many sets of them as layers keep theirs, or one for all.
    fn sets(&mut self, name: &'static str, cols: usize, layers: Option<usize>) -> Vec<Slot> {
        let rows = self.rows;
        let Some(layers) = layers else { return vec![self.floats(name, rows, cols)] };
        let set = |layer| {
            self.layer = Some(layer);
            self.floats(name, rows, cols)
        };
        let sets = (0..layers).map(set).collect();
        self.layer = None;
        sets
    }

    /// One chunk a worker, so that no two of them share a cache line.
    fn per_worker(&mut self, name: &'static str, words: usize) -> Slot {
        let chunk = words.checked_mul(4).and_then(|b| b.checked_next_multiple_of(ALIGN));
        let threads = self.threads;
        self.push(name, &[chunk.unwrap_or(usize::MAX), threads])
    }

    fn act(&mut self, names: [&'static str; 6], cols: usize, kinds: &[ActivationKind]) -> Act {
        let blocks = cols.div_ceil(SUPER_WEIGHTS);
        let rows = self.rows;
        let mut quantized = |kind, names: [&'static str; 3], scales| {
            kinds.contains(&kind).then(|| Quantized {
                codes: self.push(names[0], &[blocks, rows, CODE_WORDS, 4]),
                sums: self.push(names[1], &[blocks, rows, SUM_WORDS, 4]),
                scales: self.push(names[2], &[blocks, rows, scales, 4]),
            })
        };
        let [c256, s256, d256, c32, s32, d32] = names;
        let per_256 = quantized(ActivationKind::Per256, [c256, s256, d256], 1);
        let per_32 = quantized(ActivationKind::Per32, [c32, s32, d32], 8);
        Act { cols, per_256, per_32, float: None, float_stride: cols }
    }
}

fn slots(model: &Model, limits: Limits, wanted: usize, list: &mut List) -> Slots {
    let config = &model.config;
    let rows = list.rows;
    let q_cols = config.heads * config.head_width;
    let kv_cols = (config.kv_heads * config.head_width).next_multiple_of(PANEL_ROWS);
    let ff_stride = config.ff_width.next_multiple_of(PANEL_ROWS);
    let vocab = config.vocab.next_multiple_of(PANEL_ROWS);
    let kinds = Kinds::of(model);
    let sets = limits.cache.then_some(model.layers.len());
    let attended = list.floats("attended", rows, q_cols);
    let hidden = list.floats("hidden", rows, ff_stride);
    let mut norm = list.act(NORM_NAMES, config.width, &kinds.norm);
    let mut attended_act = list.act(ATTENDED_NAMES, q_cols, &kinds.attended);
    let mut hidden_act = list.act(HIDDEN_NAMES, config.ff_width, &kinds.hidden);
    let float = |kinds: &[ActivationKind]| kinds.contains(&ActivationKind::Float);
    norm.float = float(&kinds.norm).then(|| list.floats("norm.f32", rows, config.width));
    attended_act.float = float(&kinds.attended).then_some(attended);
    hidden_act.float = float(&kinds.hidden).then_some(hidden);
    hidden_act.float_stride = ff_stride;
    Slots {
        ids: list.push("ids", &[rows, 4]),
        wanted: list.push("wanted", &[wanted, 4]),
        positions: list.push("positions", &[wanted, 4]),
        x: list.floats("x", rows, config.width),
        x_wanted: list.floats("x.wanted", wanted, config.width),
        q: list.floats("q", rows, q_cols.next_multiple_of(PANEL_ROWS)),
        keys: list.sets("k", kv_cols, sets),
        values: list.sets("v", kv_cols, sets),
        attended,
        hidden,
        logits: limits.logits.then(|| list.floats("logits", wanted, vocab)),
        guide: limits.guidance.then(|| list.floats("logits.guide", wanted, vocab)),
        records: list.push("records", &[vocab.div_ceil(GROUP_LOGITS), record_row_bytes(wanted)]),
        choices: list.push("choices", &[wanted, CHOICE_BYTES]),
        norm,
        attended_act,
        hidden_act,
        tile: list.per_worker("scratch.tile", PANEL_ROWS * (2 * rows).max(GROUP_PANELS * wanted)),
        row: list.per_worker("scratch.row", config.width),
        attention: {
            let tiles = 2 * QUERY_TILE * config.head_width;
            let own = attention_scratch_floats(config.head_width);
            list.per_worker("scratch.attention", tiles + own)
        },
        order: limits.logits.then(|| list.per_worker("scratch.order", config.vocab)),
    }
}

/// Bytes of one choice of the sampler (`sample::Choice`; the engine asserts it).
pub const CHOICE_BYTES: usize = 16;
/// Bytes of the statistics of a group of logits (`sample::Record`; the engine asserts it).
pub const RECORD_BYTES: usize = 24;
/// Records that fill whole cache lines, three of them.
const RECORDS_ALIGN: usize = 8;

/// Bytes of one group's records of all `wanted` rows: whole cache lines, so that no two workers
/// write one.
pub(super) fn record_row_bytes(wanted: usize) -> usize {
    wanted.next_multiple_of(RECORDS_ALIGN).saturating_mul(RECORD_BYTES)
}

/// The forms of activations that any layer's matrices need.
struct Kinds {
    norm: Vec<ActivationKind>,
    attended: Vec<ActivationKind>,
    hidden: Vec<ActivationKind>,
}

impl Kinds {
    fn of(model: &Model) -> Kinds {
        let mut kinds = Kinds { norm: Vec::new(), attended: Vec::new(), hidden: Vec::new() };
        kinds.norm.push(model.output.activation_kind());
        for layer in &model.layers {
            for matrix in [&layer.q, &layer.k, &layer.v, &layer.gate, &layer.up] {
                kinds.norm.push(matrix.activation_kind());
            }
            kinds.attended.push(layer.o.activation_kind());
            kinds.hidden.push(layer.down.activation_kind());
        }
        kinds
    }
}

const NORM_NAMES: [&str; 6] =
    ["norm.codes", "norm.sums", "norm.scales", "norm32.codes", "norm32.sums", "norm32.scales"];
const ATTENDED_NAMES: [&str; 6] = [
    "attended.codes",
    "attended.sums",
    "attended.scales",
    "attended32.codes",
    "attended32.sums",
    "attended32.scales",
];
const HIDDEN_NAMES: [&str; 6] = [
    "hidden.codes",
    "hidden.sums",
    "hidden.scales",
    "hidden32.codes",
    "hidden32.sums",
    "hidden32.scales",
];
