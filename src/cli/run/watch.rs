//! The live canvas on standard error: redrawn on a terminal, a line a step elsewhere.

use crate::cli::answer;
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::cli::session::Session;
use dllm_rt::Canvas;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};

/// What stands for a mask.
const DOT: char = '·';

/// Shows a canvas after every step.
pub struct Watch<'a> {
    session: &'a Session,
    /// The area of the terminal that is redrawn.
    area: Option<ProgressBar>,
}

impl<'a> Watch<'a> {
    /// A watch over canvases of `session`.
    pub fn new(session: &'a Session) -> Watch<'a> {
        let area = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{msg}");
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        Watch { session, area }
    }

    /// Shows the generated part, or the whole canvas where there is none.
    ///
    /// # Errors
    /// Those of decoding.
    pub fn show(&mut self, canvas: &Canvas) -> Result<(), Failure> {
        let whole = canvas.ids();
        let generated = &whole[canvas.prompt_len()..];
        let shown = if generated.is_empty() { whole } else { generated };
        let text = self.text(shown, self.area.is_some())?;
        let mut step = canvas.step_index().to_string();
        // Of an adaptive pace nobody knows how many there will be.
        if !canvas.schedule().pace().is_adaptive() {
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
        let mask = self.session.facts.mask_token;
        let mut text = String::new();
        for run in ids.chunk_by(|a, b| (*a == mask) == (*b == mask)) {
            if run.contains(&mask) {
                let dots: String = std::iter::repeat_n(DOT, run.len()).collect();
                let dim = format!("\x1b[2m{dots}\x1b[0m");
                text.push_str(if is_terminal { &dim } else { &dots });
            } else {
                let breaks = |c: char| is_terminal && c == '\n';
                let safe = |c: char| if c.is_control() && !breaks(c) { ' ' } else { c };
                text.extend(answer::text(self.session, run)?.chars().map(safe));
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
