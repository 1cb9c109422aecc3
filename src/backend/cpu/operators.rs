//! The list of operators of a forward pass, in order.

use super::activations::Act;
use super::buffers::Buffers;
use super::ops::{
    Attend, Choose, Count, Embed, GateUp, Gather, LmHead, Norm, Op, OpKind, Part, Project,
    Quantize, RopeKeys,
};
use super::turn::{Slot, Stage};
use super::weights::{LayerWeights, MatrixPlan, Weights};
use crate::backend::limits::Limits;
use crate::backend::pass::Split;
use crate::model::Network;
use dllm_arena::Span;
use dllm_cpu::gemm::{ActivationKind, activation_kind};
use dllm_cpu::ops::QUERY_TILE;

/// The whole list.
pub(super) fn list(model: &Network, limits: Limits, weights: &Weights, b: &Buffers) -> Vec<Op> {
    let mut list = List { ops: Vec::new(), b, model, limits, weights, layer: None };
    list.embed();
    let last = weights.layers.len() - 1;
    for (i, layer) in weights.layers.iter().enumerate() {
        list.layer = Some(i);
        list.attention(layer, i, i == last);
        list.feed_forward(layer, i == last);
    }
    list.layer = None;
    list.head();
    list.ops
}

struct List<'a> {
    ops: Vec<Op>,
    b: &'a Buffers,
    model: &'a Network,
    limits: Limits,
    weights: &'a Weights,
    layer: Option<usize>,
}

