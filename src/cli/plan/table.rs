//! A plan as a table for people and as JSON.

use crate::cli::model::ModelSource;
use dllm_arena::{Bytes, available_bytes};
use dllm_rt::Limits;
use dllm_rt::backend::cpu::{Buffer, Op, Plan, WeightKind, WeightPlan};
use dllm_rt::model::Config;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A plan with all that is printed of it.
#[derive(Debug, Serialize)]
pub struct Table<'a> {
    model: String,
    arch: &'static str,
    limits: Capacity<'a>,
    weights: Weights<'a>,
    buffers: &'a [Buffer],
    ops: &'a [Op],
    weight_bytes: usize,
    buffer_bytes: usize,
    total_bytes: usize,
    available_bytes: Option<usize>,
    fits: bool,
}

#[derive(Debug, Serialize)]
struct Capacity<'a> {
    row_capacity: usize,
    #[serde(flatten)]
    limits: &'a Limits,
}

#[derive(Debug, Serialize)]
struct Weights<'a> {
    kinds: BTreeMap<&'static str, Total>,
    entries: Vec<Entry<'a>>,
}

#[derive(Debug, Default, Serialize)]
struct Total {
    count: usize,
    bytes: usize,
}

/// Bytes and offsets count from the start of the arena.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    name: &'a str,
    kind: &'static str,
    r#type: &'static str,
    rows: usize,
    cols: usize,
    offset: usize,
    bytes: usize,
}

impl<'a> Entry<'a> {
    fn new(weight: &'a WeightPlan, rows: usize, config: &Config) -> Entry<'a> {
        let table_cols = config.rope.dimensions / 2;
        let (kind, r#type, rows, cols) = match &weight.kind {
            WeightKind::Embedding(m) => ("embedding", m.dtype.name(), m.rows, m.cols),
            WeightKind::Panels(m) => ("panels", m.dtype.name(), m.rows, m.cols),
            WeightKind::Vector(vector) => ("vector", "F32", 1, vector.len),
            WeightKind::RopeCos | WeightKind::RopeSin => ("rope", "F32", rows, table_cols),
        };
        let (offset, bytes) = (weight.span.offset, weight.span.bytes);
        Entry { name: &weight.name, kind, r#type, rows, cols, offset, bytes }
    }
}

impl<'a> Table<'a> {
    /// The table of a plan of the model that `source` names.
    pub fn new(plan: &'a Plan, config: &Config, source: ModelSource<'_>) -> Table<'a> {
        let available = available_bytes();
        let mut kinds: BTreeMap<&'static str, Total> = BTreeMap::new();
        let entry = |weight| Entry::new(weight, plan.limits.rows, config);
        let entries: Vec<Entry<'_>> = plan.weights.iter().map(entry).collect();
        for entry in &entries {
            let total = kinds.entry(entry.kind).or_default();
            total.count += 1;
            total.bytes += entry.bytes;
        }
        Table {
            model: source.to_string(),
            arch: config.architecture.name(),
            limits: Capacity { row_capacity: plan.row_capacity, limits: &plan.limits },
            weights: Weights { kinds, entries },
            buffers: &plan.buffers,
            ops: &plan.ops,
            weight_bytes: plan.fixed_bytes,
            buffer_bytes: plan.total_bytes - plan.fixed_bytes,
            total_bytes: plan.total_bytes,
            available_bytes: available,
            fits: available.is_none_or(|available| plan.total_bytes <= available),
        }
    }

    /// Writes the table for people.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let limits = self.limits.limits;
        let Limits { rows, output_rows, sequences, threads, .. } = limits;
        let kept = match (limits.logits, limits.guidance) {
            (_, true) => ", guidance",
            (true, false) => ", whole rows of logits",
            (false, false) => "",
        };
        let cache = if limits.kv_cache { ", a KV cache" } else { "" };
        writeln!(out, "{} ({})", self.model, self.arch)?;
        let sequences = match sequences {
            1 => String::new(),
            _ => format!("{sequences} sequences of "),
        };
        writeln!(
            out,
            "{sequences}{rows} rows, {output_rows} output rows, {threads} threads{kept}{cache}\n"
        )?;
        self.write_ops(out)?;
        writeln!(out, "\nweights")?;
        for (kind, total) in &self.weights.kinds {
            writeln!(out, "  {kind:<20} {:>5} {:>15}", total.count, total.bytes)?;
        }
        writeln!(out, "\n{:<28} {:>15} {:>15}  live in stages", "buffers", "bytes", "offset")?;
        for alike in self.buffers.chunk_by(|a, b| a.name == b.name) {
            let Buffer { name, offset, live, .. } = &alike[0];
            // A KV cache has a buffer a layer.
            let name = match alike.len() {
                1 => name.clone(),
                count => format!("{name}, {count} times"),
            };
            let bytes: usize = alike.iter().map(|buffer| buffer.bytes).sum();
            writeln!(out, "  {name:<26} {bytes:>15} {offset:>15}  {}..{}", live.start, live.end)?;
        }
        self.write_totals(out)
    }

    /// The operators, layers that are alike as one.
    fn write_ops(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{:<28} {:>8} {:>8}  time counts as", "operators", "rows", "items")?;
        let mut layers: Vec<&[Op]> = self.ops.chunk_by(|a, b| a.layer == b.layer).collect();
        while let Some(first) = layers.first().copied() {
            let alike = layers.iter().take_while(|layer| is_alike(first, layer)).count().max(1);
            match (first.first().and_then(|op| op.layer), alike) {
                (None, _) => {}
                (Some(layer), 1) => writeln!(out, "layer {layer}")?,
                (Some(layer), _) => writeln!(out, "layers {layer} to {}", layer + alike - 1)?,
            }
            for Op { name, layer, rows, items, split, .. } in first {
                let name = format!("{}{name}", if layer.is_some() { "  " } else { "" });
                let split = split.name();
                writeln!(out, "{name:<28} {rows:>8} {items:>8}  {split}")?;
            }
            layers.drain(..alike);
        }
        Ok(())
    }

    fn write_totals(&self, out: &mut impl Write) -> io::Result<()> {
        let rows = [
            ("weights", self.weight_bytes),
            ("buffers (some share memory)", self.buffer_bytes),
            ("arena", self.total_bytes),
        ];
        writeln!(out)?;
        for (name, bytes) in rows {
            writeln!(out, "{name:<28} {bytes:>15}  {}", Bytes(bytes))?;
        }
        let Some(available) = self.available_bytes else {
            return writeln!(out, "the system does not say how much memory is available");
        };
        writeln!(out, "{:<28} {available:>15}  {}", "available", Bytes(available))?;
        writeln!(out, "{}", if self.fits { "fits" } else { "DOES NOT FIT" })
    }
}

/// Whether two layers have the same operators.
fn is_alike(a: &[Op], b: &[Op]) -> bool {
    let shown = |op: &Op| (op.name, op.stage, op.split, op.count, op.rows, op.items);
    let same = |(a, b): (&Op, &Op)| a.layer.is_some() && b.layer.is_some() && shown(a) == shown(b);
    a.len() == b.len() && a.iter().zip(b).all(same)
}
