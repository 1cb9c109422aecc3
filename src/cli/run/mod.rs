//! `run`: generates text.

mod chat;
mod generate;
mod report;
mod settings;
mod watch;

use crate::cli::answer::{Answer, Cut};
use crate::cli::args::{FilePath, Ids, Text};
use crate::cli::failure::Failure;
use crate::cli::flags::ModelFlags;
use crate::cli::generation::generation_command;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Progress;
use crate::cli::prompt::PromptFlags;
use crate::cli::session::{self, Session};
use crate::cli::{End, answer, output};
use dllm_rt::denoise::Cache;
use dllm_rt::{Canvas, Error, Limits, Schedule};
use generate::Watchers;
use report::Loaded;
use std::io::Write;
use std::time::{Duration, Instant};
use watch::Watch;

generation_command! {
    /// Generates text. The prompt is one of --prompt, --prompt-file, --messages, --tokens or
    /// standard input; the text goes to standard output.
    #[argh(subcommand, name = "run")]
    pub struct Run {
        /// the user's turn, or with --no-chat the text to continue
        #[argh(option, arg_name = "text")]
        prompt: Option<Text>,
        /// a file with the same
        #[argh(option, arg_name = "path")]
        prompt_file: Option<FilePath>,
        /// a JSON file with chat turns
        #[argh(option, arg_name = "path")]
        messages: Option<FilePath>,
        /// token ids, separated by commas, taken as they are: no template, no BOS; the mask
        /// token's id is a hole to fill
        #[argh(option, arg_name = "ids")]
        tokens: Option<Ids>,
        /// a system turn before the others
        #[argh(option, arg_name = "text")]
        system: Option<Text>,
        /// end the text before this; may be given several times
        #[argh(option, arg_name = "text")]
        stop: Vec<Text>,
        /// chat in the terminal: a line is a turn, /clear forgets, /exit or end of input ends
        #[argh(switch)]
        interactive: bool,
        /// with --no-chat: control tokens written in the text are tokens
        #[argh(switch)]
        special: bool,
        /// read [[n]] in the prompt's text as a hole of n tokens to fill in place
        #[argh(switch)]
        holes: bool,
        /// tokens to generate after the prompt; 0 only fills holes (default: 128)
        #[argh(option, arg_name = "n")]
        max_tokens: Option<u32>,
        /// denoising steps (default: --max-tokens, or with 0 the number of holes)
        #[argh(option, arg_name = "n")]
        steps: Option<u32>,
        /// compute the logits of every position at each step, to compare times; the text is the
        /// same
        #[argh(switch)]
        full_logits: bool,
        /// with --json: the whole canvas after every step
        #[argh(switch)]
        trace: bool,
        /// show the canvas on standard error while it is filled
        #[argh(switch)]
        watch: bool,
    }
}

/// Runs the command.
///
/// # Errors
/// Flags, a prompt or a model that cannot be used.
pub fn run(command: Run) -> Result<End, Failure> {
    command.check()?;
    let flags = command.model_flags();
    if command.interactive { chat::run(&command, &flags) } else { once(&command, &flags) }
}

impl Run {
    fn prompt_flags(&self) -> PromptFlags<'_> {
        PromptFlags {
            prompt: self.prompt.as_ref(),
            file: self.prompt_file.as_ref(),
            messages: self.messages.as_ref(),
            tokens: self.tokens.as_ref(),
            system: self.system.as_ref(),
            no_chat: self.no_chat,
            special: self.special,
            holes: self.holes,
        }
    }

    /// The schedule.
    fn schedule(&self, session: &Session) -> Result<Schedule, Failure> {
        let settings = self.settings_of(session.kind(), self.max_tokens, self.steps)?;
        let schedule = Schedule::new(session.kind(), &settings)?;
        if self.full_logits && schedule.cache() != Cache::None {
            return Err(Error::FullLogitsWithCache.into());
        }
        Ok(schedule)
    }

    /// How long a generation may take.
    fn deadline(&self) -> Option<Duration> {
        self.deadline_ms.map(Duration::from_millis)
    }

    /// The texts that end the answer.
    fn stops(&self) -> Vec<&str> {
        self.stop.iter().map(|text| text.0.as_str()).collect()
    }
}

/// One prompt, one answer.
fn once(command: &Run, flags: &ModelFlags) -> Result<End, Failure> {
    let (source, options) = (flags.source(), flags.options()?);
    let prompt = command.prompt_flags().read()?;
    let session = Session::open(source, flags.mask_token)?;
    source.introduce();
    let schedule = command.schedule(&session)?;
    let mask = session.facts.mask_token;
    let prompt = prompt.encode(&session.vocab, command.holes.then_some(mask))?;
    // Refused here rather than after the model is loaded.
    let canvas = Canvas::new(&prompt, &schedule, &session.facts)?;
    let rows = canvas.positions_max();
    let limits = limits(command, &schedule, rows, holes(&prompt, mask), flags);
    session::check_context(limits.rows, &session.config)?;
    let model_hash = if command.json { session.hash(flags.threads()) } else { String::new() };
    let start = Instant::now();
    let mut engine = session::load(&session.gguf, limits, &options, flags)?;
    engine.set_full_logits(command.full_logits);
    let load_s = start.elapsed().as_secs_f64();
    let mut canvas = engine.canvas(&prompt, &schedule, &session.facts)?;
    let interrupt = Interrupt::listen()?;
    let mut watchers = Watchers {
        trace: (command.trace && command.json).then(Vec::new),
        watch: command.watch.then(|| Watch::new(&session)),
        progress: Progress::masks(!command.watch),
    };
    let deadline = command.deadline();
    let outcome =
        generate::generate(&mut engine, &mut canvas, &interrupt, deadline, &mut watchers)?;
    let trace = watchers.finish();
    let answer = Answer::new(&session, &canvas, &command.stops(), outcome.cut)?;
    let holes = answer::holes(&session, &prompt, &canvas)?;
    answer::say_cut(&answer, &canvas);
    if flags.verbose {
        report::say(&engine, &outcome);
    }
    if command.json {
        let loaded = Loaded { source, model_hash, load_s, options: &options, session: &session };
        let mut report = report::report(&loaded, &engine, &canvas, &schedule, &outcome, &answer);
        (report.holes, report.trace) = (holes, trace);
        output::json(&report)?;
    } else {
        if schedule.gen_length() > 0 {
            holes.iter().for_each(|hole| output::say(&hole.to_string()));
        }
        output::results(|out| writeln!(out, "{}", answer.text))?;
    }
    Ok(if outcome.cut == Some(Cut::Interrupt) { End::Interrupted } else { End::Done })
}

/// What the request needs, and no more.
fn limits(
    command: &Run,
    schedule: &Schedule,
    rows: usize,
    holes: usize,
    flags: &ModelFlags,
) -> Limits {
    let wanted = if command.full_logits { rows } else { schedule.wanted_max(holes) };
    Limits {
        logits: command.full_logits || schedule.needs_logits(),
        guidance: schedule.cfg_scale() > 0.0,
        cache: schedule.cache() != Cache::None,
        // A canvas without masks wants nothing, but a plan is for at least one row.
        ..Limits::new(rows, wanted.max(1), flags.threads())
    }
}

fn holes(prompt: &[u32], mask: u32) -> usize {
    prompt.iter().filter(|id| **id == mask).count()
}
