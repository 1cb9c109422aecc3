//! The buffers that operators write: their sizes, and when their contents matter.

use super::activations::{Act, Quantized};
use super::keys::KvRows;
use super::turn::{ROW_ITEM, Slot, record_row_bytes};
use crate::backend::limits::Limits;
use crate::model::{Layer, Linear, Network};
use crate::sample::Choice;
use dllm_arena::layout::{self, Request};
use dllm_arena::{ALIGN, Span};
use dllm_cpu::dtype::{PANEL_ROWS, SUPER_WEIGHTS};
use dllm_cpu::gemm::{ActivationKind, CODE_WORDS, SUM_WORDS};
use dllm_cpu::ops::{GROUP_LOGITS, QUERY_TILE, attention_scratch_floats};
use serde::{Serialize, Serializer};
use std::ops::Range;

/// One buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Buffer {
    /// What it holds.
    pub name: String,
    /// The layer, for the keys and values of a KV cache.
    pub layer: Option<usize>,
    /// Where it lies in the arena.
    pub offset: usize,
    /// Its size in bytes.
    pub bytes: usize,
    /// Stages of a layer in which its contents matter; buffers of which these do not overlap may
    /// share memory.
    #[serde(serialize_with = "ends")]
    pub live: Range<usize>,
}

impl Buffer {
    /// Where it lies in the arena.
    pub fn span(&self) -> Span {
        Span { offset: self.offset, bytes: self.bytes }
    }
}

/// The first stage and the one after the last.
fn ends<S: Serializer>(live: &Range<usize>, serializer: S) -> Result<S::Ok, S::Error> {
    [live.start, live.end].serialize(serializer)
}

/// Every buffer by role.
pub(super) struct Slots {
    /// u32 `[rows]`: the tokens of the pass's rows.
    pub ids: Slot,
    /// u32 `[output rows]`: which rows of the pass are output rows.
    pub output_rows: Slot,
    /// u32 `[output rows]`: the position that each of them decides, for random numbers.
    pub positions: Slot,
    /// f32 `[rows][width]`: the residual stream.
    pub x: Slot,
    /// The same of the output rows alone, from the last layer's attention on.
    pub x_output: Slot,
    /// f32 `[rows][heads * head_width]`
    pub q: Slot,
    /// f32 `[rows][kv_heads * head_width]`, in the order that [`KvRows`] says: keys of each layer
    /// in a KV cache, otherwise one set for all.
    keys: Vec<Slot>,
    /// Values, likewise.
    values: Vec<Slot>,
    /// f32 `[rows][heads * head_width]`: what attention returns.
    pub attended: Slot,
    /// f32 `[rows][ff_width]`: silu(gate) * up.
    pub hidden: Slot,
    /// f32 `[output rows][vocabulary, rounded up to 16]`, where whole rows may be asked for.
    pub logits: Option<Slot>,
    /// The same without the prompt, for guidance.
    pub guide: Option<Slot>,
    /// `[vocabulary / 64, rounded up][output rows]` statistics of logits, `stats::Record`.
    pub records: Slot,
    /// `[output rows]` choices of the sampler.
    pub choices: Slot,
    /// Normalized rows, quantized.
    pub norm: Act,
    /// Attention's output, quantized.
    pub attended_act: Act,
    /// The hidden rows, quantized.
    pub hidden_act: Act,
    /// Per worker: f32 `[2][rows][16]` or `[4][output rows][16]`, the tiles of matrices.
    pub tile: Slot,
    /// Per worker: f32, one row.
    pub row: Slot,
    /// Per worker: f32, what attention needs.
    pub attention: Slot,
    /// Per worker: u32 `[vocabulary]`, the order of tokens, where whole rows may be asked for.
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

/// All buffers, not yet placed.
pub(super) struct Buffers {
    /// Rows that there is room for.
    pub rows: usize,
    /// Output rows that there is room for.
    pub outputs: usize,
    /// How keys and values lie.
    pub kv: KvRows,
    pub slots: Slots,
    list: Vec<Option<Buffer>>,
}

impl Buffers {
    pub fn new(model: &Network, limits: Limits, rows: usize) -> Buffers {
        let outputs = (limits.sequences * limits.output_rows).next_multiple_of(ROW_ITEM);
        let threads = limits.threads;
        let mut list = List { buffers: Vec::new(), layer: None, rows, threads };
        let slots = slots(model, limits, outputs, &mut list);
        let kv = KvRows::new(&model.config, rows);
        Buffers { rows, outputs, kv, slots, list: list.buffers }
    }

