//! Metadata to a configuration that cannot be wrong, and tensor names to checked handles.

mod config;
mod error;
mod network;

pub use config::{Architecture, Config, RopeConfig};
pub(crate) use config::{CONTEXT_MAX, HEAD_ALIGN, LAYERS_MAX, WIDTH_ALIGN, WIDTH_MAX};
pub use dllm_cpu::ops::RopeStyle;
pub use error::Error;
pub use network::{Layer, Linear, Matrix, Network, Vector};
