//! Metadata to a configuration that cannot be wrong, and tensor names to checked handles.

mod config;
mod fault;
mod tensors;

pub use config::{Architecture, Config, RopeConfig};
pub use dllm_cpu::ops::RopeStyle;
pub use fault::Fault;
pub use tensors::{Layer, Linear, Matrix, Vector};

use crate::gguf::Gguf;

/// A supported model: its configuration and where its tensors are in the file.
#[derive(Clone, Debug)]
pub struct Model {
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

impl Model {
    /// Reads the configuration and finds every tensor.
    ///
    /// # Errors
    /// [`Fault`] naming the key or tensor that is missing, of a wrong type or shape, or not
    /// supported.
    pub fn from_gguf(gguf: &Gguf) -> Result<Model, Fault> {
        let config = Config::from_gguf(gguf)?;
        tensors::find(gguf, config)
    }
}
