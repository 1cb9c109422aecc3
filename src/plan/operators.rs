//! The operators of a forward pass in order, each with what it reads and writes.

use super::buffers::{Act, Builder, CHOICE_BYTES, Slot, record_row_bytes};
use super::heads::KeyRows;
use super::partitions::{
    act_slots, act_writes, key_items, key_panels, narrowed, panel_items, query_items, row_items,
};
use super::weights::{LayerWeights, MatrixPlan, Weights};
use crate::model::{Matrix, Model};
use dllm_arena::{Partition, PhaseAccess, Span};
use dllm_cpu::dtype::PANEL_ROWS;
use dllm_cpu::gemm::{ActivationKind, activation_kind};
use dllm_cpu::ops::{GROUP_LOGITS, QUERY_TILE};

/// Stages of a layer, in order; buffers are live over a range of them. The operators before the
/// first layer and after the last have stages of their own.
pub mod stage {
    /// Embedding rows.
    pub const EMBED: usize = 0;
    /// Normalization before attention.
    pub const ATTN_NORM: usize = 1;
    /// Queries, keys, values.
    pub const QKV: usize = 2;
    /// Keys turned.
    pub const KEYS: usize = 3;
    /// Attention.
    pub const ATTEND: usize = 4;
    /// Quantization of its output; residual rows gathered in the last layer.
    pub const ATTENDED: usize = 5;
    /// Output projection.
    pub const O: usize = 6;
    /// Normalization before the feed-forward.
    pub const FFN_NORM: usize = 7;
    /// Gate and up.
    pub const GATE_UP: usize = 8;
    /// Quantization of the hidden rows.
    pub const HIDDEN: usize = 9;
    /// Down projection.
    pub const DOWN: usize = 10;
    /// Normalization before the LM head.
    pub const OUTPUT_NORM: usize = 11;
    /// LM head.
    pub const LM_HEAD: usize = 12;
    /// Choice of tokens.
    pub const CHOOSE: usize = 13;
    /// How many there are.
    pub const COUNT: usize = 14;
}

/// Panels of the LM head that make a group of logits, of which statistics are kept.
pub const GROUP_PANELS: usize = GROUP_LOGITS / PANEL_ROWS;

/// How many rows an operator has in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Those of the canvases that the pass computes.
    Canvas,
    /// Those whose logits are wanted.
    Wanted,
}

/// Where `--verbose` and the JSON count an operator's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Matrix multiplications but the LM head.
    Gemm,
    /// Attention and its keys.
    Attention,
    /// The LM head.
    LmHead,
    /// Choice of tokens.
    Sampling,
    /// The rest.
    Other,
}

/// One matrix of a [`OpKind::Project`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The matrix.
    pub matrix: MatrixPlan,
    /// Where its outputs go, row-major.
    pub out: Slot,
    /// The operator's first item that belongs to it.
    pub first_item: usize,
    /// Whether its rows are those of the canvases, as keys and values are kept, rather than of the
    /// pass.
    pub by_position: bool,
}

