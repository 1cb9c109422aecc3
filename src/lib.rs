//! dllm-rt runs masked-diffusion language models from GGUF files.
#![forbid(unsafe_code)]

pub mod denoise;
pub mod gguf;
pub mod sample;
