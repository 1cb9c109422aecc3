//! Scores as a table and as JSON.

use super::measure::{Exam, Score};
use crate::cli::model::ModelSource;
use crate::cli::output;
use dllm_rt::denoise::{Cache, Policy};
use dllm_rt::{Engine, GenerationParameters, Options};
use serde_json::{Map, Value};
use std::io::{self, Write};

/// Scores with every setting.
pub struct Report {
    /// Model and machine, as JSON has them.
    machine: Map<String, Value>,
    pub is_partial: bool,
    pub runs: Vec<Scored>,
}

/// Scores with one setting.
pub struct Scored {
    parameters: GenerationParameters,
    every: usize,
    /// Families that were scored, by name.
    pub families: Vec<(String, Score)>,
    pub all: Score,
}

impl Scored {
    /// Denoising steps for an answer that is to be written whole; the most there can be where the
    /// model's certainty says how many there are.
    pub fn steps(&self) -> u32 {
        self.parameters.steps_total(0)
    }

    fn settings(&self) -> Value {
        let mut settings = output::settings(&self.parameters, self.steps());
        settings["every"] = self.every.into();
        settings
    }

    fn json(&self) -> Map<String, Value> {
        let family = |(name, score): &(String, Score)| {
            let mut object = score_json(score);
            if !score.answers.is_empty() {
                object.insert("answers".into(), score.answers.clone().into());
            }
            (name.clone(), object.into())
        };
        let mut object = score_json(&self.all);
        let per_family: Map<String, Value> = self.families.iter().map(family).collect();
        object.insert("per_family".into(), per_family.into());
        object.insert("settings".into(), self.settings());
        object
    }

    /// The settings that matter, in words.
    fn title(&self) -> String {
        let (parameters, steps) = (&self.parameters, self.steps());
        let policy = match (parameters.policy(), parameters.steps) {
            (Policy::Steps, _) => format!("{steps} steps"),
            (Policy::Threshold(threshold), None) => format!("threshold {threshold}"),
            (Policy::Factor(factor), None) => format!("factor {factor}"),
            (Policy::Threshold(threshold), Some(most)) => {
                format!("threshold {threshold}, at most {most} steps")
            }
            (Policy::Factor(factor), Some(most)) => {
                format!("factor {factor}, at most {most} steps")
            }
        };
        let refresh = match parameters.refresh {
            Some(passes) => format!(" refreshed every {passes}"),
            None => String::new(),
        };
        let cache = match parameters.cache {
            Cache::None => String::new(),
            cache => format!(", {} cache{refresh}", cache.name()),
        };
        let grow = if parameters.grow { "up to " } else { "" };
        let (algorithm, tokens) = (parameters.algorithm.name(), parameters.max_tokens);
        let block = parameters.block_length;
        format!("{algorithm}, {grow}{tokens} tokens, {policy}, blocks of {block}{cache}")
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.title())?;
        let width = self.families.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(6);
        let columns = ["exact", "passes/answer", "rows/answer", "tokens/pass", "tokens/s"];
        let columns = columns.map(|name| format!("{name:>15}")).concat();
        writeln!(out, "{:width$} {:>8}    {columns}", "family", "right")?;
        let families = self.families.iter().map(|(name, score)| (name.as_str(), score));
        for (name, score) in families.chain([("all", &self.all)]) {
            writeln!(
                out,
                "{name:width$} {:>4} of {:<4}{:>13.1} %{:>15.1}{:>15.0}{:>15.2}{:>15.1}",
                score.right,
                score.items,
                100.0 * score.exact_match(),
                score.passes_per_answer(),
                score.rows_per_answer(),
                score.tokens_per_pass(),
                score.tokens_per_s()
            )?;
        }
        Ok(())
    }
}

fn score_json(score: &Score) -> Map<String, Value> {
    let fields: [(&str, Value); 8] = [
        ("exact_match", score.exact_match().into()),
        ("items", score.items.into()),
        ("right", score.right.into()),
        ("forward_passes_per_answer", score.passes_per_answer().into()),
        ("rows_per_answer", score.rows_per_answer().into()),
        ("tokens_per_forward_pass", score.tokens_per_pass().into()),
        ("tokens_per_s", score.tokens_per_s().into()),
        ("generate_s", score.seconds.into()),
    ];
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

impl Report {
    /// A report without scores.
    pub fn new(
        source: ModelSource<'_>,
        model_hash: String,
        options: &Options,
        engine: &Engine,
        deadline_ms: Option<u64>,
    ) -> Report {
        let machine = [
            ("version", env!("CARGO_PKG_VERSION").into()),
            ("model", source.to_string().into()),
            ("model_hash", model_hash.into()),
            ("arch", engine.config().architecture.name().into()),
            ("device", options.device.to_string().into()),
            ("isa", engine.isa().into()),
            ("threads", engine.limits().threads.into()),
            ("sequences", engine.limits().sequences.into()),
            ("deadline_ms", deadline_ms.into()),
        ];
        let machine = machine.map(|(key, value): (&str, Value)| (key.to_owned(), value));
        Report { machine: machine.into_iter().collect(), is_partial: false, runs: Vec::new() }
    }

    /// Adds the scores of the first of `exams` under a setting, unless there are none.
    pub fn add(
        &mut self,
        parameters: &GenerationParameters,
        every: usize,
        exams: &[Exam<'_>],
        scores: Vec<Score>,
    ) {
        let mut all = Score::default();
        scores.iter().for_each(|score| all.add(score));
        let names = exams.iter().map(|exam| exam.name.to_owned());
        let families: Vec<_> = names.zip(scores).collect();
        if !families.is_empty() {
            self.runs.push(Scored { parameters: parameters.clone(), every, families, all });
        }
    }

    /// The object of the one run, or one with all of them where several were asked for.
    pub fn json(&self, are_several: bool) -> Value {
        let mut object = self.machine.clone();
        object.insert("interrupted".into(), self.is_partial.into());
        if are_several {
            let runs: Vec<Value> = self.runs.iter().map(|run| run.json().into()).collect();
            object.insert("runs".into(), runs.into());
        } else if let Some(run) = self.runs.first() {
            object.extend(run.json());
        }
        object.into()
    }

    /// Prints a table a run.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (index, run) in self.runs.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            run.write(out)?;
        }
        if self.is_partial {
            writeln!(out, "interrupted: the last of it is not of all tasks")?;
        }
        Ok(())
    }

    /// Says which answers were wrong, where they were kept.
    pub fn say_wrong(&self) {
        for run in &self.runs {
            let several = self.runs.len() > 1;
            let steps = if several { format!("{} steps: ", run.steps()) } else { String::new() };
            for (name, score) in &run.families {
                score
                    .wrong
                    .iter()
                    .for_each(|wrong| output::say(&format!("{steps}{name}: {wrong}")));
            }
        }
    }
}