/// What an operator does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// `x[row] = embedding[ids[row]]`
    Embed {
        /// The rows, as in the file.
        span: Span,
        /// Their type and shape.
        matrix: Matrix,
        /// The tokens.
        ids: Slot,
        /// The residual stream.
        x: Slot,
    },
    /// RMS normalization into activations.
    Norm {
        /// f32 `[width]`
        weight: Span,
        /// The residual stream.
        from: Slot,
        /// The activations to fill.
        to: Act,
    },
    /// Quantization into activations.
    Quantize {
        /// f32 rows.
        from: Slot,
        /// Floats between them.
        stride: usize,
        /// The activations to fill.
        to: Act,
    },
    /// One or more matrices over the same activations, one item a panel of 16 output rows.
    Project {
        /// The activations.
        x: Act,
        /// The matrices.
        parts: Vec<Part>,
        /// Whether the products are added to what is there: the residual stream.
        add: bool,
    },
    /// `out = silu(gate x) * (up x)`
    GateUp {
        /// The activations.
        x: Act,
        /// The gate matrix.
        gate: MatrixPlan,
        /// The up matrix.
        up: MatrixPlan,
        /// f32 rows.
        out: Slot,
    },
    /// Keys turned by their positions, in place.
    RopeKeys {
        /// Keys.
        k: Slot,
        /// How they lie.
        rows: KeyRows,
    },
    /// Attention of 16 queries of a head over all keys, one head after the other.
    Attend {
        /// Queries, row-major, not yet turned.
        q: Slot,
        /// Keys, turned.
        k: Slot,
        /// Values.
        v: Slot,
        /// How both lie.
        rows: KeyRows,
        /// Items of a head.
        blocks: usize,
        /// Output rows.
        out: Slot,
        /// In the last layer: which rows ask.
        wanted: Option<Slot>,
    },
    /// `to[i] = from[wanted[i]]`
    Gather {
        /// All rows.
        from: Slot,
        /// Which.
        wanted: Slot,
        /// The wanted ones.
        to: Slot,
    },
    /// The LM head. Where a step wants no more, an item is a group of logits, of which it keeps
    /// statistics; otherwise a panel, whose logits it stores.
    LmHead {
        /// The activations.
        x: Act,
        /// The matrix.
        matrix: MatrixPlan,
        /// `[vocabulary / 64, rounded up][wanted]` statistics.
        records: Slot,
        /// f32 `[wanted][vocabulary, rounded up]`
        logits: Option<Slot>,
        /// The same on a pass without the prompt.
        guide: Option<Slot>,
    },
    /// Logits, or statistics of them, to choices.
    Choose {
        /// The statistics.
        records: Slot,
        /// Overwritten on the way.
        logits: Option<Slot>,
        /// Logits without the prompt.
        guide: Option<Slot>,
        /// The choices.
        choices: Slot,
        /// The positions they are for.
        positions: Slot,
    },
}

/// One operator: one phase of the arena.
#[derive(Clone, Debug)]
pub struct Op {
    /// As `dllm-rt plan` prints it.
    pub name: &'static str,
    /// The layer, for those in one.
    pub layer: Option<usize>,
    /// What it does.
    pub kind: OpKind,
    /// How many rows it has.
    pub count: Count,
    /// Where its time is counted.
    pub split: Split,
    /// Its place in a layer, one of [`stage`].
    pub stage: usize,
    /// What it touches.
    pub access: PhaseAccess,
}

/// The whole list.
pub(super) fn plan(model: &Model, weights: &Weights, buffers: &mut Builder) -> Vec<Op> {
    let mut list = List { ops: Vec::new(), b: buffers, model, layer: None };
    list.embed(weights.embedding);
    let last = weights.layers.len() - 1;
    for (i, layer) in weights.layers.iter().enumerate() {
        list.layer = Some(i);
        list.attention(layer, (i, i == last));
        list.feed_forward(layer, i == last);
    }
    list.layer = None;
    list.head(weights);
    list.ops
}

struct List<'a> {
    ops: Vec<Op>,
    b: &'a Builder,
    model: &'a Model,
    layer: Option<usize>,
}

