//! The steps of a generation and what is shown of them: progress, or the live canvas on standard
//! error, redrawn on a terminal and a line a step elsewhere.

use super::command::Run;
use crate::cli::failure::Failure;
use crate::cli::output::{self, Progress};
use dllm_rt::engine::Counters;
use dllm_rt::generate::Generation;
use dllm_rt::{Answer, Canvas, Engine, FinishReason, Model};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::Instant;

/// What stands for a mask.
const DOT: char = '·';

/// Shows a canvas after every step.
struct Watch<'a> {
    model: &'a Model,
    /// The area of the terminal that is redrawn.
    area: Option<ProgressBar>,
}

impl<'a> Watch<'a> {
    /// A watch over canvases of `model`.
    fn new(model: &'a Model) -> Watch<'a> {
        let area = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{msg}");
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        Watch { model, area }
    }

    /// Shows the generated part, or the whole canvas where there is none.
    fn show(&mut self, canvas: &Canvas) -> Result<(), Failure> {
        let whole = canvas.ids();
        let generated = &whole[canvas.prompt_len()..];
        let shown = if generated.is_empty() { whole } else { generated };
        let text = self.text(shown, self.area.is_some())?;
        let mut step = canvas.step_index().to_string();
        // The model's certainty decides how many there will be with a threshold or factor.
        if !canvas.parameters().is_adaptive() {
            step += &format!("/{}", canvas.steps_total());
        }
        match &self.area {
            Some(area) => area.set_message(format!("{text}\n[{step}]")),
            None => output::say(&format!("step {step}: {text}")),
        }
        Ok(())
    }

    /// Text with a dot a mask: dim ones and line breaks for a terminal, plain ones on one line
    /// elsewhere.
    fn text(&self, ids: &[u32], is_terminal: bool) -> Result<String, Failure> {
        let mask = self.model.facts().mask_token;
        let mut text = String::new();
        for run in ids.chunk_by(|a, b| (*a == mask) == (*b == mask)) {
            if run.contains(&mask) {
                let dots: String = std::iter::repeat_n(DOT, run.len()).collect();
                let dim = format!("\x1b[2m{dots}\x1b[0m");
                text.push_str(if is_terminal { &dim } else { &dots });
            } else {
                let breaks = |c: char| is_terminal && c == '\n';
                let safe = |c: char| if c.is_control() && !breaks(c) { ' ' } else { c };
                text.extend(self.model.text(run)?.chars().map(safe));
            }
        }
        Ok(text)
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if let Some(area) = &self.area {
            area.finish_and_clear();
        }
    }
}

/// What is done after every step.
pub struct Watchers<'a> {
    /// The canvas after every step so far.
    trace: Option<Vec<Vec<u32>>>,
    watch: Option<Watch<'a>>,
    progress: Progress,
}

impl<'a> Watchers<'a> {
    /// Those that the flags ask for.
    pub fn new(command: &Run, model: &'a Model) -> Watchers<'a> {
        Watchers {
            trace: (command.trace && command.json).then(Vec::new),
            watch: command.watch.then(|| Watch::new(model)),
            progress: Progress::masks(!command.watch),
        }
    }

    fn look(&mut self, generation: &Generation) -> Result<(), Failure> {
        let canvas = generation.canvas();
        // Masks rather than steps: the model's certainty may decide how many steps there will be.
        let (left, total) = (canvas.masks_left(), canvas.masks_total());
        self.progress.set(u64::from(total - left), u64::from(total));
        if let Some(trace) = &mut self.trace {
            trace.push(canvas.ids().to_vec());
        }
        self.watch.as_mut().map_or(Ok(()), |watch| watch.show(canvas))
    }

    /// Clears the terminal and gives the trace.
    pub fn finish(self) -> Option<Vec<Vec<u32>>> {
        self.trace
    }
}

/// How a generation went.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub generate_s: f64,
    /// What the engine's threads did in all steps after the first that made a pass.
    pub counters: Counters,
}

/// Steps until the generation is over.
pub fn generate(
    engine: &mut Engine,
    generation: &mut Generation,
    watchers: &mut Watchers<'_>,
) -> Result<Outcome, Failure> {
    engine.reset_stats();
    engine.set_counting(true);
    let start = Instant::now();
    while !generation.is_over() {
        let is_first = engine.stats().passes == 0;
        generation.step(engine)?;
        if is_first {
            // What the first pass touches for the first time is no step's cost. Dream's first step
            // may make none.
            engine.reset_counters();
        }
        watchers.look(generation)?;
    }
    engine.release(generation.sequence());
    Ok(Outcome { generate_s: start.elapsed().as_secs_f64(), counters: engine.counters() })
}

/// Says where a text was cut short, which may read as if it had not been.
pub fn say_cut(answer: &Answer) {
    let why = match answer.finish_reason {
        FinishReason::Deadline => "the time was up",
        FinishReason::Steps => "there were no more steps",
        FinishReason::Interrupt => "interrupted",
        FinishReason::Stop | FinishReason::Length => return,
    };
    output::say(&format!("{why}: {} positions are empty", answer.masks_left));
}