impl List<'_> {
    fn push(&mut self, name: &'static str, stage: Stage, split: Split, count: Count, kind: OpKind) {
        let (rows, capacity) = match count {
            Count::All => (self.limits.rows, self.b.rows),
            Count::Output => (self.limits.output_rows, self.b.outputs),
        };
        let rows = self.limits.sequences * rows;
        let (items, access) = (kind.items(rows), kind.access(capacity));
        let (layer, stage) = (self.layer, stage as usize);
        self.ops.push(Op { name, layer, stage, split, count, rows, items, kind, access });
    }

    fn embed(&mut self) {
        let s = &self.b.slots;
        let (span, matrix) = (self.weights.embedding, self.model.embedding);
        let op = OpKind::Embed(Embed { span, matrix, ids: s.ids, x: s.x });
        self.push("embed", Stage::Embed, Split::Other, Count::All, op);
    }

    fn attention(&mut self, layer: &LayerWeights, index: usize, last: bool) {
        let (b, c, rotation) = (self.b, &self.model.config, self.weights.rotation);
        let (s, kv) = (&b.slots, b.kv);
        let (k, v) = s.keys_values(index);
        let kinds = [layer.q, layer.k, layer.v].map(|m| activation_kind(m.dtype));
        let norm = s.norm.narrowed(&kinds);
        self.norm("attn_norm", Stage::AttnNorm, Count::All, (layer.attn_norm, s.x, norm));
        let (first_k, first_v) = (layer.q.panels(), layer.q.panels() + layer.k.panels());
        let parts = vec![
            Part { matrix: layer.q, out: s.q, first_item: 0, kv: None },
            Part { matrix: layer.k, out: k, first_item: first_k, kv: Some(kv) },
            Part { matrix: layer.v, out: v, first_item: first_v, kv: Some(kv) },
        ];
        let qkv = OpKind::Project(Project { x: norm, parts, add: false, tile: s.tile });
        self.push("qkv", Stage::Qkv, Split::Gemm, Count::All, qkv);
        let keys = OpKind::RopeKeys(RopeKeys { k, kv, rotation });
        self.push("rope_keys", Stage::Keys, Split::Attention, Count::All, keys);
        let count = if last { Count::Output } else { Count::All };
        let attend = OpKind::Attend(Attend {
            q: s.q,
            k,
            v,
            kv,
            heads: c.heads,
            blocks: if last { b.outputs } else { b.rows }.div_ceil(QUERY_TILE),
            out: s.attended,
            output_rows: last.then_some(s.output_rows),
            rotation,
            scratch: s.attention,
        });
        self.push("attend", Stage::Attend, Split::Attention, count, attend);
        if last {
            let (output_rows, width) = (s.output_rows, c.width);
            let gather = OpKind::Gather(Gather { from: s.x, output_rows, to: s.x_output, width });
            self.push("gather", Stage::Attended, Split::Other, count, gather);
        }
        let from = (s.attended, c.heads * c.head_width, s.attended_act);
        self.quantize("quantize_attended", Stage::Attended, count, from, &layer.o);
        let x = if last { s.x_output } else { s.x };
        self.project("attn_output", Stage::Output, count, s.attended_act, (layer.o, x));
    }

    fn feed_forward(&mut self, layer: &LayerWeights, last: bool) {
        let s = &self.b.slots;
        let (x, count) = if last { (s.x_output, Count::Output) } else { (s.x, Count::All) };
        let (gate, up) = (layer.gate, layer.up);
        let norm = s.norm.narrowed(&[gate, up].map(|m| activation_kind(m.dtype)));
        self.norm("ffn_norm", Stage::FfnNorm, count, (layer.ffn_norm, x, norm));
        let op = OpKind::GateUp(GateUp { x: norm, gate, up, out: s.hidden, tiles: s.tile });
        self.push("gate_up", Stage::GateUp, Split::Gemm, count, op);
        let from = (s.hidden, s.hidden_act.float_stride, s.hidden_act);
        self.quantize("quantize_hidden", Stage::Hidden, count, from, &layer.down);
        self.project("ffn_down", Stage::Down, count, s.hidden_act, (layer.down, x));
    }

    fn head(&mut self) {
        let (s, count) = (&self.b.slots, Count::Output);
        let (records, logits, guide) = (s.records, s.logits, s.guide);
        let matrix = self.weights.output;
        let x = s.norm.narrowed(&[activation_kind(matrix.dtype)]);
        let norm = (self.weights.output_norm, s.x_output, x);
        self.norm("output_norm", Stage::OutputNorm, count, norm);
        let tiles = s.tile;
        let head = OpKind::LmHead(LmHead { x, matrix, records, logits, guide, tiles });
        self.push("lm_head", Stage::LmHead, Split::LmHead, count, head);
        let vocab = matrix.rows;
        let (choices, positions, order) = (s.choices, s.positions, s.order);
        let choose =
            OpKind::Choose(Choose { vocab, records, logits, guide, choices, positions, order });
        self.push("choose", Stage::Choose, Split::Sampling, count, choose);
    }

    fn norm(
        &mut self,
        name: &'static str,
        stage: Stage,
        count: Count,
        (weight, from, to): (Span, Slot, Act),
    ) {
        let (epsilon, row) = (self.model.config.epsilon, self.b.slots.row);
        let op = OpKind::Norm(Norm { weight, epsilon, from, to, row });
        self.push(name, stage, Split::Other, count, op);
    }

    /// Quantizes rows for a matrix; float ones read them as they are.
    fn quantize(
        &mut self,
        name: &'static str,
        stage: Stage,
        count: Count,
        (from, stride, to): (Slot, usize, Act),
        matrix: &MatrixPlan,
    ) {
        let kind = activation_kind(matrix.dtype);
        if kind != ActivationKind::Float {
            let op = OpKind::Quantize(Quantize { from, stride, to: to.narrowed(&[kind]) });
            self.push(name, stage, Split::Other, count, op);
        }
    }

    /// Adds the products of one matrix to the residual stream.
    fn project(
        &mut self,
        name: &'static str,
        stage: Stage,
        count: Count,
        x: Act,
        (matrix, out): (MatrixPlan, Slot),
    ) {
        let x = x.narrowed(&[activation_kind(matrix.dtype)]);
        let parts = vec![Part { matrix, out, first_item: 0, kv: None }];
        let op = OpKind::Project(Project { x, parts, add: true, tile: self.b.slots.tile });
        self.push(name, stage, Split::Gemm, count, op);
    }
}
