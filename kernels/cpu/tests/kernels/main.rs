//! One suite over every kernel that this CPU can run.
//!
//! Tests whose names contain `isa_` compare each kernel with the scalar one, bit for bit, and are
//! cheap enough for an emulated CPU. The others compare with oracles in exact integers or f64,
//! which share no code with the kernels: weights come from `decode_row`, everything else is
//! written out here. `activations`, `bits`, `blocks`, `control_word`, `guard`, `probe` and
//! `random` are what the tests stand on; the remaining files are tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod activations;
mod bits;
mod blocks;
mod control_word;
mod guard;
mod peak_loops;
mod probe;
mod random;

mod attention_values;
mod decode;
mod dots;
mod float_env;
mod float_values;
mod gemm_exact;
mod gemm_values;
mod guarded;
mod pack;
mod quantize_rules;
mod same_gemm;
mod same_ops;
mod statistics;