impl List<'_> {
    fn push(
        &mut self,
        (name, stage, split): (&'static str, usize, Split),
        count: Count,
        kind: OpKind,
        access: PhaseAccess,
    ) {
        self.ops.push(Op { name, layer: self.layer, kind, count, split, stage, access });
    }

    fn embed(&mut self, span: Span) {
        let s = &self.b.slots;
        let kind = OpKind::Embed { span, matrix: self.model.embedding, ids: s.ids, x: s.x };
        let writes = vec![(s.x, row_items(self.b.rows, 4 * self.model.config.width))];
        let access = PhaseAccess { reads: vec![s.ids], writes, scratch: vec![] };
        self.push(("embed", stage::EMBED, Split::Other), Count::Canvas, kind, access);
    }

    fn attention(&mut self, layer: &LayerWeights, (index, last): (usize, bool)) {
        let s = &self.b.slots;
        let (rows, c) = (self.b.rows, &self.model.config);
        let (k, v) = s.keys_values(index);
        let qkv = [(layer.q, s.q), (layer.k, k), (layer.v, v)];
        let kinds = qkv.map(|(m, _)| activation_kind(m.dtype));
        self.norm(("attn_norm", stage::ATTN_NORM), layer.attn_norm, s.x, Count::Canvas, &kinds);
        self.project(("qkv", stage::QKV), Count::Canvas, s.norm, &qkv, false);
        let kv_rows = self.b.kv_rows;
        let kind = OpKind::RopeKeys { k, rows: kv_rows };
        let writes = vec![(k, key_items(rows, kv_rows))];
        let access = PhaseAccess { reads: vec![], writes, scratch: vec![] };
        self.push(("rope_keys", stage::KEYS, Split::Attention), Count::Canvas, kind, access);
        let count = if last { Count::Wanted } else { Count::Canvas };
        let wanted = last.then_some(s.wanted);
        let mut reads = vec![s.q, k, v];
        reads.extend(wanted);
        let asking = if last { self.b.wanted } else { rows };
        let blocks = asking.div_ceil(QUERY_TILE);
        let (q, out) = (s.q, s.attended);
        let kind = OpKind::Attend { q, k, v, rows: kv_rows, blocks, out, wanted };
        let writes = vec![(s.attended, query_items(blocks, c.heads, c.head_width))];
        let access = PhaseAccess { reads, writes, scratch: vec![s.attention] };
        self.push(("attend", stage::ATTEND, Split::Attention), count, kind, access);
        if last {
            self.gather();
        }
        let q_cols = c.heads * c.head_width;
        let kinds = [activation_kind(layer.o.dtype)];
        let place = ("quantize_attended", stage::ATTENDED);
        self.quantize(place, (s.attended, q_cols), count, s.attended_act, &kinds);
        let x = if last { s.x_wanted } else { s.x };
        self.project(("attn_output", stage::O), count, s.attended_act, &[(layer.o, x)], true);
    }

    fn gather(&mut self) {
        let s = &self.b.slots;
        let kind = OpKind::Gather { from: s.x, wanted: s.wanted, to: s.x_wanted };
        let items = row_items(self.b.wanted, 4 * self.model.config.width);
        let access = PhaseAccess {
            reads: vec![s.x, s.wanted],
            writes: vec![(s.x_wanted, items)],
            scratch: vec![],
        };
        self.push(("gather", stage::ATTENDED, Split::Other), Count::Wanted, kind, access);
    }

    fn feed_forward(&mut self, layer: &LayerWeights, last: bool) {
        let s = &self.b.slots;
        let (x, count) = if last { (s.x_wanted, Count::Wanted) } else { (s.x, Count::Canvas) };
        let kinds = [layer.gate, layer.up].map(|m| activation_kind(m.dtype));
        self.norm(("ffn_norm", stage::FFN_NORM), layer.ffn_norm, x, count, &kinds);
        let (gate, up) = (layer.gate, layer.up);
        let input = narrowed(s.norm, &kinds);
        let kind = OpKind::GateUp { x: input, gate, up, out: s.hidden };
        let columns = panel_items(0, &gate, self.b.rows);
        let access = PhaseAccess {
            reads: act_slots(input),
            writes: vec![(s.hidden, columns)],
            scratch: vec![s.tile],
        };
        self.push(("gate_up", stage::GATE_UP, Split::Gemm), count, kind, access);
        let kinds = [activation_kind(layer.down.dtype)];
        let from = (s.hidden, s.hidden_act.float_stride);
        self.quantize(("quantize_hidden", stage::HIDDEN), from, count, s.hidden_act, &kinds);
        self.project(("ffn_down", stage::DOWN), count, s.hidden_act, &[(layer.down, x)], true);
    }

    fn head(&mut self, weights: &Weights) {
        let s = &self.b.slots;
        let count = Count::Wanted;
        let kinds = [activation_kind(weights.output.dtype)];
        let place = ("output_norm", stage::OUTPUT_NORM);
        self.norm(place, weights.output_norm, s.x_wanted, count, &kinds);
        let (matrix, x) = (weights.output, narrowed(s.norm, &kinds));
        let (records, logits, guide) = (s.records, s.logits, s.guide);
        let groups = matrix.rows.div_ceil(GROUP_LOGITS);
        let columns = panel_items(0, &matrix, self.b.wanted);
        let mut writes =
            vec![(records, Partition::blocks(groups, record_row_bytes(self.b.wanted)))];
        writes.extend([logits, guide].into_iter().flatten().map(|slot| (slot, columns)));
        let access = PhaseAccess { reads: act_slots(x), writes, scratch: vec![s.tile] };
        let kind = OpKind::LmHead { x, matrix, records, logits, guide };
        self.push(("lm_head", stage::LM_HEAD, Split::LmHead), count, kind, access);
        let row_bytes = 4 * matrix.rows.next_multiple_of(PANEL_ROWS);
        let mut reads = vec![s.positions, records];
        reads.extend(guide);
        let mut writes = vec![(s.choices, Partition::blocks(self.b.wanted, CHOICE_BYTES))];
        writes.extend(logits.map(|slot| (slot, Partition::blocks(self.b.wanted, row_bytes))));
        let access = PhaseAccess { reads, writes, scratch: s.order.into_iter().collect() };
        let (choices, positions) = (s.choices, s.positions);
        let kind = OpKind::Choose { records, logits, guide, choices, positions };
        self.push(("choose", stage::CHOOSE, Split::Sampling), count, kind, access);
    }

    fn norm(
        &mut self,
        (name, stage): (&'static str, usize),
        weight: Span,
        from: Slot,
        count: Count,
        kinds: &[ActivationKind],
    ) {
        let to = narrowed(self.b.slots.norm, kinds);
        let mut writes = act_writes(to, self.b.rows);
        let row_bytes = 4 * self.model.config.width;
        writes.extend(to.float.map(|slot| (slot, row_items(self.b.rows, row_bytes))));
        let scratch = vec![self.b.slots.row];
        let access = PhaseAccess { reads: vec![from], writes, scratch };
        self.push((name, stage, Split::Other), count, OpKind::Norm { weight, from, to }, access);
    }

    fn quantize(
        &mut self,
        (name, stage): (&'static str, usize),
        (from, stride): (Slot, usize),
        count: Count,
        to: Act,
        kinds: &[ActivationKind],
    ) {
        let to = narrowed(to, kinds);
        // Float matrices read `from` as it is.
        if to.per_256.is_none() && to.per_32.is_none() {
            return;
        }
        let access =
            PhaseAccess { reads: vec![from], writes: act_writes(to, self.b.rows), scratch: vec![] };
        let kind = OpKind::Quantize { from, stride, to };
        self.push((name, stage, Split::Other), count, kind, access);
    }

    fn project(
        &mut self,
        (name, stage): (&'static str, usize),
        count: Count,
        x: Act,
        matrices: &[(MatrixPlan, Slot)],
        add: bool,
    ) {
        let kinds: Vec<_> = matrices.iter().map(|(m, _)| activation_kind(m.dtype)).collect();
        let x = narrowed(x, &kinds);
        let rows = if count == Count::Canvas { self.b.rows } else { self.b.wanted };
        let (mut parts, mut writes, mut first_item) = (Vec::new(), Vec::new(), 0);
        for &(matrix, out) in matrices {
            let by_position = self.b.slots.is_key_or_value(out);
            parts.push(Part { matrix, out, first_item, by_position });
            let partition = match by_position {
                true => key_panels(first_item, &matrix, rows, self.b.kv_rows),
                false => panel_items(first_item, &matrix, rows),
            };
            writes.push((out, partition));
            first_item += matrix.panels();
        }
        let scratch = vec![self.b.slots.tile];
        let access = PhaseAccess { reads: act_slots(x), writes, scratch };
        let kind = OpKind::Project { x, parts, add };
        self.push((name, stage, Split::Gemm), count, kind, access);
    }
}
