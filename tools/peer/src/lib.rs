//! Compares dllm-rt with llama.cpp and ik_llama.cpp on the same file, in turn, in one run.
//!
//! Every program is a process of its own that has loaded the model and answers a line of standard
//! input with a forward pass and its time (`side`). [`run`] opens the same canvas on all of them,
//! checks that they compute the same logits (`check`), and lets them take turns, all but one
//! stopped. What comes out is a [`report::Report`]: JSON, a table for people, and the README's
//! table (`readme`). The other programs' code stays where it is: their public interface is
//! compiled into a temporary program (`compile`).

#![forbid(unsafe_code)]

pub mod check;
pub mod compile;
pub mod fault;
pub mod machine;
pub mod readme;
pub mod report;
pub mod run;
pub mod shape;
pub mod side;
pub mod table;
pub mod turns;
pub mod twin;
