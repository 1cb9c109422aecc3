//! `eval`: how many tasks a model gets right, and at what price.

mod measure;
mod plot;
mod report;
mod request;
mod tasks;

use crate::cli::args::{FilePath, Ids, Text, one_line};
use crate::cli::failure::Failure;
use crate::cli::generation::generation_command;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Progress;
use crate::cli::session::{self, Session};
use crate::cli::{End, output};
use dllm_rt::denoise::{Cache, Settings};
use dllm_rt::plan::CANVASES_MAX;
use dllm_rt::{Limits, Schedule};
use measure::{Exam, Examiner};
use report::Report;
use request::Request;
use std::path::Path;
use std::time::Duration;

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
        canvases: Option<usize>,
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
///
/// # Errors
/// Flags, tasks or a model that cannot be used; a plot that cannot be written.
pub fn run(command: &Eval) -> Result<End, Failure> {
    let flags = command.model_flags();
    let options = flags.options()?;
    command.check()?;
    let families = command.families()?;
    let session = Session::open(flags.source(), flags.mask_token)?;
    let settings = command.settings(&session)?;
    let exams = encode(&families, command, &session)?;
    check_lengths(&exams, &settings, session.config.context)?;
    let limits = limits(&exams, &settings, flags.threads())?;
    let limits = Limits { canvases: command.canvases(), ..limits };
    let model_hash = if command.json { session.hash(flags.threads()) } else { String::new() };
    let engine = session::load(&session.gguf, limits, &options, &flags)?;
    let items: usize = exams.iter().map(|exam| exam.requests.len()).sum();
    let mut examiner = Examiner {
        session: &session,
        engine,
        interrupt: Interrupt::listen()?,
        progress: Progress::tasks(),
        done: 0,
        total: (items * settings.len()) as u64,
        show: command.show.unwrap_or(0),
        keeps_answers: command.answers,
        deadline: command.deadline_ms.map(Duration::from_millis),
    };
    let mut report =
        Report::new(flags.source(), model_hash, &options, &examiner.engine, command.deadline_ms);
    for (settings, schedule) in &settings {
        let scores = examiner.examine(&exams, settings, schedule)?;
        report.add(schedule, command.every(), &exams, scores);
        if examiner.interrupt.is_pressed() {
            report.is_partial = true;
            break;
        }
    }
    // Whatever is waited for now, an interrupt ends it.
    examiner.interrupt.set(true);
    // The progress bar goes with it.
    drop(examiner);
    report.say_wrong();
    let printed = match command.json {
        true => output::json(&report.json(settings.len() > 1)),
        false => output::results(|out| report.write(out)),
    };
    // A plot was asked for whether or not anybody reads the table.
    let plotted = command.plot.as_ref().map_or(Ok(()), |path| plot(&report, items, &path.0));
    match (printed, plotted) {
        (Err(Failure::BrokenPipe), Err(failure)) | (Err(failure), _) | (_, Err(failure)) => {
            Err(failure)
        }
        _ if report.is_partial => Ok(End::Interrupted),
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
        if !(1..=CANVASES_MAX).contains(&self.canvases()) {
            let message = format!("--canvases must be from 1 to {CANVASES_MAX}");
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
    fn canvases(&self) -> usize {
        self.canvases.unwrap_or(1)
    }

    /// The families asked for.
    fn families(&self) -> Result<Vec<tasks::Family>, Failure> {
        let names: Vec<&str> = self.family.iter().map(|name| name.0.as_str()).collect();
        match &self.tasks {
            Some(folder) => tasks::in_folder(&folder.0, &names),
            None => tasks::built_in(&names),
        }
    }

    /// Settings for each number of steps, and the schedules that they make.
    fn settings(&self, session: &Session) -> Result<Vec<(Settings, Schedule)>, Failure> {
        let steps = match &self.steps {
            None => vec![None],
            Some(steps) => steps.0.iter().copied().map(Some).collect(),
        };
        let settings = |steps| {
            let settings = self.settings_of(session.kind(), self.max_tokens, steps)?;
            let schedule = Schedule::new(session.kind(), &settings)?;
            Ok((settings, schedule))
        };
        let all: Vec<(Settings, Schedule)> =
            steps.into_iter().map(settings).collect::<Result<_, Failure>>()?;
        let mut made: Vec<u32> = all.iter().map(|(_, schedule)| schedule.steps_total(0)).collect();
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

fn encode<'a>(
    families: &'a [tasks::Family],
    command: &Eval,
    session: &Session,
) -> Result<Vec<Exam<'a>>, Failure> {
    let mut exams = Vec::with_capacity(families.len());
    for family in families {
        let mut requests = Vec::new();
        for (index, task) in family.tasks.iter().enumerate().step_by(command.every()) {
            let request = Request::new(task, session, command.no_chat);
            requests.push(request.map_err(|failure| {
                Failure::Task(format!("task {} of family {}: {failure}", index + 1, family.name))
            })?);
        }
        exams.push(Exam { name: &family.name, requests });
    }
    Ok(exams)
}

/// Refuses tasks that are longer than the model's context, by name, and warns of answers that
/// cannot be written in full.
fn check_lengths(
    exams: &[Exam<'_>],
    settings: &[(Settings, Schedule)],
    context: usize,
) -> Result<(), Failure> {
    // All have the same length.
    let gen_length = settings.first().map_or(0, |(settings, _)| settings.gen_length);
    let mut cut = 0;
    for exam in exams {
        for request in &exam.requests {
            let rows = request.rows(gen_length);
            if rows > context {
                let prompt = one_line(&request.task.prompt).chars().take(40).collect::<String>();
                return Err(Failure::Task(format!(
                    "a task of family {} (`{prompt}`) takes {rows} tokens with its answer, but the \
                     model's context_length is {context}",
                    exam.name
                )));
            }
            cut += usize::from(request.holes == 0 && request.answer_len > gen_length as usize);
        }
    }
    if cut > 0 {
        output::say(&format!("warning: {cut} answers are longer than --max-tokens {gen_length}"));
    }
    Ok(())
}

/// What the largest request needs.
fn limits(
    exams: &[Exam<'_>],
    settings: &[(Settings, Schedule)],
    threads: usize,
) -> Result<Limits, Failure> {
    let mut limits = Limits::new(1, 1, threads);
    for (settings, whole) in settings {
        for request in exams.iter().flat_map(|exam| &exam.requests) {
            let schedule = request.schedule(settings, whole)?;
            limits.rows = limits.rows.max(request.rows(settings.gen_length));
            limits.wanted = limits.wanted.max(schedule.wanted_max(request.masks));
            limits.logits |= schedule.needs_logits();
            limits.guidance |= schedule.cfg_scale() > 0.0;
            limits.cache |= schedule.cache() != Cache::None;
        }
    }
    Ok(limits)
}
