//! A plan as a table for people and as JSON.

use crate::cli::source::Source;
use dllm_rt::error::Gib;
use dllm_rt::model::Config;
use dllm_rt::plan::{Count, Split, WeightKind, WeightPlan};
use dllm_rt::{Plan, available_bytes};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A plan with all that is printed of it.
#[derive(Debug, Serialize)]
pub struct Table {
    model: String,
    arch: &'static str,
    limits: Limits,
    weights: Weights,
    buffers: Vec<Buffer>,
    ops: Vec<Op>,
    weight_bytes: usize,
    buffer_bytes: usize,
    total_bytes: usize,
    available_bytes: Option<usize>,
    fits: bool,
}

#[derive(Debug, Serialize)]
struct Limits {
    rows: usize,
    row_capacity: usize,
    wanted: usize,
    canvases: usize,
    logits: bool,
    guidance: bool,
    cache: bool,
    threads: usize,
}

#[derive(Debug, Serialize)]
struct Weights {
    kinds: BTreeMap<&'static str, Total>,
    entries: Vec<Entry>,
}

#[derive(Debug, Default, Serialize)]
struct Total {
    count: usize,
    bytes: usize,
}

/// Bytes and offsets count from the start of the arena.
#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    kind: &'static str,
    r#type: &'static str,
    rows: usize,
    cols: usize,
    offset: usize,
    bytes: usize,
}

/// `live`: the first stage of a layer in which the contents matter, and the one after the last.
#[derive(Debug, Serialize)]
struct Buffer {
    name: &'static str,
    layer: Option<usize>,
    offset: usize,
    bytes: usize,
    live: [usize; 2],
}

#[derive(Debug, Serialize, PartialEq, Eq)]
struct Op {
    name: &'static str,
    layer: Option<usize>,
    stage: usize,
    split: &'static str,
    count: &'static str,
    rows: usize,
    items: usize,
}

/// The table of a plan of the model that `source` names.
pub fn table(plan: &Plan, config: &Config, source: Source<'_>) -> Table {
    let available = available_bytes();
    let limits = &plan.limits;
    let mut kinds: BTreeMap<&'static str, Total> = BTreeMap::new();
    let entries: Vec<Entry> = plan.weights.iter().map(|w| entry(w, limits.rows, config)).collect();
    for entry in &entries {
        let total = kinds.entry(entry.kind).or_default();
        total.count += 1;
        total.bytes += entry.bytes;
    }
    Table {
        model: source.to_string(),
        arch: config.architecture.name(),
        limits: Limits {
            rows: limits.rows,
            row_capacity: plan.row_capacity,
            wanted: limits.wanted,
            canvases: limits.canvases,
            logits: limits.logits,
            guidance: limits.guidance,
            cache: limits.cache,
            threads: limits.threads,
        },
        weights: Weights { kinds, entries },
        buffers: buffers(plan),
        ops: ops(plan, config),
        weight_bytes: plan.fixed_bytes,
        buffer_bytes: plan.total_bytes - plan.fixed_bytes,
        total_bytes: plan.total_bytes,
        available_bytes: available,
        fits: available.is_none_or(|available| plan.total_bytes <= available),
    }
}

fn entry(weight: &WeightPlan, rows: usize, config: &Config) -> Entry {
    let table_cols = config.rope.dimensions / 2;
    let (kind, r#type, rows, cols) = match &weight.kind {
        WeightKind::Embedding(m) => ("embedding", m.dtype.name(), m.rows, m.cols),
        WeightKind::Panels(m) => ("panels", m.dtype.name(), m.rows, m.cols),
        WeightKind::Vector(vector) => ("vector", "F32", 1, vector.len),
        WeightKind::RopeCos | WeightKind::RopeSin => ("rope", "F32", rows, table_cols),
    };
    let (offset, bytes) = (weight.span.offset, weight.span.bytes);
    Entry { name: weight.name.clone(), kind, r#type, rows, cols, offset, bytes }
}

fn buffers(plan: &Plan) -> Vec<Buffer> {
    let buffer = |b: &dllm_rt::plan::Buffer| Buffer {
        name: b.name,
        layer: b.layer,
        offset: b.span.offset,
        bytes: b.bytes,
        live: [b.live.start, b.live.end],
    };
    plan.buffers.iter().map(buffer).collect()
}

fn ops(plan: &Plan, config: &Config) -> Vec<Op> {
    let op = |op: &dllm_rt::plan::Op| Op {
        name: op.name,
        layer: op.layer,
        stage: op.stage,
        split: match op.split {
            Split::Gemm => "gemm",
            Split::Attention => "attention",
            Split::LmHead => "lm_head",
            Split::Sampling => "sampling",
            Split::Other => "other",
        },
        count: match op.count {
            Count::Canvas => "canvas",
            Count::Wanted => "wanted",
        },
        rows: plan.rows_of(op),
        items: plan.items_of(op, config),
    };
    plan.ops.iter().map(op).collect()
}

impl Table {
    /// Writes the table for people.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Limits { rows, wanted, canvases, logits, guidance, cache, threads, .. } = self.limits;
        let kept = match (logits, guidance) {
            (_, true) => ", guidance",
            (true, false) => ", whole rows of logits",
            (false, false) => "",
        };
        let cache = if cache { ", kept keys and values" } else { "" };
        writeln!(out, "{} ({})", self.model, self.arch)?;
        let canvases =
            if canvases > 1 { format!("{canvases} canvases of ") } else { String::new() };
        writeln!(out, "{canvases}{rows} rows, {wanted} wanted, {threads} threads{kept}{cache}\n")?;
        self.write_ops(out)?;
        writeln!(out, "\nweights")?;
        for (kind, total) in &self.weights.kinds {
            writeln!(out, "  {kind:<20} {:>5} {:>15}", total.count, total.bytes)?;
        }
        writeln!(out, "\n{:<28} {:>15} {:>15}  live in stages", "buffers", "bytes", "offset")?;
        for alike in self.buffers.chunk_by(|a, b| a.name == b.name) {
            let Buffer { name, offset, live: [first, end], .. } = &alike[0];
            // Kept keys and values have a buffer a layer.
            let name = match alike.len() {
                1 => (*name).to_owned(),
                count => format!("{name}, {count} times"),
            };
            let bytes: usize = alike.iter().map(|buffer| buffer.bytes).sum();
            writeln!(out, "  {name:<26} {bytes:>15} {offset:>15}  {first}..{end}")?;
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
            writeln!(out, "{name:<28} {bytes:>15}  {}", Gib(bytes))?;
        }
        let Some(available) = self.available_bytes else {
            return writeln!(out, "the system does not say how much memory is available");
        };
        writeln!(out, "{:<28} {available:>15}  {}", "available", Gib(available))?;
        writeln!(out, "{}", if self.fits { "fits" } else { "DOES NOT FIT" })
    }
}

/// Whether two layers have the same operators.
fn is_alike(a: &[Op], b: &[Op]) -> bool {
    let same = |(a, b): (&Op, &Op)| {
        a.layer.is_some()
            && b.layer.is_some()
            && Op { layer: None, ..*a } == Op { layer: None, ..*b }
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}