    /// Offsets after `start`, and the bytes used; `None` on overflow. `live` gives the stages in
    /// which a buffer's contents matter.
    pub fn place(
        self,
        start: usize,
        live: impl Fn(Slot, &Slots) -> Range<usize>,
    ) -> Option<(Vec<Buffer>, usize)> {
        let mut buffers = self.list.into_iter().collect::<Option<Vec<_>>>()?;
        for (slot, buffer) in buffers.iter_mut().enumerate() {
            buffer.live = live(slot, &self.slots);
        }
        let request = |b: &Buffer| Request { bytes: b.bytes, live: b.live.clone() };
        let requests: Vec<_> = buffers.iter().map(request).collect();
        let placed = layout::place(&requests)?;
        for (buffer, span) in buffers.iter_mut().zip(placed.spans) {
            buffer.offset = span.offset.checked_add(start)?;
        }
        Some((buffers, placed.bytes))
    }
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
    fn push(&mut self, name: impl Into<String>, sizes: &[usize]) -> Slot {
        let bytes = sizes.iter().try_fold(1usize, |product, n| product.checked_mul(*n));
        let (name, layer) = (name.into(), self.layer);
        let buffer = |bytes| Buffer { name, layer, offset: 0, bytes, live: 0..0 };
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

    fn act(&mut self, name: &str, cols: usize, kinds: &[ActivationKind]) -> Act {
        let blocks = cols.div_ceil(SUPER_WEIGHTS);
        let rows = self.rows;
        let mut quantized = |kind, name: &str, scales| {
            let mut push =
                |part, words| self.push(format!("{name}.{part}"), &[blocks, rows, words, 4]);
            kinds.contains(&kind).then(|| Quantized {
                codes: push("codes", CODE_WORDS),
                sums: push("sums", SUM_WORDS),
                scales: push("scales", scales),
            })
        };
        let per_256 = quantized(ActivationKind::Per256, name, 1);
        let per_32 = quantized(ActivationKind::Per32, &format!("{name}32"), 8);
        Act { rows, cols, per_256, per_32, float: None, float_stride: cols }
    }
}

fn slots(model: &Network, limits: Limits, outputs: usize, list: &mut List) -> Slots {
    let config = &model.config;
    let rows = list.rows;
    let q_cols = config.heads * config.head_width;
    let kv_cols = (config.kv_heads * config.head_width).next_multiple_of(PANEL_ROWS);
    let ff_stride = config.ff_width.next_multiple_of(PANEL_ROWS);
    let vocab = config.vocab.next_multiple_of(PANEL_ROWS);
    let [of_norm, of_attended, of_hidden] = kinds(model);
    let sets = limits.kv_cache.then_some(model.layers.len());
    let attended = list.floats("attended", rows, q_cols);
    let hidden = list.floats("hidden", rows, ff_stride);
    let mut norm = list.act("norm", config.width, &of_norm);
    let mut attended_act = list.act("attended", q_cols, &of_attended);
    let mut hidden_act = list.act("hidden", config.ff_width, &of_hidden);
    let float = |kinds: &[ActivationKind]| kinds.contains(&ActivationKind::Float);
    norm.float = float(&of_norm).then(|| list.floats("norm.f32", rows, config.width));
    attended_act.float = float(&of_attended).then_some(attended);
    hidden_act.float = float(&of_hidden).then_some(hidden);
    hidden_act.float_stride = ff_stride;
    Slots {
        ids: list.push("ids", &[rows, 4]),
        output_rows: list.push("output_rows", &[outputs, 4]),
        positions: list.push("positions", &[outputs, 4]),
        x: list.floats("x", rows, config.width),
        x_output: list.floats("x.output", outputs, config.width),
        q: list.floats("q", rows, q_cols.next_multiple_of(PANEL_ROWS)),
        keys: list.sets("k", kv_cols, sets),
        values: list.sets("v", kv_cols, sets),
        attended,
        hidden,
        logits: limits.logits.then(|| list.floats("logits", outputs, vocab)),
        guide: limits.guidance.then(|| list.floats("logits.guide", outputs, vocab)),
        records: list.push("records", &[vocab.div_ceil(GROUP_LOGITS), record_row_bytes(outputs)]),
        choices: list.push("choices", &[outputs, size_of::<Choice>()]),
        norm,
        attended_act,
        hidden_act,
        tile: list.per_worker(
            "scratch.tile",
            PANEL_ROWS * (2 * rows).max(GROUP_LOGITS / PANEL_ROWS * outputs),
        ),
        row: list.per_worker("scratch.row", config.width),
        attention: {
            let tiles = 2 * QUERY_TILE * config.head_width;
            let own = attention_scratch_floats(config.head_width);
            list.per_worker("scratch.attention", tiles + own)
        },
        order: limits.logits.then(|| list.per_worker("scratch.order", config.vocab)),
    }
}

/// The forms of activations that any layer's matrices need of normalized rows, of attention's
/// output and of the hidden rows.
fn kinds(model: &Network) -> [Vec<ActivationKind>; 3] {
    let of = |linears: fn(&Layer) -> Vec<&Linear>| -> Vec<ActivationKind> {
        model.layers.iter().flat_map(linears).map(Linear::activation_kind).collect()
    };
    let mut norm = of(|layer| vec![&layer.q, &layer.k, &layer.v, &layer.gate, &layer.up]);
    norm.push(model.output.activation_kind());
    [norm, of(|layer| vec![&layer.o]), of(|layer| vec![&layer.down])]
}
