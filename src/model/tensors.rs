//! Tensor names to handles whose types and shapes were checked.

use super::{Config, Fault, Model};
use crate::gguf::{Gguf, TensorInfo};
use dllm_cpu::dtype::Dtype;
use dllm_cpu::gemm::{ActivationKind, activation_kind};

/// A matrix of the file: `rows` outputs, `cols` inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Index in the file's tensor table.
    pub tensor: usize,
    /// The type.
    pub dtype: Dtype,
    /// Output rows.
    pub rows: usize,
    /// Input columns, a whole number of the type's blocks.
    pub cols: usize,
}

/// A vector of the file, used as f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Index in the file's tensor table.
    pub tensor: usize,
    /// The type.
    pub dtype: Dtype,
    /// Values.
    pub len: usize,
}

/// A matrix and its optional bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// The matrix.
    pub matrix: Matrix,
    /// `[rows]`
    pub bias: Option<Vector>,
}

impl Linear {
    /// The form of activations that it multiplies.
    pub fn activation_kind(&self) -> ActivationKind {
        activation_kind(self.matrix.dtype)
    }
}

/// One layer.
#[derive(Clone, Debug)]
pub struct Layer {
    /// `[width]`
    pub attn_norm: Vector,
    /// `[heads * head_width][width]`
    pub q: Linear,
    /// `[kv_heads * head_width][width]`
    pub k: Linear,
    /// `[kv_heads * head_width][width]`
    pub v: Linear,
    /// `[width][heads * head_width]`
    pub o: Linear,
    /// `[width]`
    pub ffn_norm: Vector,
    /// `[ff_width][width]`
    pub gate: Linear,
    /// `[ff_width][width]`
    pub up: Linear,
    /// `[width][ff_width]`
    pub down: Linear,
}

pub(super) fn find(gguf: &Gguf, config: Config) -> Result<Model, Fault> {
    let finder = Finder { gguf };
    let (width, ff, vocab) = (config.width, config.ff_width, config.vocab);
    let embedding = finder.matrix("token_embd.weight", vocab, width)?;
    let output = if gguf.tensor("output.weight").is_some() {
        finder.linear("output", vocab, width)?
    } else {
        Linear { matrix: embedding, bias: finder.bias("output", vocab)? }
    };
    let rope_factors = match gguf.tensor("rope_freqs.weight") {
        Some(_) => Some(finder.vector("rope_freqs.weight", config.rope.dimensions / 2)?),
        None => None,
    };
    let (q_cols, kv_cols) = (config.heads * config.head_width, config.kv_heads * config.head_width);
    let layer = |i: usize| -> Result<Layer, Fault> {
        let name = |part: &str| format!("blk.{i}.{part}");
        Ok(Layer {
            attn_norm: finder.vector(&name("attn_norm.weight"), width)?,
            q: finder.linear(&name("attn_q"), q_cols, width)?,
            k: finder.linear(&name("attn_k"), kv_cols, width)?,
            v: finder.linear(&name("attn_v"), kv_cols, width)?,
            o: finder.linear(&name("attn_output"), width, q_cols)?,
            ffn_norm: finder.vector(&name("ffn_norm.weight"), width)?,
            gate: finder.linear(&name("ffn_gate"), ff, width)?,
            up: finder.linear(&name("ffn_up"), ff, width)?,
            down: finder.linear(&name("ffn_down"), width, ff)?,
        })
    };
    let layers = (0..config.layers).map(layer).collect::<Result<_, _>>()?;
    let output_norm = finder.vector("output_norm.weight", width)?;
    Ok(Model { config, embedding, output_norm, output, rope_factors, layers })
}

struct Finder<'a> {
    gguf: &'a Gguf,
}

impl Finder<'_> {
    fn info(&self, name: &str, shape: &[usize]) -> Result<(usize, Dtype), Fault> {
        let missing = || Fault::MissingTensor { name: name.into() };
        let tensor = self.gguf.tensor_index(name).ok_or_else(missing)?;
        let info = &self.gguf.tensors()[tensor];
        let found = trimmed(info);
        let mut expected = shape.to_vec();
        while expected.len() > 1 && expected.last() == Some(&1) {
            expected.pop();
        }
        if !found.iter().copied().eq(expected.iter().map(|n| *n as u64)) {
            return Err(Fault::Shape { name: name.into(), expected, found });
        }
        let unknown = || Fault::Type { name: name.into(), found: info.type_name().into() };
        Ok((tensor, Dtype::from_ggml(info.type_id).ok_or_else(unknown)?))
    }

    fn matrix(&self, name: &str, rows: usize, cols: usize) -> Result<Matrix, Fault> {
        let (tensor, dtype) = self.info(name, &[cols, rows])?;
        if dtype.row_bytes(cols).is_none() {
            let block = dtype.block_weights();
            return Err(Fault::Block { name: name.into(), dtype: dtype.name(), cols, block });
        }
        Ok(Matrix { tensor, dtype, rows, cols })
    }

    fn vector(&self, name: &str, len: usize) -> Result<Vector, Fault> {
        let (tensor, dtype) = self.info(name, &[len])?;
        if !dtype.is_float() {
            return Err(Fault::Type { name: name.into(), found: dtype.name().into() });
        }
        Ok(Vector { tensor, dtype, len })
    }

    fn linear(&self, name: &str, rows: usize, cols: usize) -> Result<Linear, Fault> {
        let matrix = self.matrix(&format!("{name}.weight"), rows, cols)?;
        Ok(Linear { matrix, bias: self.bias(name, rows)? })
    }

    fn bias(&self, name: &str, rows: usize) -> Result<Option<Vector>, Fault> {
        let name = format!("{name}.bias");
        match self.gguf.tensor(&name) {
            Some(_) => self.vector(&name, rows).map(Some),
            None => Ok(None),
        }
    }
}

/// The shape without trailing ones, but at least one dimension.
fn trimmed(info: &TensorInfo) -> Vec<u64> {
    let mut shape = info.shape().to_vec();
    while shape.len() > 1 && shape.last() == Some(&1) {
        shape.pop();
    }
    shape
}
