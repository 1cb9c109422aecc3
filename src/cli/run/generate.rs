//! The loop over steps, with whoever looks on.

use super::watch::Watch;
use crate::cli::answer::Cut;
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Progress;
use dllm_rt::team::Counters;
use dllm_rt::{Canvas, Engine};
use std::time::{Duration, Instant};

/// What is done after every step.
pub struct Watchers<'a> {
    /// The canvas after every step so far.
    pub trace: Option<Vec<Vec<u32>>>,
    /// The live canvas.
    pub watch: Option<Watch<'a>>,
    /// The progress bar.
    pub progress: Progress,
}

impl Watchers<'_> {
    fn look(&mut self, canvas: &Canvas) -> Result<(), Failure> {
        // Masks rather than steps: how many steps there will be the model's certainty may decide.
        let (left, total) = (canvas.masks_left(), canvas.masks_total());
        self.progress.set(u64::from(total - left), u64::from(total));
        if let Some(trace) = &mut self.trace {
            trace.push(canvas.ids().to_vec());
        }
        match &mut self.watch {
            Some(watch) => watch.show(canvas),
            None => Ok(()),
        }
    }

    /// Takes everything off the terminal and gives the trace.
    pub fn finish(self) -> Option<Vec<Vec<u32>>> {
        self.trace
    }
}

/// How a generation went.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// What ended it before it was done.
    pub cut: Option<Cut>,
    /// Seconds of all steps.
    pub generate_s: f64,
    /// What the engine's threads did in all steps after the first that made a pass.
    pub counters: Counters,
}

/// Steps until the canvas is done, the time is up or the user has had enough.
///
/// # Errors
/// Those of the live canvas.
pub fn generate(
    engine: &mut Engine,
    canvas: &mut Canvas,
    interrupt: &Interrupt,
    deadline: Option<Duration>,
    watchers: &mut Watchers<'_>,
) -> Result<Outcome, Failure> {
    engine.reset_stats();
    engine.set_counting(true);
    let start = Instant::now();
    let mut cut = None;
    while !canvas.is_done() {
        // Asked for so that a deadline of 0 makes no step.
        cut = Cut::now(interrupt, deadline, start);
        if cut.is_some() {
            break;
        }
        let is_first = engine.stats().passes == 0;
        engine.step(canvas);
        if is_first {
            // Whatever the first pass had to touch for the first time is no step's cost. Dream's
            // first step may make none.
            engine.reset_counters();
        }
        watchers.look(canvas)?;
    }
    Ok(Outcome { cut, generate_s: start.elapsed().as_secs_f64(), counters: engine.counters() })
}
