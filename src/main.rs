//! The command line.
#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

/// Counts what the engine's threads allocate, for `--verbose` and `--json`.
#[global_allocator]
static ALLOCATOR: dllm_arena::CountingAllocator = dllm_arena::CountingAllocator::new();

fn main() -> ExitCode {
    cli::main(std::env::args_os().skip(1))
}
