//! The library behind the program of the same name; its README follows.
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod demo;
pub mod denoise;
pub mod device;
pub mod engine;
pub mod error;
pub mod gguf;
pub mod model;
pub mod packed;
pub mod plan;
pub mod repack;
pub mod sample;
pub mod step;
pub mod synth;
pub mod team;
pub mod vocab;

pub use denoise::{Canvas, Schedule};
pub use device::Device;
pub use dllm_arena::count::peak_rss_bytes;
pub use dllm_arena::{CountingAllocator, Lock, available_bytes, lock_process};
pub use engine::{Engine, Options};
pub use error::Error;
pub use model::Model;
pub use plan::{Limits, Plan};
