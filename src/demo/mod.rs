//! The demonstration model and the tasks that it is scored by, both part of the program.
//!
//! `tools/demo` makes them. The model is a file like any other and is read like one, in place: its
//! pages are the program's own.

use crate::gguf::{Error, Gguf};

/// What stands where a file's path would.
pub const NAME: &str = "built-in demonstration model";

static MODEL: &[u8] = include_bytes!("model.gguf");

macro_rules! family {
    ($name:literal) => {
        ($name, include_str!(concat!("tasks/", $name, ".txt")))
    };
}

/// The demonstration model: architecture `llada`, `Q4_K_M`.
///
/// # Errors
/// None that a released program could meet: the file was read when it was tested.
pub fn gguf() -> Result<Gguf, Error> {
    Gguf::from_bytes(MODEL)
}

/// Tasks held out of the model's training, by family; a line is a prompt, a tab and the answer
/// (`dllm-rt eval --help`).
pub static TASKS: &[(&str, &str)] = &[
    family!("capital"),
    family!("country"),
    family!("continent"),
    family!("add"),
    family!("add3"),
    family!("subtract"),
    family!("subtract3"),
    family!("compare"),
    family!("sort"),
    family!("parity"),
    family!("to_words"),
    family!("to_digits"),
    family!("spell"),
    family!("reverse"),
    family!("weekday"),
    family!("month"),
    family!("copy"),
    family!("edit"),
    family!("story"),
    family!("python"),
    family!("record"),
    family!("fill_record"),
    family!("fill_python"),
];
