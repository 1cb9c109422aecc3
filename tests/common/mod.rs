//! What several tests need.

pub mod gguf_writer;
pub mod tiny;
