//! Command line of the recorded scores.

#![forbid(unsafe_code)]

use argh::FromArgs;
use score::Record;
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

/// Writes the demonstration model's scores into README.md, from benches/results. Run it at the top
/// of the tree.
#[derive(FromArgs)]
struct Arguments {}

fn main() -> ExitCode {
    let Arguments {} = argh::from_env();
    match write() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("score: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write() -> io::Result<()> {
    let record = Record::read(Path::new("benches/results"))?;
    let readme = fs::read_to_string("README.md")?;
    fs::write("README.md", record.within(&readme)?)
}
