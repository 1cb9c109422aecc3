//! `eval`: how many tasks a model gets right, and the passes and time that takes.

mod measure;
mod plot;
mod question;
mod report;
mod tasks;

use crate::cli::args::{FilePath, Ids, Text, one_line};
use crate::cli::failure::{End, Failure};
use crate::cli::flags::generation_command;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Progress;
use crate::cli::{model, output};
use dllm_rt::backend::SEQUENCES_MAX;
use dllm_rt::{GenerationParameters, Limits, Model, RequestParameters};
use measure::{Exam, Examiner};
use question::Question;
use report::Report;
use std::path::Path;

generation_command! {
    /// Scores a model by tasks that have one right answer: exact match by family, forward passes
    /// an answer, tokens a pass and a second.
    #[argh(subcommand, name = "eval")]
    pub struct Eval {
        /// a folder of tasks, a family a .txt file, a line a prompt, a tab and the answer, with
        /// «holes» in answers to fill in (default: tasks that the built-in model was not trained
        /// on)
        #[argh(option, arg_name = "folder")]
        tasks: Option<FilePath>,
        /// only this family of tasks; may be given several times
        #[argh(option, arg_name = "name")]
        family: Vec<Text>,
        /// only the first of every n tasks of a family (default: 1)
        #[argh(option, arg_name = "n")]
        every: Option<usize>,
        /// positions that an answer may take (default: 128)
        #[argh(option, arg_name = "n")]
        max_tokens: Option<u32>,
        /// answer so many tasks at a time, at most 16, in passes that they share (default: 1); no
        /// answer changes, but one that a deadline cuts has shared its time with others
        #[argh(option, arg_name = "n")]
        sequences: Option<usize>,
        /// denoising steps for --max-tokens positions (default: as many); several numbers,
        /// separated by commas, are scored one after the other. Holes are filled at the same rate
        #[argh(option, arg_name = "list")]
        steps: Option<Ids>,
        /// print the first n wrong answers of each family on standard error (default: 0)
        #[argh(option, arg_name = "n")]
        show: Option<usize>,
        /// with --json: every answer, so that runs can be compared
        #[argh(switch)]
        answers: bool,
        /// write a plot of the score against the forward passes, an SVG
        #[argh(option, arg_name = "path")]
        plot: Option<FilePath>,
    }
}

/// Runs the command.
pub fn run(command: &Eval) -> Result<End, Failure> {
    let flags = command.model_flags();
    let options = flags.options()?;
    command.check()?;
    let families = command.families()?;
    let model = model::open(&flags, command.chat_template.as_ref())?;
    let runs = command.runs(&model)?;
    let exams = encode(&families, command, &model)?;
    check_lengths(&exams, command.max_tokens(), model.config().context)?;
    let limits = limits(&model, &exams, &runs)?;
    let limits = Limits { sequences: command.sequences(), threads: flags.threads(), ..limits };
    let model_hash = if command.json { model.hash(flags.threads()) } else { String::new() };
    let engine = model::load(model.gguf(), limits, &options, &flags)?;
    let items: usize = exams.iter().map(|exam| exam.questions.len()).sum();
    let mut examiner = Examiner {
        model: &model,
        engine,
        interrupt: Interrupt::listen()?,
        progress: Progress::tasks(),
        done: 0,
        total: (items * runs.len()) as u64,
        show: command.show.unwrap_or(0),
        keeps_answers: command.answers,
        deadline: command.deadline(),
    };
    let mut report =
        Report::new(flags.source(), model_hash, &options, &examiner.engine, command.deadline_ms);
    for (asked, parameters) in &runs {
        let scores = examiner.examine(&exams, asked, parameters)?;
        report.add(parameters, command.every(), &exams, scores);
        if examiner.interrupt.is_pressed() {
            report.is_partial = true;
            break;
        }
    }
    // Whatever is waited for now, an interrupt ends it.
    examiner.interrupt.set(true);
    let status = examiner.interrupt.status();
    // The progress bar goes with it.
    drop(examiner);
    report.say_wrong();
    let printed = match command.json {
        true => output::json(&report.json(runs.len() > 1)),
        false => output::results(|out| report.write(out)),
    };
    // A plot was asked for whether or not anybody reads the table.
    let plotted = command.plot.as_ref().map_or(Ok(()), |path| plot(&report, items, &path.0));
    match (printed, plotted) {
        (Err(Failure::BrokenPipe), Err(failure)) | (Err(failure), _) | (_, Err(failure)) => {
            Err(failure)
        }
        _ if report.is_partial => Ok(End::Interrupted(status)),
        _ => Ok(End::Done),
    }
}

/// Writes the plot of the runs that were finished, if any was.
fn plot(report: &Report, items: usize, path: &Path) -> Result<(), Failure> {
    let Some(plot) = plot::svg(report, items)? else {
        output::say(&format!("`{}` is as it was: no run was finished", path.display()));
        return Ok(());
    };
    output::file(path, |out| out.write_all(plot.as_bytes()))
}

