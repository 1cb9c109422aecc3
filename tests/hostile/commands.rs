//! What each command does with a file until it refuses it, in this process.

use std::io;
use std::path::Path;

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

fn tokenize(gguf: &Gguf) -> Result<(), dllm_rt::vocab::Fault> {
    let vocab = Vocab::new(parts_from_gguf(gguf)?)?;
    vocab.encode("abc cba", Special::AsText)?;
    let turn = Message { role: "user".to_owned(), content: "abc".to_owned() };
    vocab.encode_chat(&[turn]).map(|_| ())
}

fn load(gguf: &Gguf) -> Result<(), dllm_rt::Error> {
    let limits = Limits { rows: 16, wanted: 16, guidance: false, threads: 1 };
    Engine::load(gguf, limits, &Options::default(), &mut |_, _| {}).map(|_| ())
}
