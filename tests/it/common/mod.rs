//! What several tests need.

pub mod gguf_writer;
pub mod models;
pub mod tiny;
