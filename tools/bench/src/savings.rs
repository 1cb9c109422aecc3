//! What the ways to save work give and take on the demonstration tasks: every pace with every
//! cache, as recorded.

use crate::Error;
use crate::figures::median;
use crate::record::read_json;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;

/// What `dllm-bench savings` wrote, below the folder of the results.
pub const FILE: &str = "savings.json";
/// Thread counts that times are recorded for.
pub const THREADS: [usize; 2] = [1, 2];
/// Families count as short whose answers take fewer tokens, in the mean.
pub const SHORT_TOKENS: f64 = 30.0;

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Case {
    /// `plain`, or a threshold or factor with its value, or a preset's name.
    pub pace: String,
    pub cache: String,
    /// Passes from one whole pass to the next; `None`: a block's first alone.
    pub refresh: Option<u32>,
}

impl Case {
    fn new(pace: &str, cache: &str, refresh: Option<u32>) -> Case {
        Case { pace: pace.into(), cache: cache.into(), refresh }
    }

    pub fn plain() -> Case {
        Case::new("plain", "none", None)
    }

    /// What the preset balanced stands for.
    pub fn balanced() -> Case {
        Case::new("threshold 0.9", "none", None)
    }

    pub fn fast() -> Case {
        Case::new("fast", "dual", Some(4))
    }

    pub fn uncached(&self) -> Case {
        Case::new(&self.pace, "none", None)
    }

    /// Every pace with every cache and refresh, the plain loop first, and the preset fast.
    pub fn all() -> Vec<Case> {
        let paces = "plain, threshold 0.7, threshold 0.8, threshold 0.9, threshold 0.95, \
                     factor 0.5, factor 1, factor 2";
        let mut all = Vec::new();
        for pace in paces.split(", ") {
            all.push(Case::new(pace, "none", None));
            for cache in ["prefix", "dual"] {
                for refresh in [Some(1), Some(4), Some(8), None] {
                    all.push(Case::new(pace, cache, refresh));
                }
            }
        }
        all.push(Case::fast());
        all
    }

    /// The flags of `dllm-rt eval`.
    pub fn flags(&self) -> Vec<String> {
        let mut flags: Vec<String> = Vec::new();
        match self.pace.split_once(' ') {
            Some((name, value)) => flags.extend([format!("--{name}"), value.into()]),
            None if self.pace == "fast" => return vec!["--preset".into(), "fast".into()],
            None => (),
        }
        flags.extend(["--cache".into(), self.cache.clone()]);
        flags.extend(self.refresh.iter().flat_map(|n| ["--refresh".into(), n.to_string()]));
        flags
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub case: Case,
    pub items: u64,
    pub right: u64,
    pub passes_per_answer: f64,
    pub rows_per_answer: f64,
    pub other_than_plain: u64,
    /// Answers that are not those of the same pace without a cache; `None` for a preset.
    pub other_than_uncached: Option<u64>,
    /// Times by thread count, as [`THREADS`] has them.
    pub times: [Times; THREADS.len()],
}

/// Times, one a round.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Times {
    /// Tokens of answers a second, ends and what comes after them not counted.
    pub tokens_per_s: Vec<f64>,
    /// Milliseconds an answer of the short families.
    pub short_ms: Vec<f64>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Savings {
    pub model_hash: String,
    pub isa: String,
    /// One in so many tasks was timed.
    pub every_timed: usize,
    pub rows: Vec<Row>,
}

impl Savings {
    /// Reads the results in `folder`, which must be of every case.
    pub fn read(folder: &Path) -> Result<Savings, Error> {
        let savings: Savings = read_json(&folder.join(FILE))?;
        let cases: Vec<&Case> = savings.rows.iter().map(|row| &row.case).collect();
        match cases.iter().copied().eq(&Case::all()) {
            true => Ok(savings),
            false => Err(Error::Record("the recorded savings are not of all settings".into())),
        }
    }

    /// The row of a case that [`Case::all`] has; panics for another.
    #[expect(clippy::panic, reason = "checks the caller, as documented")]
    pub fn row(&self, case: &Case) -> &Row {
        let found = self.rows.iter().find(|row| row.case == *case);
        found.unwrap_or_else(|| panic!("{case:?} is not recorded"))
    }

