//! The results of a run, as they are kept in JSON, and the figures that follow from them.

use dllm_bench::Error;
use dllm_bench::figures::{median, sorted};
use dllm_bench::record::{Machine, read_json, wrong};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Changes when a reader of older files would misunderstand a newer one.
pub const FORMAT: u32 = 1;
/// Results of this program, as opposed to others' in the same folder.
const PREFIX: &str = "peer-";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub format: u32,
    pub machine: Machine,
    /// The programs compared, dllm-rt first. Times are in the same order.
    pub sides: Vec<SideFacts>,
    pub models: Vec<ModelReport>,
}

/// A program, and how it was built.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideFacts {
    pub name: String,
    /// The commit of its source, where that lies in a repository.
    pub commit: Option<String>,
    /// Choices of its build, `KEY=VALUE`.
    pub build: Vec<String>,
    pub settings: Vec<String>,
    /// What it says of itself: instruction sets above all.
    pub isa: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelReport {
    /// The file's name without its folder and ending.
    pub name: String,
    pub arch: String,
    pub layers: u64,
    pub width: u64,
    pub vocab: u64,
    /// Types of its matrices, the one with the most multiply-adds first.
    pub types: Vec<String>,
    pub bytes: u64,
    /// Multiply-adds of its matrices for one token with logits; attention is not counted.
    pub macs_per_token: u64,
    pub cases: Vec<Case>,
}

/// One number of tokens at one number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    pub tokens: usize,
    pub threads: usize,
    /// How far each program's logits are from the first other program's; none for that one.
    pub agreement: Vec<Option<Agreement>>,
    /// One entry a turn, one pass a program in it.
    pub turns: Vec<Vec<Pass>>,
    /// One a program: what follows from `turns`.
    pub summary: Vec<Summary>,
}

/// A forward pass with the logits of every position.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    pub ms: f64,
    /// Milliseconds of CPU in all its threads. Less than `ms` times threads: it had to wait.
    pub cpu_ms: f64,
    /// Milliseconds of CPU that the program took while it was not its turn.
    pub idle_ms: f64,
}

/// The distance of logits from those of another program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Root mean square of the differences, in standard deviations of a row's logits.
    pub rms: f64,
    /// The largest difference, in the same unit.
    pub max: f64,
}

/// Of one program in one case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Median milliseconds a pass.
    pub ms: f64,
    /// Multiply-adds of the model's matrices a second, at that median.
    pub macs_per_s: f64,
    /// This program's time over dllm-rt's: how many times faster dllm-rt is.
    pub ratio: Spread,
    /// Median share of the threads' time that was CPU time. Well below 1: the machine was shared.
    pub cpu_share: f64,
}

/// The middle and the spread of the turns' ratios.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    /// 10th percentile; the least of up to ten turns.
    pub p10: f64,
    /// 90th percentile; the greatest of up to ten turns.
    pub p90: f64,
}

impl Case {
    /// One [`Summary`] a program of `turns`; `macs` are those of one pass.
    pub fn summarize(turns: &[Vec<Pass>], threads: usize, macs: f64) -> Vec<Summary> {
        let sides = turns.first().map_or(0, Vec::len);
        let over_turns = |value: &dyn Fn(&[Pass]) -> f64| -> Vec<f64> {
            turns.iter().map(|turn| value(turn)).collect()
        };
        let summary = |side: usize| {
            let ms = median(&over_turns(&|turn| turn[side].ms));
            let share = |turn: &[Pass]| turn[side].cpu_ms / (turn[side].ms * threads as f64);
            Summary {
                ms,
                macs_per_s: macs / (ms * 1e-3),
                ratio: Spread::of(&over_turns(&|turn| turn[side].ms / turn[0].ms)),
                cpu_share: median(&over_turns(&share)),
            }
        };
        (0..sides).map(summary).collect()
    }
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        let sorted = sorted(values);
        let last = sorted.len().saturating_sub(1);
        let p90 = ((0.9 * sorted.len() as f64).floor() as usize).min(last);
        // The 10th is the mirror image of the 90th, so that up to ten values give their least.
        let at = |rank: usize| sorted.get(rank).copied().unwrap_or(f64::NAN);
        Spread { median: median(values), p10: at(last - p90), p90: at(p90) }
    }
}

/// The reports among `folder`'s files, in the order of their names. None if there is no folder.
pub fn results(folder: &Path) -> Result<Vec<Report>, Error> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.map_err(Error::io(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(PREFIX) && name.ends_with(".json") {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Report, Error> {
    let report: Report = read_json(path)?;
    if report.format != FORMAT {
        let text = format!("format {}, this program reads {FORMAT}", report.format);
        return Err(wrong(path, &text));
    }
    for model in &report.models {
        for case in &model.cases {
            check_case(&report, model, case).map_err(|what| wrong(path, &what))?;
        }
    }
    Ok(report)
}

fn check_case(report: &Report, model: &ModelReport, case: &Case) -> Result<(), String> {
    let Case { tokens, threads, turns, .. } = case;
    let name = format!("{}, {tokens} tokens, {threads} threads", model.name);
    if turns.is_empty() || turns.iter().any(|turn| turn.len() != report.sides.len()) {
        return Err(format!("{name}: a turn needs a pass of every program"));
    }
    let macs = model.macs_per_token as f64 * *tokens as f64;
    match Case::summarize(turns, *threads, macs) == case.summary {
        true => Ok(()),
        false => Err(format!("{name}: the summary is not that of its turns")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_by_rank() {
        let seven = Spread::of(&[4.0, 1.0, 2.0, 3.0, 7.0, 6.0, 5.0]);
        assert_eq!((seven.p10, seven.median, seven.p90), (1.0, 4.0, 7.0));
        let twenty: Vec<f64> = (1..=20).map(f64::from).collect();
        let twenty = Spread::of(&twenty);
        assert_eq!((twenty.p10, twenty.p90), (2.0, 19.0));
    }

    #[test]
    fn ratios_are_paired_within_turns() {
        let pass = |ms| Pass { ms, cpu_ms: 2.0 * ms, idle_ms: 0.0 };
        // The machine slows down tenfold halfway; the ratio does not.
        let turns: Vec<Vec<Pass>> =
            [1.0, 10.0, 10.0].iter().map(|&m| vec![pass(100.0 * m), pass(300.0 * m)]).collect();
        let summary = Case::summarize(&turns, 2, 5e9);
        assert_eq!(summary[0].ratio, Spread { median: 1.0, p10: 1.0, p90: 1.0 });
        assert_eq!(summary[1].ratio, Spread { median: 3.0, p10: 3.0, p90: 3.0 });
        assert_eq!((summary[0].ms, summary[1].ms), (1000.0, 3000.0));
        assert_eq!((summary[0].macs_per_s, summary[0].cpu_share), (5e9, 1.0));
    }
}
