//! `savings`: runs `dllm-rt eval` with every way to save work.

use argh::FromArgs;
use dllm_bench::Error;
use dllm_bench::record::write_json;
use dllm_bench::savings::{Case, FILE, Row, SHORT_TOKENS, Savings, THREADS, Times};
use dllm_bench::scores::Score;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rounds of times: each has every case once with each thread count.
const ROUNDS: usize = 3;
/// One in so many tasks is timed; all are scored.
const EVERY_TIMED: usize = 10;

/// What `eval --json` prints, as far as it is used.
#[derive(Deserialize)]
struct Printed {
    model_hash: String,
    isa: String,
    #[serde(flatten)]
    all: Counts,
    per_family: BTreeMap<String, Counts>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(flatten)]
    score: Score,
    rows_per_answer: f64,
    tokens_per_forward_pass: f64,
    tokens_per_s: f64,
    generate_s: f64,
    #[serde(default)]
    answers: Vec<String>,
}

/// Scores and times every way to save work, into the folder of results: half an hour.
#[derive(FromArgs)]
#[argh(subcommand, name = "savings")]
pub struct Collect {
    /// the program to run (default: target/release/dllm-rt)
    #[argh(option, default = "PathBuf::from(\"target/release/dllm-rt\")")]
    program: PathBuf,
    /// the folder of results (default: benches/results)
    #[argh(option, default = "PathBuf::from(\"benches/results\")")]
    folder: PathBuf,
}

/// Scores and times every case. A program that prints something else is an error.
pub fn run(Collect { program, folder }: &Collect) -> Result<(), Error> {
    let cases = Case::all();
    let most = THREADS[THREADS.len() - 1];
    let mut scored: Vec<Printed> = Vec::with_capacity(cases.len());
    for (number, case) in cases.iter().enumerate() {
        eprintln!("scores, {} of {}: {:?}", number + 1, cases.len(), case.flags());
        scored.push(eval(program, case, most, &["--answers"])?);
    }
    let find = |case: Case| cases.iter().position(|other| *other == case).map(|at| &scored[at]);
    let mut rows: Vec<Row> = Vec::with_capacity(cases.len());
    for (case, printed) in cases.iter().zip(&scored) {
        rows.push(Row {
            case: case.clone(),
            items: printed.all.score.items,
            right: printed.all.score.right,
            passes_per_answer: printed.all.score.forward_passes_per_answer,
            rows_per_answer: printed.all.rows_per_answer,
            other_than_plain: others(printed, &scored[0])?,
            other_than_uncached: find(case.uncached()).map(|of| others(printed, of)).transpose()?,
            times: Default::default(),
        });
    }
    let is_short = |counts: &Counts| {
        counts.tokens_per_forward_pass * counts.score.forward_passes_per_answer < SHORT_TOKENS
    };
    let short = scored[0].per_family.iter().filter(|(_, counts)| is_short(counts));
    let short: Vec<&String> = short.map(|(name, _)| name).collect();
    if short.is_empty() {
        return Err(Error::Figures("no family has short answers".into()));
    }
    let every = EVERY_TIMED.to_string();
    for round in 1..=ROUNDS {
        for row in &mut rows {
            for (threads, times) in THREADS.into_iter().zip(&mut row.times) {
                let printed = eval(program, &row.case, threads, &["--every", &every])?;
                add(times, &printed, &short);
            }
            eprintln!("times, round {round} of {ROUNDS}: {:?}", row.case.flags());
        }
    }
    let (model_hash, isa) = (scored[0].model_hash.clone(), scored[0].isa.clone());
    let savings = Savings { model_hash, isa, every_timed: EVERY_TIMED, rows };
    write_json(&folder.join(FILE), &savings)
}

fn eval(program: &Path, case: &Case, threads: usize, more: &[&str]) -> Result<Printed, Error> {
    let mut command = Command::new(program);
    command.args(["eval", "--json", "--threads", &threads.to_string()]);
    let output = command.args(case.flags()).args(more).output().map_err(Error::io(program))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::program(&format!("{command:?}"), said));
    }
    let read = serde_json::from_slice(&output.stdout);
    read.map_err(|error| Error::program(&format!("{command:?}"), error.to_string()))
}

/// Answers of `own` that are not `other`'s.
fn others(own: &Printed, other: &Printed) -> Result<u64, Error> {
    let mut count = 0;
    for (name, own) in &own.per_family {
        let same = other.per_family.get(name).filter(|of| of.answers.len() == own.answers.len());
        let of_other_tasks = || Error::Figures("the runs are of different tasks".into());
        let other = same.ok_or_else(of_other_tasks)?;
        count += own.answers.iter().zip(&other.answers).filter(|(a, b)| a != b).count();
    }
    Ok(count as u64)
}

fn add(times: &mut Times, printed: &Printed, short: &[&String]) {
    times.tokens_per_s.push(printed.all.tokens_per_s);
    let counts = || short.iter().filter_map(|name| printed.per_family.get(*name));
    let seconds: f64 = counts().map(|counts| counts.generate_s).sum();
    let items: u64 = counts().map(|counts| counts.score.items).sum();
    times.short_ms.push(1e3 * seconds / items as f64);
}
