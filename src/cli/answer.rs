//! The text of a canvas.

use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::output;
use crate::cli::session::Session;
use dllm_rt::Canvas;
use dllm_rt::vocab::Show;
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};

/// Why an answer ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Finish {
    /// At an end-of-text or end-of-turn token, or before a stop text.
    Stop,
    /// With the canvas.
    Length,
    /// When there were no more steps, with masks left.
    Steps,
    /// When the time was up.
    Deadline,
    /// At an interrupt.
    Interrupt,
}

/// What ends a generation before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The time is up.
    Deadline,
    /// The user has had enough.
    Interrupt,
}

impl Cut {
    /// What there is to end a generation that began at `start`.
    pub fn now(interrupt: &Interrupt, deadline: Option<Duration>, start: Instant) -> Option<Cut> {
        if interrupt.is_pressed() {
            return Some(Cut::Interrupt);
        }
        deadline.filter(|deadline| start.elapsed() >= *deadline).map(|_| Cut::Deadline)
    }
}

/// The text that a canvas holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The generated part up to its end, masks left out; of a canvas without one the whole canvas.
    pub text: String,
    /// Why it ends there.
    pub finish: Finish,
}

impl Answer {
    /// The answer on `canvas`, cut before the first of `stops` in it.
    ///
    /// # Errors
    /// Those of decoding.
    pub fn new(
        session: &Session,
        canvas: &Canvas,
        stops: &[&str],
        cut: Option<Cut>,
    ) -> Result<Answer, Failure> {
        let (prompt, generated) = canvas.ids().split_at(canvas.prompt_len());
        let end = generated.iter().position(|id| session.is_end(*id));
        // Stops are looked for in what was generated, not in the user's own text.
        let (shown, stops) = match generated.is_empty() {
            true => (prompt, &[][..]),
            false => (&generated[..end.unwrap_or(generated.len())], stops),
        };
        let mask = session.facts.mask_token;
        let (mut text, mut masks, mut has_ended) = (String::new(), 0, end.is_some());
        // What masks keep apart is not one text, in which a stop might be found.
        for (before, run) in shown.split(|id| *id == mask).enumerate() {
            masks = before;
            let part = self::text(session, run)?;
            let stop = stops.iter().filter_map(|stop| part.find(stop)).min();
            text.push_str(&part[..stop.unwrap_or(part.len())]);
            if stop.is_some() {
                has_ended = true;
                break;
            }
        }
        let is_whole = has_ended && masks == 0 && !prompt.contains(&mask);
        let finish = match cut {
            Some(Cut::Interrupt) => Finish::Interrupt,
            _ if is_whole => Finish::Stop,
            Some(Cut::Deadline) => Finish::Deadline,
            None if canvas.has_run_out_of_steps() => Finish::Steps,
            None if has_ended => Finish::Stop,
            None => Finish::Length,
        };
        Ok(Answer { text, finish })
    }
}

/// Says where a text was cut short, which may read as if it had not been.
pub fn say_cut(answer: &Answer, canvas: &Canvas) {
    let why = match answer.finish {
        Finish::Deadline => "the time was up",
        Finish::Steps => "there were no more steps",
        Finish::Stop | Finish::Length | Finish::Interrupt => return,
    };
    output::say(&format!("{why}: {} positions are empty", canvas.masks_left()));
}

/// What a hole of the prompt was filled with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Filled {
    /// Its first position on the canvas.
    pub position: usize,
    /// The ids in it.
    pub tokens: Vec<u32>,
    /// Their text, masks left out.
    pub text: String,
}

impl fmt::Display for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hole at position {}: {:?}", self.position, self.text)
    }
}

/// The prompt's holes, adjacent masks as one.
///
/// # Errors
/// Those of decoding.
pub fn holes(session: &Session, prompt: &[u32], canvas: &Canvas) -> Result<Vec<Filled>, Failure> {
    let mask = session.facts.mask_token;
    let mut holes = Vec::new();
    let mut position = 0;
    for run in prompt.chunk_by(|a, b| (*a == mask) == (*b == mask)) {
        if run.contains(&mask) {
            let tokens = canvas.ids()[position..position + run.len()].to_vec();
            holes.push(Filled { position, text: text(session, &tokens)?, tokens });
        }
        position += run.len();
    }
    Ok(holes)
}

/// Text of ids; masks, control tokens and rows of the model that are no token are left out.
pub fn text(session: &Session, ids: &[u32]) -> Result<String, Failure> {
    let is_token = |id: &u32| (*id as usize) < session.vocab.token_count();
    let is_text = |id: &u32| *id != session.facts.mask_token && is_token(id);
    let ids: Vec<u32> = ids.iter().copied().filter(is_text).collect();
    Ok(session.vocab.decode_text(&ids, Show::TextOnly)?)
}
