//! Which tensors a file has, and of which types.

use super::error::Error;
use super::recipe::{Recipe, Shape, Types};
use crate::model::Architecture;
use dllm_cpu::dtype::Dtype;

/// What a tensor is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Weights,
    Norm,
    Bias,
}

/// A tensor of the file.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub name: String,
    pub dtype: Dtype,
    pub rows: usize,
    pub cols: usize,
    pub row_bytes: usize,
    pub content: Content,
}

impl Tensor {
    /// Bytes of its data; `None` on overflow.
    pub fn bytes(&self) -> Option<u64> {
        self.rows.checked_mul(self.row_bytes).map(|bytes| bytes as u64)
    }
}

/// All tensors, in the order of the file.
pub(super) fn list(recipe: &Recipe) -> Result<Vec<Tensor>, Error> {
    let Recipe { architecture, shape, types, .. } = recipe;
    let mut list = List(Vec::new());
    list.matrix("token_embd", types.embedding(), shape.vocab, shape.width)?;
    for layer in 0..shape.layers {
        list.layer(*architecture, shape, *types, layer)?;
    }
    list.vector("output_norm.weight", shape.width, Content::Norm);
    list.matrix("output", types.output(), shape.vocab, shape.width)?;
    Ok(list.0)
}

struct List(Vec<Tensor>);

impl List {
    fn layer(
        &mut self,
        architecture: Architecture,
        shape: &Shape,
        types: Types,
        layer: usize,
    ) -> Result<(), Error> {
        let Shape { width, ff_width, .. } = *shape;
        let (plain, sensitive) = (types.plain(), types.sensitive(layer, shape.layers));
        let name = |part: &str| format!("blk.{layer}.{part}");
        self.vector(&name("attn_norm.weight"), width, Content::Norm);
        for (part, dtype, rows) in [
            ("attn_q", plain, width),
            ("attn_k", plain, shape.kv_width()),
            ("attn_v", sensitive, shape.kv_width()),
        ] {
            self.matrix(&name(part), dtype, rows, width)?;
            if architecture == Architecture::Dream {
                self.vector(&name(&format!("{part}.bias")), rows, Content::Bias);
            }
        }
        self.matrix(&name("attn_output"), plain, width, width)?;
        self.vector(&name("ffn_norm.weight"), width, Content::Norm);
        self.matrix(&name("ffn_gate"), plain, ff_width, width)?;
        self.matrix(&name("ffn_up"), plain, ff_width, width)?;
        self.matrix(&name("ffn_down"), sensitive, width, ff_width)
    }

    fn matrix(&mut self, name: &str, dtype: Dtype, rows: usize, cols: usize) -> Result<(), Error> {
        let tensor = format!("{name}.weight");
        let Some(row_bytes) = dtype.row_bytes(cols) else {
            let (dtype, block) = (dtype.name(), dtype.block_weights());
            return Err(Error::Block { tensor, cols, dtype, block });
        };
        let content = Content::Weights;
        self.0.push(Tensor { name: tensor, dtype, rows, cols, row_bytes, content });
        Ok(())
    }

    fn vector(&mut self, name: &str, cols: usize, content: Content) {
        let (dtype, row_bytes) = (Dtype::F32, cols * size_of::<f32>());
        self.0.push(Tensor { name: name.into(), dtype, rows: 1, cols, row_bytes, content });
    }
}
