//! Which tensors a file has, and of which types.

use super::{Fault, Recipe, Shape};
use crate::model::Architecture;
use dllm_cpu::dtype::Dtype;
use std::fmt;
use std::str::FromStr;

/// The types of the matrices. Norms and biases are F32 always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// One for all.
    One(Dtype),
    /// As llama.cpp's quantizer mixes them for `Q4_K_M`: Q6_K for the LM head and, in half of the
    /// layers, for `attn_v` and `ffn_down`; Q4_K for the rest.
    Q4KM,
}

impl Types {
    /// The type of the embedding.
    pub fn embedding(self) -> Dtype {
        self.plain()
    }

    /// The type of the LM head.
    pub fn output(self) -> Dtype {
        self.finer(true)
    }

    /// The type of `attn_v` and `ffn_down` in a layer.
    pub fn sensitive(self, layer: usize, layers: usize) -> Dtype {
        self.finer(uses_more_bits(layer, layers))
    }

    /// The type of the other matrices.
    pub fn plain(self) -> Dtype {
        self.finer(false)
    }

    /// Every type in use.
    pub fn dtypes(self) -> Vec<Dtype> {
        match self {
            Types::One(dtype) => vec![dtype],
            Types::Q4KM => vec![Dtype::Q4_K, Dtype::Q6_K],
        }
    }

    fn finer(self, finer: bool) -> Dtype {
        match self {
            Types::One(dtype) => dtype,
            Types::Q4KM if finer => Dtype::Q6_K,
            Types::Q4KM => Dtype::Q4_K,
        }
    }

    /// `general.file_type`: the number that llama.cpp gives to a file of mostly this type.
    pub(super) fn file_type(self) -> u32 {
        match self {
            Types::Q4KM => 15,
            Types::One(Dtype::F32) => 0,
            Types::One(Dtype::F16) => 1,
            Types::One(Dtype::Q4_0) => 2,
            Types::One(Dtype::Q4_1) => 3,
            Types::One(Dtype::Q8_0) => 7,
            Types::One(Dtype::Q5_0) => 8,
            Types::One(Dtype::Q5_1) => 9,
            Types::One(Dtype::Q2_K) => 10,
            Types::One(Dtype::Q3_K) => 11,
            Types::One(Dtype::Q4_K) => 14,
            Types::One(Dtype::Q5_K) => 16,
            Types::One(Dtype::Q6_K) => 18,
            Types::One(Dtype::IQ4_NL) => 25,
            Types::One(Dtype::IQ4_XS) => 30,
            Types::One(Dtype::BF16) => 32,
        }
    }
}

/// Which layers get the finer type: the first and last eighth and every third one between. The
/// rule, with its rounding, is that of llama.cpp's quantizer.
fn uses_more_bits(layer: usize, layers: usize) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}

impl FromStr for Types {
    type Err = Fault;

    /// `Q4_K_M` or the name of a type, in any case.
    fn from_str(name: &str) -> Result<Types, Fault> {
        if name.eq_ignore_ascii_case("Q4_K_M") {
            return Ok(Types::Q4KM);
        }
        let found = Dtype::ALL.into_iter().find(|d| d.name().eq_ignore_ascii_case(name));
        found.map(Types::One).ok_or_else(|| Fault::Types { found: name.into() })
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Types::One(dtype) => f.pad(dtype.name()),
            Types::Q4KM => f.pad("Q4_K_M"),
        }
    }
}

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
pub(super) fn list(recipe: &Recipe) -> Result<Vec<Tensor>, Fault> {
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
    ) -> Result<(), Fault> {
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

    fn matrix(&mut self, name: &str, dtype: Dtype, rows: usize, cols: usize) -> Result<(), Fault> {
        let tensor = format!("{name}.weight");
        let Some(row_bytes) = dtype.row_bytes(cols) else {
            let (dtype, block) = (dtype.name(), dtype.block_weights());
            return Err(Fault::Block { tensor, cols, dtype, block });
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Layers of the published LLaDA-8B and Dream-7B Q4_K_M files that hold Q6_K.
    #[test]
    fn half_of_the_layers_get_more_bits() {
        let finer = |layers| (0..layers).filter(|l| uses_more_bits(*l, layers)).collect::<Vec<_>>();
        assert_eq!(finer(32), [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]);
        assert_eq!(finer(28), [0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 24, 25, 26, 27]);
        assert_eq!(finer(2), [1]);
        assert_eq!(finer(1), [0]);
    }
}
