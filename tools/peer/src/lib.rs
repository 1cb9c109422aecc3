//! Compares dllm-rt with llama.cpp and ik_llama.cpp on the same file, in turn, in one run.
//!
//! Every program is a process of its own that has loaded the model and answers a line of standard
//! input with a forward pass and its time (`side`). [`run::run`] opens the same canvas on all of
//! them, checks that they compute the same logits (`check`), and lets them take turns, all but one
//! stopped. What comes out is a [`report::Report`]: JSON, and tables for the terminal and for the
//! page of results (`table`). The other programs' code stays where it is: their public interface
//! is compiled into a temporary program (`compile`).

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "speaks to a developer")]
#![allow(missing_docs, reason = "a program's inside")]

mod check;
mod compile;
pub mod report;
pub mod run;
mod shape;
mod side;
pub mod table;
pub mod turns;
pub mod twin;
