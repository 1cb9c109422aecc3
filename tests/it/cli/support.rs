//! Runs the program.

use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A LLaDA model: 2048 tokens, mask 2040, end of text 2037; no chat template of its own.
pub const LLADA: &str = "llada-tiny-sharp-Q4_K_M.gguf";
/// A Dream model: 2048 tokens, mask 2040.
pub const DREAM: &str = "dream-tiny-sharp-Q4_K_M.gguf";
/// The mask token of both.
pub const MASK: u32 = 2040;

/// What a run of the program gave.
pub struct Ran {
    pub status: i32,
    pub out: Vec<u8>,
    pub err: String,
}

impl Ran {
    /// Standard output as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    /// Standard output as the one JSON object that it must be.
    pub fn json(&self) -> Value {
        assert_eq!(self.status, 0, "{}", self.err);
        let value: Value = serde_json::from_slice(&self.out).unwrap();
        assert!(value.is_object(), "{value}");
        value
    }
}

/// The path of a model in the tree.
pub fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/models").join(name)
}

/// A fresh folder of this name.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The program, to be started.
pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_dllm-rt"))
}

/// Runs with these arguments and nothing on standard input.
pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    run_with("", args)
}

/// Runs with this text on standard input.
pub fn run_with<S: AsRef<OsStr>>(input: &str, args: impl IntoIterator<Item = S>) -> Ran {
    let mut command = program();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that does not read its input closes it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Ran {
        status: output.status.code().unwrap_or(-1),
        out: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `command` on a model of the tree with further arguments, separated by spaces.
pub fn on(name: &str, command: &str, args: &str) -> Ran {
    on_with(name, command, args, &[])
}

/// The same, and arguments that hold spaces.
pub fn on_with(name: &str, command: &str, args: &str, more: &[&str]) -> Ran {
    let model = model(name);
    let first = [OsStr::new(command), OsStr::new("--model"), model.as_os_str()];
    let args = args.split_whitespace().chain(more.iter().copied()).map(OsStr::new);
    run(first.into_iter().chain(args))
}

/// The ids of a JSON array.
pub fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

/// The ids as an argument.
pub fn list(ids: &[u32]) -> String {
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}
