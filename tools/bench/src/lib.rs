//! What the measuring programs share: the command line's frame, errors, medians, records in JSON
//! and the tables of results that are made from them.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "speaks to a developer")]
#![allow(missing_docs, reason = "a program's inside")]

pub mod error;
pub mod figures;
pub mod record;
pub mod savings;
pub mod scores;
pub mod tables;

pub use error::Error;

use argh::TopLevelCommand;
use dllm_rt::{Engine, Limits, Options, gguf};
use std::path::Path;
use std::process::ExitCode;

/// The exit status after wrong usage.
const USAGE: u8 = 2;

/// The `main` of the program called `name`: reads its arguments and does `run` with them.
pub fn main<T: TopLevelCommand>(name: &str, run: impl FnOnce(T) -> Result<(), Error>) -> ExitCode {
    let fail = |message: &str, status: ExitCode| {
        eprintln!("{name}: {}", message.trim_end());
        status
    };
    let words = std::env::args_os().skip(1).map(|word| word.into_string());
    let Ok(words) = words.collect::<Result<Vec<String>, _>>() else {
        return fail("an argument is not UTF-8", USAGE.into());
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match T::from_args(&[name], &words) {
        Ok(arguments) => match run(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error.to_string(), ExitCode::FAILURE),
        },
        Err(exit) if exit.status.is_ok() => {
            println!("{}", exit.output.trim_end());
            ExitCode::SUCCESS
        }
        Err(exit) => fail(&exit.output, USAGE.into()),
    }
}

/// A canvas of tokens that look random, the same on every run; another seed gives others.
pub fn canvas(tokens: usize, vocab: u32, seed: u32) -> Vec<u32> {
    let token = |i: u32| (i + seed).wrapping_mul(2_654_435_761) % vocab.max(1);
    (0..tokens as u32).map(token).collect()
}

/// The model of the file at `path`, loaded.
pub fn engine(path: &Path, limits: Limits, options: &Options) -> Result<Engine, Error> {
    let file = gguf::open(path).map_err(dllm_rt::Error::from)?;
    Ok(Engine::load(&file, limits, options, &mut |_, _| ())?)
}
