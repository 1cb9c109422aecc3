//! The read-only part of the arena: packed matrices, embedding rows, vectors, rotary tables.

use super::keys::Rotation;
use crate::model::{Linear, Matrix, Network, Vector};
use dllm_arena::{ALIGN, Partition, Span};
use dllm_cpu::dtype::{Dtype, PANEL_ROWS};
use dllm_cpu::pack::panel_bytes;

/// What a weight entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightKind {
    /// Rows as in the file, decoded on demand.
    Embedding(Matrix),
    /// Panels of 16 rows, see `dllm_cpu::pack`.
    Panels(Matrix),
    /// f32 values.
    Vector(Vector),
    /// f32 `[rows][rope dimensions / 2]`: cosines.
    RopeCos,
    /// f32 `[rows][rope dimensions / 2]`: sines.
    RopeSin,
}

/// One entry of the read-only part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightPlan {
    /// The tensor's name in the file, or the table's.
    pub name: String,
    /// What it holds.
    pub kind: WeightKind,
    /// Where.
    pub span: Span,
}

/// A packed matrix as an operator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixPlan {
    pub span: Span,
    pub dtype: Dtype,
    pub rows: usize,
    pub cols: usize,
    /// Bytes of one panel of 16 rows.
    pub panel_bytes: usize,
    /// f32 `[rows]` to add to the outputs.
    pub bias: Option<Span>,
}

impl MatrixPlan {
    /// Panels, the last one padded with zero rows.
    pub fn panels(&self) -> usize {
        self.rows.div_ceil(PANEL_ROWS)
    }

    /// Of row-major outputs 16 columns of each of `rows` rows an item: a cache line each.
    pub(super) fn panel_columns(&self, rows: usize) -> Partition {
        let column_bytes = 4 * PANEL_ROWS;
        Partition::columns(self.panels(), column_bytes, self.panels() * column_bytes, rows)
    }
}

/// The spans of one layer.
#[derive(Clone, Debug)]
pub(super) struct LayerWeights {
    pub attn_norm: Span,
    pub q: MatrixPlan,
    pub k: MatrixPlan,
    pub v: MatrixPlan,
    pub o: MatrixPlan,
    pub ffn_norm: Span,
    pub gate: MatrixPlan,
    pub up: MatrixPlan,
    pub down: MatrixPlan,
}

/// All spans.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    pub entries: Vec<WeightPlan>,
    pub bytes: usize,
    pub embedding: Span,
    pub rotation: Rotation,
    pub output_norm: Span,
    pub output: MatrixPlan,
    pub layers: Vec<LayerWeights>,
}

/// Lays out the weights of `model` and rotary tables for `rows` positions; `None` on overflow.
pub(super) fn plan(model: &Network, rows: usize) -> Option<Weights> {
    let mut builder = Builder::default();
    let table_bytes = rows.checked_mul(model.config.rope.dimensions / 2 * size_of::<f32>())?;
    let embedding = builder.embedding(model.embedding)?;
    let rope = &model.config.rope;
    let rotation = Rotation {
        cos: builder.push("rope.cos", WeightKind::RopeCos, table_bytes)?,
        sin: builder.push("rope.sin", WeightKind::RopeSin, table_bytes)?,
        dimensions: rope.dimensions,
        style: rope.style,
    };
    let mut layers = Vec::with_capacity(model.layers.len());
    for (i, layer) in model.layers.iter().enumerate() {
        let name = |part: &str| format!("blk.{i}.{part}");
        layers.push(LayerWeights {
            attn_norm: builder.vector(&name("attn_norm.weight"), layer.attn_norm)?,
            q: builder.linear(&name("attn_q"), &layer.q)?,
            k: builder.linear(&name("attn_k"), &layer.k)?,
            v: builder.linear(&name("attn_v"), &layer.v)?,
            o: builder.linear(&name("attn_output"), &layer.o)?,
            ffn_norm: builder.vector(&name("ffn_norm.weight"), layer.ffn_norm)?,
            gate: builder.linear(&name("ffn_gate"), &layer.gate)?,
            up: builder.linear(&name("ffn_up"), &layer.up)?,
            down: builder.linear(&name("ffn_down"), &layer.down)?,
        });
    }
    let output_norm = builder.vector("output_norm.weight", model.output_norm)?;
    let output = builder.linear("output", &model.output)?;
    Some(Weights {
        entries: builder.entries,
        bytes: builder.bytes,
        embedding,
        rotation,
        output_norm,
        output,
        layers,
    })
}

#[derive(Default)]
struct Builder {
    entries: Vec<WeightPlan>,
    bytes: usize,
}

impl Builder {
    fn push(&mut self, name: &str, kind: WeightKind, bytes: usize) -> Option<Span> {
        let span = Span { offset: self.bytes, bytes };
        let end = self.bytes.checked_add(bytes)?;
        self.bytes = end.checked_next_multiple_of(ALIGN)?;
        self.entries.push(WeightPlan { name: name.into(), kind, span });
        Some(span)
    }

    fn embedding(&mut self, matrix: Matrix) -> Option<Span> {
        let bytes = matrix.dtype.row_bytes(matrix.cols)?.checked_mul(matrix.rows)?;
        self.push("token_embd.weight", WeightKind::Embedding(matrix), bytes)
    }

    fn vector(&mut self, name: &str, vector: Vector) -> Option<Span> {
        let bytes = vector.len.checked_mul(size_of::<f32>())?;
        self.push(name, WeightKind::Vector(vector), bytes)
    }

    fn linear(&mut self, name: &str, linear: &Linear) -> Option<MatrixPlan> {
        let Matrix { dtype, rows, cols, .. } = linear.matrix;
        let panel_bytes = panel_bytes(dtype, cols);
        let bytes = rows.div_ceil(PANEL_ROWS).checked_mul(panel_bytes)?;
        let kind = WeightKind::Panels(linear.matrix);
        let span = self.push(&format!("{name}.weight"), kind, bytes)?;
        let bias = match linear.bias {
            Some(bias) => Some(self.vector(&format!("{name}.bias"), bias)?),
            None => None,
        };
        Some(MatrixPlan { span, dtype, rows, cols, panel_bytes, bias })
    }
}