impl Eval {
    /// Refuses what no model is needed to refuse.
    fn check(&self) -> Result<(), Failure> {
        let usage = |message: &str| Err(Failure::Usage(message.into()));
        if self.answers && !self.json {
            return usage("--answers are part of --json; give both");
        }
        if self.every == Some(0) {
            return usage("--every is 0; give at least 1");
        }
        if !(1..=SEQUENCES_MAX).contains(&self.sequences()) {
            let message = format!("--sequences must be from 1 to {SEQUENCES_MAX}");
            return Err(Failure::Usage(message));
        }
        if self.max_tokens == Some(0) {
            return usage("--max-tokens is 0; give room for an answer");
        }
        if self.steps.as_ref().is_some_and(|steps| steps.0.is_empty()) {
            return usage("--steps is empty; give at least one number");
        }
        self.plot.as_ref().map_or(Ok(()), |path| output::check_target(&path.0))
    }

    /// One task in so many is put.
    fn every(&self) -> usize {
        self.every.unwrap_or(1)
    }

    /// Tasks that are answered at a time.
    fn sequences(&self) -> usize {
        self.sequences.unwrap_or(1)
    }

    fn max_tokens(&self) -> u32 {
        self.max_tokens.unwrap_or(RequestParameters::default().max_tokens)
    }

    /// The families asked for.
    fn families(&self) -> Result<Vec<tasks::Family>, Failure> {
        let names: Vec<&str> = self.family.iter().map(|name| name.0.as_str()).collect();
        match &self.tasks {
            Some(folder) => tasks::in_folder(&folder.0, &names),
            None => tasks::built_in(&names),
        }
    }

    /// Parameters for each number of steps, as asked and as checked.
    fn runs(&self, model: &Model) -> Result<Vec<Run>, Failure> {
        let steps = match &self.steps {
            None => vec![None],
            Some(steps) => steps.0.iter().copied().map(Some).collect(),
        };
        let run = |steps| {
            let asked = self.parameters(self.max_tokens, steps);
            let parameters = GenerationParameters::new(model.kind(), &asked)?;
            Ok((asked, parameters))
        };
        let all: Vec<Run> = steps.into_iter().map(run).collect::<Result<_, Failure>>()?;
        let mut made: Vec<u32> = all.iter().map(|(_, checked)| checked.steps_total(0)).collect();
        made.sort_unstable();
        match made.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Failure::Usage(format!(
                "--steps asks for {} steps more than once; there is at least one a block",
                pair[0]
            ))),
            None => Ok(all),
        }
    }
}

/// Parameters of a run, as asked and as checked.
type Run = (RequestParameters, GenerationParameters);

fn encode<'a>(
    families: &'a [tasks::Family],
    command: &Eval,
    model: &Model,
) -> Result<Vec<Exam<'a>>, Failure> {
    let mut exams = Vec::with_capacity(families.len());
    for family in families {
        let mut questions = Vec::new();
        for (index, task) in family.tasks.iter().enumerate().step_by(command.every()) {
            let question = Question::new(task, model, command.no_chat);
            questions.push(question.map_err(|failure| {
                Failure::Beyond(format!("task {} of family {}: {failure}", index + 1, family.name))
            })?);
        }
        exams.push(Exam { name: &family.name, questions });
    }
    Ok(exams)
}

/// Refuses tasks that are longer than the model's context, by name, and warns of answers that
/// cannot be written in full.
fn check_lengths(exams: &[Exam<'_>], max_tokens: u32, context: usize) -> Result<(), Failure> {
    let mut cut = 0;
    for exam in exams {
        for question in &exam.questions {
            let rows = question.rows(max_tokens);
            if rows > context {
                let prompt = one_line(&question.task.prompt).chars().take(40).collect::<String>();
                return Err(Failure::Beyond(format!(
                    "a task of family {} (`{prompt}`) takes {rows} tokens with its answer, but the \
                     model's context_length is {context}",
                    exam.name
                )));
            }
            cut += usize::from(question.holes == 0 && question.answer_len > max_tokens as usize);
        }
    }
    if cut > 0 {
        output::say(&format!("warning: {cut} answers are longer than --max-tokens {max_tokens}"));
    }
    Ok(())
}

/// What the largest requests need.
fn limits(model: &Model, exams: &[Exam<'_>], runs: &[Run]) -> Result<Limits, Failure> {
    let mut limits = Limits::new(1, 1, 1);
    for (asked, whole) in runs {
        for question in exams.iter().flat_map(|exam| &exam.questions) {
            limits = limits.max(question.prepare(model, asked, whole, None)?.limits());
        }
    }
    Ok(limits)
}
