//! Tensor names to handles whose types and shapes were checked.

use super::config::Config;
use super::error::Error;
use crate::gguf::Gguf;
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

/// A supported model: its configuration and where its tensors are in the file.
#[derive(Clone, Debug)]
pub struct Network {
    /// Sizes and constants.
    pub config: Config,
    /// Token embedding, `[vocabulary][width]`.
    pub embedding: Matrix,
    /// f32 `[width]`: the normalization before the LM head.
    pub output_norm: Vector,
    /// The LM head; the embedding itself in files without `output.weight`.
    pub output: Linear,
    /// Divisors of the rotary frequencies, `[rope dimensions / 2]`, in the files that have them.
    pub rope_factors: Option<Vector>,
    /// All layers.
    pub layers: Vec<Layer>,
}

impl Network {
    /// Reads the configuration and finds every tensor.
    ///
    /// # Errors
    /// [`Error`] naming the key or tensor that is missing, of a wrong type or shape, or not
    /// supported.
    pub fn from_gguf(gguf: &Gguf) -> Result<Network, Error> {
        let config = Config::from_gguf(gguf)?;
        let find = Finder { gguf };
        let (width, vocab) = (config.width, config.vocab);
        let embedding = find.matrix("token_embd.weight", vocab, width)?;
        let output = if gguf.tensor("output.weight").is_some() {
            find.linear("output", vocab, width)?
        } else {
            Linear { matrix: embedding, bias: find.opt_vector("output.bias", vocab)? }
        };
        let rope_factors = find.opt_vector("rope_freqs.weight", config.rope.dimensions / 2)?;
        let layers = (0..config.layers).map(|i| find.layer(i, &config));
        let layers = layers.collect::<Result<_, _>>()?;
        let output_norm = find.vector("output_norm.weight", width)?;
        Ok(Network { config, embedding, output_norm, output, rope_factors, layers })
    }
}

struct Finder<'a> {
    gguf: &'a Gguf,
}

impl Finder<'_> {
    fn layer(&self, index: usize, config: &Config) -> Result<Layer, Error> {
        let &Config { width, ff_width, heads, kv_heads, head_width, .. } = config;
        let (q_cols, kv_cols) = (heads * head_width, kv_heads * head_width);
        let name = |part: &str| format!("blk.{index}.{part}");
        Ok(Layer {
            attn_norm: self.vector(&name("attn_norm.weight"), width)?,
            q: self.linear(&name("attn_q"), q_cols, width)?,
            k: self.linear(&name("attn_k"), kv_cols, width)?,
            v: self.linear(&name("attn_v"), kv_cols, width)?,
            o: self.linear(&name("attn_output"), width, q_cols)?,
            ffn_norm: self.vector(&name("ffn_norm.weight"), width)?,
            gate: self.linear(&name("ffn_gate"), ff_width, width)?,
            up: self.linear(&name("ffn_up"), ff_width, width)?,
            down: self.linear(&name("ffn_down"), width, ff_width)?,
        })
    }

    fn info(&self, name: &str, shape: &[usize]) -> Result<(usize, Dtype), Error> {
        let missing = || Error::MissingTensor { name: name.into() };
        let tensor = self.gguf.tensor_index(name).ok_or_else(missing)?;
        let info = &self.gguf.tensors()[tensor];
        let (found, expected) = (trimmed(info.shape()), trimmed(shape));
        if !found.iter().copied().eq(expected.iter().map(|n| *n as u64)) {
            return Err(Error::Shape { name: name.into(), expected, found });
        }
        let unknown = || Error::Type { name: name.into(), found: info.type_name().into() };
        Ok((tensor, Dtype::from_ggml(info.type_id).ok_or_else(unknown)?))
    }

    fn matrix(&self, name: &str, rows: usize, cols: usize) -> Result<Matrix, Error> {
        let (tensor, dtype) = self.info(name, &[cols, rows])?;
        if dtype.row_bytes(cols).is_none() {
            let block = dtype.block_weights();
            return Err(Error::Block { name: name.into(), dtype: dtype.name(), cols, block });
        }
        Ok(Matrix { tensor, dtype, rows, cols })
    }

    fn vector(&self, name: &str, len: usize) -> Result<Vector, Error> {
        let (tensor, dtype) = self.info(name, &[len])?;
        if !dtype.is_float() {
            return Err(Error::Type { name: name.into(), found: dtype.name().into() });
        }
        Ok(Vector { tensor, dtype, len })
    }

    fn linear(&self, name: &str, rows: usize, cols: usize) -> Result<Linear, Error> {
        let matrix = self.matrix(&format!("{name}.weight"), rows, cols)?;
        Ok(Linear { matrix, bias: self.opt_vector(&format!("{name}.bias"), rows)? })
    }

    fn opt_vector(&self, name: &str, len: usize) -> Result<Option<Vector>, Error> {
        self.gguf.tensor(name).map(|_| self.vector(name, len)).transpose()
    }
}

/// The shape without trailing ones, but at least one dimension.
fn trimmed<T: Copy + PartialEq + From<u8>>(shape: &[T]) -> Vec<T> {
    let mut shape = shape.to_vec();
    while shape.len() > 1 && shape.last() == Some(&T::from(1)) {
        shape.pop();
    }
    shape
}
