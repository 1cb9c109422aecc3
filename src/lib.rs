//! The library behind the program of the same name; its README follows.
//!
//! The names at the root are what a program needs. The modules are for experts: `backend` and
//! `engine` for forward passes, `denoise` and `sample` for loops of one's own, `gguf`, `model` and
//! `vocab` for files, `synth` for files of random weights.
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod backend;
pub mod demo;
pub mod denoise;
pub mod engine;
pub mod error;
pub mod generate;
pub mod gguf;
pub mod model;
pub mod sample;
pub mod synth;
pub mod vocab;

pub use backend::{Device, Limits, Lock, Options};
pub use denoise::{
    Cache, Canvas, Committed, GenerationParameters, Preset, Progress, RequestParameters,
};
pub use engine::{Engine, Sequence};
pub use error::Error;
pub use generate::{
    Answer, Batch, FilledHole, FinishReason, Generation, Model, PreparedRequest, Prompt, Request,
    Usage,
};
pub use sample::Algorithm;
pub use vocab::{Message, Special};
