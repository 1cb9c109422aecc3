//! `instructions`: counts the instructions of one work item of the quantized GEMM under callgrind:
//! a number that does not depend on what else the machine is doing, so that a regression shows
//! without a clock.
//!
//! `check` compares with `counts.json` beside this package's manifest, `record` rewrites it. Both
//! run this program under valgrind, which knows AVX2 but no later instruction set.

use argh::FromArgs;
use dllm_bench::Error;
use dllm_bench::record::{read_json, write_json};
use dllm_cpu::Kernels;
use dllm_cpu::dtype::{Dtype, PANEL_ROWS, SUPER_WEIGHTS};
use dllm_cpu::gemm::{Activations, CODE_WORDS, SUM_WORDS, multiply_panel};
use dllm_cpu::ops::Quantize256;
use dllm_cpu::pack::{pack_panel, panel_bytes};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::path::Path;
use std::process::Command;

/// A count may differ by this share before `check` fails: code before and after the loops moves by
/// less when only the compiler's version changes. A gain fails too, so that it is recorded and the
/// next loss shows.
const CHANGE_MAX: f64 = 0.01;

/// The types that are counted: nearly all weights of a Q4_K_M file.
const TYPES: [&str; 2] = ["Q4_K", "Q6_K"];
/// Output rows.
const ROWS: usize = PANEL_ROWS;
/// Columns: LLaDA-8B's width.
const COLS: usize = 4096;
/// Tokens of a short chat's canvas.
const TOKENS: usize = 148;
const COUNTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/counts.json");
/// The instruction set, the latest that valgrind knows.
const ISA: &str = "avx2";

/// Counts the instructions of GEMM work items and compares them with the recorded counts.
#[derive(FromArgs)]
#[argh(subcommand, name = "instructions")]
pub struct Instructions {
    /// check, record, or item TYPE COUNT: what is counted
    #[argh(positional)]
    task: Vec<String>,
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
    fn new(dtype: &str, instructions: u64) -> Count {
        let macs = (ROWS * COLS * TOKENS) as f64;
        Count {
            dtype: dtype.into(),
            isa: ISA.into(),
            rows: ROWS,
            cols: COLS,
            tokens: TOKENS,
            instructions,
            macs_per_instruction: (macs / instructions as f64 * 100.0).round() / 100.0,
        }
    }

    /// What was counted.
    fn key(&self) -> (&str, &str, [usize; 3]) {
        (&self.dtype, &self.isa, [self.rows, self.cols, self.tokens])
    }
}

pub fn run(command: &Instructions) -> Result<(), Error> {
    match &command.task.iter().map(String::as_str).collect::<Vec<&str>>()[..] {
        ["check"] => check(&count_all()?),
        ["record"] => write_json(Path::new(COUNTS), &count_all()?),
        ["item", dtype, count] => run_items(dtype, count.parse().unwrap_or(0)),
        _ => Err(Error::Argument("write check, record or item TYPE COUNT".into())),
    }
}

fn count_all() -> Result<Vec<Count>, Error> {
    TYPES.iter().map(|dtype| count(dtype)).collect()
}

/// The difference of two runs, so that what comes before and after the items is not counted.
fn count(dtype: &str) -> Result<Count, Error> {
    let (few, many) = (1, 5);
    let instructions = (callgrind(dtype, many)? - callgrind(dtype, few)?) / (many - few);
    let count = Count::new(dtype, instructions);
    println!(
        "{dtype} {ROWS} rows x {COLS} x {TOKENS} tokens, {ISA}: {instructions} instructions, {} \
         multiply-adds each",
        count.macs_per_instruction
    );
    Ok(count)
}

fn callgrind(dtype: &str, items: u64) -> Result<u64, Error> {
    let program = std::env::current_exe().map_err(Error::io(Path::new("this program")))?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["instructions", "item", dtype, &items.to_string()])
        .output()
        .map_err(Error::io(Path::new("valgrind, which must be installed")))?;
    let report = String::from_utf8_lossy(&output.stderr);
    collected(&report)
        .ok_or_else(|| Error::program("valgrind", format!("counted nothing:\n{report}")))
}

