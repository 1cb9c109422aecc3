//! What can be tested in one process, side by side: one binary, so that it is linked once.
//!
//! A test has a binary of its own where it looks at the whole process or may end it: `no_alloc`
//! and `hostile` count every allocation, `memory` reads what the kernel says of the process, and
//! `after_load` ends it with a bus error if it fails.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod cache;
mod cli;
mod common;
mod config;
mod denoise;
mod determinism;
mod forward;
mod fuzz_seeds;
mod generate;
mod gguf;
mod guidance;
mod logits;
mod pace;
mod plan;
mod readme;
mod sampler;
mod settings;
mod synth;
mod together;
mod tokenizer;
mod transcripts;
