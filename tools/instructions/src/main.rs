//! Counts the instructions of one work item of the quantized GEMM under callgrind: a number that
//! does not depend on what else the machine is doing, so that a regression shows without a clock.
//!
//! `check` compares with `counts.json` beside this package's manifest, `record` rewrites it. Both
//! run this program under valgrind, which knows AVX2 but no later instruction set.

mod item;

use argh::FromArgs;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, ExitCode};

/// A count may differ by this share before `check` fails: code before and after the loops moves by
/// less when only the compiler's version changes. A gain fails too, so that it is recorded and the
/// next loss shows.
const CHANGE_MAX: f64 = 0.01;

/// Counts the instructions of GEMM work items.
#[derive(FromArgs)]
struct Arguments {
    #[argh(subcommand)]
    command: Task,
}

#[derive(FromArgs)]
#[argh(subcommand)]
enum Task {
    Check(Check),
    Record(Record),
    Item(Item),
}

/// Counts and compares with the recorded counts.
#[derive(FromArgs)]
#[argh(subcommand, name = "check")]
struct Check {}

/// Counts and records.
#[derive(FromArgs)]
#[argh(subcommand, name = "record")]
struct Record {}

/// Runs work items: what is counted.
#[derive(FromArgs)]
#[argh(subcommand, name = "item")]
struct Item {
    /// tensor type
    #[argh(positional)]
    dtype: String,
    /// how many
    #[argh(positional)]
    count: usize,
}

/// A counted work item.
#[derive(Serialize, Deserialize)]
struct Count {
    dtype: String,
    isa: String,
    rows: usize,
    cols: usize,
    tokens: usize,
    instructions: u64,
    macs_per_instruction: f64,
}

impl Count {
    /// What was counted.
    fn key(&self) -> (&str, &str, [usize; 3]) {
        (&self.dtype, &self.isa, [self.rows, self.cols, self.tokens])
    }
}

fn main() -> ExitCode {
    let arguments: Arguments = argh::from_env();
    let outcome = match arguments.command {
        Task::Check(_) => count_all().and_then(|counts| check(&counts)),
        Task::Record(_) => count_all().and_then(|counts| record(&counts)),
        Task::Item(item) => item::run(&item.dtype, item.count),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("instructions: {message}");
            ExitCode::FAILURE
        }
    }
}

fn count_all() -> Result<Vec<Count>, String> {
    item::TYPES.iter().map(|dtype| count(dtype)).collect()
}

/// The difference of two runs, so that what comes before and after the items is not counted.
fn count(dtype: &str) -> Result<Count, String> {
    let (few, many) = (1, 5);
    let instructions = (callgrind(dtype, many)? - callgrind(dtype, few)?) / (many - few);
    let macs = item::ROWS * item::COLS * item::TOKENS;
    let count = Count {
        dtype: dtype.into(),
        isa: item::ISA.into(),
        rows: item::ROWS,
        cols: item::COLS,
        tokens: item::TOKENS,
        instructions,
        macs_per_instruction: (macs as f64 / instructions as f64 * 100.0).round() / 100.0,
    };
    println!(
        "{dtype} {} rows x {} x {} tokens, {}: {instructions} instructions, {} multiply-adds each",
        count.rows, count.cols, count.tokens, count.isa, count.macs_per_instruction
    );
    Ok(count)
}

fn callgrind(dtype: &str, items: u64) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|cause| cause.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["item", dtype, &items.to_string()])
        .output()
        .map_err(|cause| format!("cannot start valgrind ({cause}): install it"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    collected(&report).ok_or_else(|| format!("valgrind counted nothing:\n{report}"))
}

/// The total in callgrind's report: the number after `Collected :`.
fn collected(report: &str) -> Option<u64> {
    let line = report.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.split_whitespace().next()?.parse().ok()
}

fn counts_path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.json")
}

fn record(counts: &[Count]) -> Result<(), String> {
    let text = serde_json::to_string_pretty(counts).map_err(|cause| cause.to_string())?;
    std::fs::write(counts_path(), text + "\n").map_err(|cause| cause.to_string())
}

fn check(counts: &[Count]) -> Result<(), String> {
    let text = std::fs::read_to_string(counts_path()).map_err(|cause| cause.to_string())?;
    let recorded: Vec<Count> = serde_json::from_str(&text).map_err(|cause| cause.to_string())?;
    for count in counts {
        let is_same = |before: &&Count| before.key() == count.key();
        let Some(before) = recorded.iter().find(is_same) else {
            return Err(format!("no recorded count of this item of {}: run `record`", count.dtype));
        };
        let change = count.instructions as f64 / before.instructions as f64 - 1.0;
        println!("{}: {:+.2} % against the recorded count", count.dtype, change * 100.0);
        if change.abs() > CHANGE_MAX {
            let (now, then) = (count.instructions, before.instructions);
            return Err(format!(
                "an item of {} takes {now} instructions, not {then}: a regression, or a change to \
                 record",
                count.dtype
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found_in_a_report() {
        let report = "==1== Events    : Ir\n==1== Collected : 123456789\n==1==\n";
        assert_eq!(collected(report), Some(123_456_789));
        assert_eq!(collected("valgrind: failed to start"), None);
    }

    #[test]
    fn a_count_that_changed_is_refused() {
        let count = |instructions| Count {
            dtype: "Q4_K".into(),
            isa: item::ISA.into(),
            rows: item::ROWS,
            cols: item::COLS,
            tokens: item::TOKENS,
            instructions,
            macs_per_instruction: 0.0,
        };
        let text = std::fs::read_to_string(counts_path()).unwrap();
        let recorded: Vec<Count> = serde_json::from_str(&text).unwrap();
        let q4k = recorded.iter().find(|c| c.dtype == "Q4_K").unwrap().instructions;
        assert!(check(&[count(q4k)]).is_ok());
        assert!(check(&[count(q4k + q4k / 50)]).is_err());
        assert!(check(&[count(q4k - q4k / 50)]).is_err());
        assert!(check(&[Count { tokens: 1, ..count(q4k) }]).is_err());
        assert!(check(&[Count { dtype: "Q9".into(), ..count(q4k) }]).is_err());
    }
}