/// The total in callgrind's report: the number after `Collected :`.
fn collected(report: &str) -> Option<u64> {
    let line = report.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.split_whitespace().next()?.parse().ok()
}

fn check(counts: &[Count]) -> Result<(), Error> {
    let recorded: Vec<Count> = read_json(Path::new(COUNTS))?;
    for count in counts {
        let is_same = |before: &&Count| before.key() == count.key();
        let Some(before) = recorded.iter().find(is_same) else {
            let text = format!("no recorded count of this item of {}: run `record`", count.dtype);
            return Err(Error::Record(text));
        };
        let change = count.instructions as f64 / before.instructions as f64 - 1.0;
        println!("{}: {:+.2} % against the recorded count", count.dtype, change * 100.0);
        if change.abs() > CHANGE_MAX {
            let (now, then) = (count.instructions, before.instructions);
            return Err(Error::Figures(format!(
                "an item of {} takes {now} instructions, not {then}: a regression, or a change to \
                 record",
                count.dtype
            )));
        }
    }
    Ok(())
}

/// Multiplies one panel `count` times.
fn run_items(name: &str, count: usize) -> Result<(), Error> {
    let dtype = Dtype::ALL.into_iter().find(|d| d.name() == name && TYPES.contains(&name));
    let unknown = || Error::Argument(format!("`{name}` is not one of {}", TYPES.join(", ")));
    let dtype = dtype.ok_or_else(unknown)?;
    let kernels =
        Kernels::by_name(ISA).ok_or_else(|| Error::Figures(format!("this CPU has no {ISA}")))?;
    let blocks = COLS / SUPER_WEIGHTS;
    let mut codes = vec![0; blocks * TOKENS * CODE_WORDS];
    let mut sums = vec![0; blocks * TOKENS * SUM_WORDS];
    let mut scales = vec![0.0; blocks * TOKENS];
    let x: Vec<f32> = (0..SUPER_WEIGHTS).map(|i| (i * 37 % 101) as f32 - 50.0).collect();
    for (at, scale) in scales.iter_mut().enumerate() {
        let codes = &mut codes[at * CODE_WORDS..];
        let sums = &mut sums[at * SUM_WORDS..];
        *scale = kernels.run(Quantize256 { x: &x, codes, sums });
    }
    let x = Activations {
        codes: &codes,
        sums: &sums,
        scales: &scales,
        tokens: TOKENS,
        capacity: TOKENS,
    };
    let panel = panel(dtype);
    let mut out = vec![0.0; TOKENS * ROWS];
    for _ in 0..count {
        multiply_panel(kernels, dtype, black_box(&panel), x, &mut out);
    }
    black_box(out);
    Ok(())
}

/// A panel of codes of every value under scales that are finite.
fn panel(dtype: Dtype) -> Vec<u8> {
    let block_bytes = dtype.block_bytes();
    let mut row: Vec<u8> = (0..COLS / SUPER_WEIGHTS * block_bytes).map(|i| i as u8).collect();
    for block in row.chunks_exact_mut(block_bytes) {
        // f16 scales of 2^-8: Q6_K has its own at the end, Q4_K begins with two.
        let scales = if dtype == Dtype::Q6_K { block_bytes - 2..block_bytes } else { 0..4 };
        block[scales].as_chunks_mut::<2>().0.fill(0x1c00_u16.to_le_bytes());
    }
    let mut packed = vec![0; panel_bytes(dtype, COLS)];
    pack_panel(dtype, &[row.as_slice(); ROWS], COLS, &mut packed);
    packed
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
        let count = |instructions| Count::new("Q4_K", instructions);
        let recorded: Vec<Count> = read_json(Path::new(COUNTS)).unwrap();
        let q4k = recorded.iter().find(|c| c.dtype == "Q4_K").unwrap().instructions;
        assert!(check(&[count(q4k)]).is_ok());
        assert!(check(&[count(q4k + q4k / 50)]).is_err());
        assert!(check(&[count(q4k - q4k / 50)]).is_err());
        assert!(check(&[Count { tokens: 1, ..count(q4k) }]).is_err());
        assert!(check(&[Count { dtype: "Q9".into(), ..count(q4k) }]).is_err());
    }
}
