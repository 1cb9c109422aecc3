//! dllm-rt runs masked-diffusion language models from GGUF files.
#![forbid(unsafe_code)]

pub mod denoise;
pub mod device;
pub mod engine;
pub mod error;
pub mod gguf;
pub mod model;
pub mod plan;
pub mod repack;
pub mod sample;
pub mod vocab;
