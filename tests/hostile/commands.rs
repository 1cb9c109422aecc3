//! What each command does with a file until it refuses it, in this process and in its own.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use dllm_rt::gguf::{self, Gguf, inspect};
use dllm_rt::vocab::{Message, Special, Vocab, parts_from_gguf};
use dllm_rt::{Engine, Limits, Options};

use crate::case::Via;

/// Runs the part of the command `via` that reads the file at `path`; its message if it refuses.
pub fn run(via: Via, path: &Path) -> Result<(), String> {
    let gguf = gguf::open(path).map_err(|fault| fault.to_string())?;
    match via {
        Via::Inspect => inspect(&gguf).map_err(|error| error.to_string()),
        Via::Tokenize => tokenize(&gguf).map_err(|fault| fault.to_string()),
        Via::Logits => load(&gguf).map_err(|error| error.to_string()),
    }
}

fn inspect(gguf: &Gguf) -> io::Result<()> {
    inspect::write_text(gguf, &mut io::sink())?;
    inspect::write_json(gguf, &mut io::sink())
}

fn tokenize(gguf: &Gguf) -> Result<(), dllm_rt::vocab::Error> {
    let vocab = Vocab::new(parts_from_gguf(gguf)?)?;
    vocab.encode("abc cba", Special::AsText)?;
    let turn = Message { role: "user".to_owned(), content: "abc".to_owned() };
    vocab.encode_chat(&[turn]).map(|_| ())
}

fn load(gguf: &Gguf) -> Result<(), dllm_rt::Error> {
    let limits = Limits { logits: true, ..Limits::new(16, 16, 1) };
    Engine::load(gguf, limits, &Options::default(), &mut |_, _| {}).map(|_| ())
}

/// Runs the command `via` itself on the file at `path`: its exit status and what it wrote to
/// standard error.
pub fn spawn(via: Via, path: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dllm-rt"));
    match via {
        Via::Inspect => command.arg("inspect").arg(path),
        Via::Tokenize => command.args(["tokenize", "--prompt", "abc", "--model"]).arg(path),
        Via::Logits => {
            let out = path.with_extension("f32");
            let flags = ["logits", "--threads", "1", "--tokens", "1,2,3", "--out"];
            command.args(flags).arg(out).arg("--model").arg(path)
        }
    };
    let output = command.stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}
