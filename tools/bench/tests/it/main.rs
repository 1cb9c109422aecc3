//! The program as it is used, and the records that it made.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod load;
mod savings;
mod scores;
mod synth;

use std::path::{Path, PathBuf};
use std::process::Command;

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn results() -> PathBuf {
    Path::new(TOP).join("benches/results")
}

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Exit status, standard output and standard error of a command.
fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn program(subcommand: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dllm-bench"));
    command.arg(subcommand);
    command
}