    /// What stands between the markers.
    pub fn block(&self) -> String {
        let items = self.row(&Case::plain()).items;
        let mut text = format!(
            "\n| preset | right of {items} | passes an answer | rows an answer | other answers \
             than exact | tokens/s, 1 and 2 threads | times as many as exact | a short answer |\n\
             |---|---|---|---|---|---|---|---|\n"
        );
        let presets =
            [("exact", Case::plain()), ("balanced", Case::balanced()), ("fast", Case::fast())];
        for (name, case) in presets {
            let _ = writeln!(text, "| `{name}` | {} |", self.preset(&case));
        }
        let summary = "every threshold and factor with every cache";
        let _ = writeln!(text, "\n<details><summary>{summary}</summary>\n");
        let _ = writeln!(
            text,
            "| pace | cache | whole pass every | right of {items} | passes an answer | rows an \
             answer | other answers than plain | than without cache | tokens/s, 1 and 2 threads |\n\
             |---|---|---|---|---|---|---|---|---|"
        );
        for row in self.rows.iter().filter(|row| row.case != Case::fast()) {
            let _ = writeln!(text, "{}", self.line(row));
        }
        text.push_str("\n</details>\n\n");
        text
    }

    fn preset(&self, case: &Case) -> String {
        let row = self.row(case);
        let gains: [f64; THREADS.len()] =
            std::array::from_fn(|at| self.ratio(case, at, |times| &times.tokens_per_s));
        format!(
            "{} | {:.1} | {:.0} | {} | {} | {} | {} ms",
            row.right,
            row.passes_per_answer,
            row.rows_per_answer,
            row.other_than_plain,
            list(row.times.each_ref().map(|times| median(&times.tokens_per_s)), 0),
            list(gains, 1),
            list(row.times.each_ref().map(|times| median(&times.short_ms)), 1)
        )
    }

    fn line(&self, row: &Row) -> String {
        let Case { pace, cache, refresh } = &row.case;
        let refresh = match (cache.as_str(), refresh) {
            ("none", _) | (_, Some(1)) => "step".to_owned(),
            (_, Some(steps)) => format!("{steps} steps"),
            (_, None) => "block".to_owned(),
        };
        format!(
            "| {pace} | {cache} | {refresh} | {} | {:.1} | {:.0} | {} | {} | {} |",
            row.right,
            row.passes_per_answer,
            row.rows_per_answer,
            row.other_than_plain,
            row.other_than_uncached.map_or(String::new(), |count| count.to_string()),
            list(row.times.each_ref().map(|times| median(&times.tokens_per_s)), 0)
        )
    }

    /// A case's times over the plain loop's, at a thread count by its place in [`THREADS`]: the
    /// median of the ratios within rounds.
    pub fn ratio(&self, case: &Case, threads_at: usize, of: fn(&Times) -> &Vec<f64>) -> f64 {
        let rounds = |case: &Case| of(&self.row(case).times[threads_at]).iter();
        let ratios = rounds(case).zip(rounds(&Case::plain())).map(|(own, plain)| own / plain);
        median(&ratios.collect::<Vec<f64>>())
    }
}

/// A value a thread count.
fn list(values: [f64; THREADS.len()], digits: usize) -> String {
    values.map(|value| format!("{value:.digits$}")).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_every_pace_with_every_cache() {
        let all = Case::all();
        assert_eq!(all.len(), 8 * 9 + 1);
        assert_eq!(all[0], Case::plain());
        let (balanced, fast) = (Case::balanced(), Case::fast());
        assert!(all.contains(&balanced) && all.contains(&fast));
        assert_eq!(balanced.flags().join(" "), "--threshold 0.9 --cache none");
        assert_eq!(fast.flags().join(" "), "--preset fast");
        let case = Case::new("factor 2", "dual", Some(8));
        assert_eq!(case.flags().join(" "), "--factor 2 --cache dual --refresh 8");
        assert!(all.contains(&case) && all.contains(&case.uncached()));
    }
}
