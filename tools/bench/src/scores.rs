//! Recorded scores of the demonstration model, and the tables of them.

use crate::Error;
use crate::record::read_json;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;

/// What `dllm-rt eval --steps 128,64,32,16,8 --json` printed, below the folder of the results.
const OURS: &str = "eval.json";
/// What `tools/demo/evaluate.py --canvas 128 --json` wrote of the same weights before they were
/// quantized.
const REFERENCE: &str = "eval-pytorch.json";

#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Score {
    pub items: u64,
    pub right: u64,
    pub forward_passes_per_answer: f64,
}

impl Score {
    pub fn percent(&self) -> f64 {
        100.0 * self.right as f64 / self.items.max(1) as f64
    }
}

#[derive(Clone, Debug, Deserialize)]
pub struct Scores {
    #[serde(flatten)]
    pub all: Score,
    pub per_family: BTreeMap<String, Score>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    #[serde(flatten)]
    pub scores: Scores,
    pub tokens_per_forward_pass: f64,
    pub settings: Settings,
}

/// The settings that a table names.
#[derive(Clone, Debug, Deserialize)]
pub struct Settings {
    /// Denoising steps for the whole canvas.
    pub steps: u64,
    pub max_tokens: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Ours {
    pub model_hash: String,
    /// Plain sampling first.
    pub runs: Vec<Run>,
}

#[derive(Clone, Debug)]
pub struct Record {
    pub ours: Ours,
    /// The model before it was quantized, in PyTorch.
    pub reference: Scores,
}

impl Record {
    pub fn read(folder: &Path) -> Result<Record, Error> {
        let ours: Ours = read_json(&folder.join(OURS))?;
        let reference: Scores = read_json(&folder.join(REFERENCE))?;
        let tasks = |scores: &Scores| -> Vec<(String, u64)> {
            scores.per_family.iter().map(|(name, score)| (name.clone(), score.items)).collect()
        };
        let same = |run: &Run| tasks(&run.scores) == tasks(&reference);
        match !ours.runs.is_empty() && ours.runs.iter().all(same) {
            true => Ok(Record { ours, reference }),
            false => Err(Error::Record("the recorded runs are not of the same tasks".into())),
        }
    }

    pub fn plain(&self) -> &Run {
        &self.ours.runs[0]
    }

    /// What stands between the markers.
    pub fn block(&self) -> String {
        let (plain, reference) = (&self.plain().scores, &self.reference);
        let mut text = String::from(
            "\n| tasks | right in dllm-rt, `Q4_K_M` | right in PyTorch, f32 |\n|---|---|---|\n",
        );
        for (name, score) in &plain.per_family {
            let other = &reference.per_family[name];
            let _ = writeln!(text, "| `{name}` | {score} | {other} |");
        }
        let (ours, theirs) = (&plain.all, &reference.all);
        let percents = [ours, theirs].map(|score| format!("**{score}, {:.1} %**", score.percent()));
        let _ = writeln!(text, "| **all** | {} |", percents.join(" | "));
        let tokens = self.plain().settings.max_tokens;
        let _ = writeln!(
            text,
            "\n| steps for {tokens} tokens | right | passes an answer | tokens a pass |\n\
             |---|---|---|---|"
        );
        for Run { scores, tokens_per_forward_pass, settings } in &self.ours.runs {
            let _ = writeln!(
                text,
                "| {} | {:.1} % | {:.1} | {tokens_per_forward_pass:.2} |",
                settings.steps,
                scores.all.percent(),
                scores.all.forward_passes_per_answer,
            );
        }
        text.push('\n');
        text
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.right, self.items)
    }
}
