//! Requests that are being answered: stepped alone or in a batch, until they are done, cancelled,
//! or out of time.

use super::request::PreparedRequest;
use crate::denoise::{Canvas, Progress};
use crate::engine::{Engine, Sequence};
use crate::error::Error;
use serde::Serialize;
use std::borrow::{Borrow, BorrowMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Why an answer ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FinishReason {
    /// At an end-of-text or end-of-turn token, or before a stop text.
    Stop,
    /// With the canvas.
    Length,
    /// When there were no more steps, with masks left.
    Steps,
    /// When the time was up.
    Deadline,
    /// When it was cancelled.
    Interrupt,
}

/// A request that is being answered on an engine. Give up one that is not over with
/// [`Engine::release`]: otherwise its KV slot is the last to be used again.
#[derive(Debug)]
pub struct Generation {
    sequence: Sequence,
    turns: Vec<String>,
    stop: Vec<String>,
    deadline: Option<Instant>,
    cancelled: Arc<AtomicBool>,
    /// What ended it before it was done.
    cut: Option<FinishReason>,
}

impl Generation {
    /// Lays out a request on an engine of its model; its deadline begins now. All memory that
    /// stepping needs is taken here.
    ///
    /// # Errors
    /// A request that the engine's limits leave no room for.
    pub fn start(engine: &mut Engine, request: &PreparedRequest) -> Result<Generation, Error> {
        let sequence = engine.sequence(&request.ids, &request.parameters, &request.facts)?;
        // A deadline beyond the clock's range is none.
        let deadline = request.deadline.and_then(|limit| Instant::now().checked_add(limit));
        let cancelled = Arc::new(AtomicBool::new(false));
        let (turns, stop) = (request.turns.clone(), request.stop.clone());
        Ok(Generation { sequence, turns, stop, deadline, cancelled, cut: None })
    }

    /// One denoising step of this generation alone.
    ///
    /// # Errors
    /// An engine that did not start it.
    pub fn step(&mut self, engine: &mut Engine) -> Result<Progress<'_>, Error> {
        engine.step_one(&mut self.sequence)
    }

    /// Whether it needs no more steps: it is done, was cancelled, or its time is up.
    pub fn is_over(&mut self) -> bool {
        if self.sequence.canvas().is_done() || self.cut.is_some() {
            return true;
        }
        if self.cancelled.load(Ordering::Relaxed) {
            self.cut = Some(FinishReason::Interrupt);
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.cut = Some(FinishReason::Deadline);
        }
        self.cut.is_some()
    }

    /// What cancels it, from any thread: it ends before its next step once this is true.
    pub fn canceller(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancelled)
    }

    /// Has `flag`, which other threads may set, cancel it from now on.
    pub fn cancel_by(&mut self, flag: Arc<AtomicBool>) {
        self.cancelled = flag;
    }

    /// The tokens so far.
    pub fn canvas(&self) -> &Canvas {
        self.sequence.canvas()
    }

    /// Its place in the engine.
    pub fn sequence(&self) -> &Sequence {
        &self.sequence
    }

    /// Contents of the turns that have holes.
    pub(super) fn turns(&self) -> &[String] {
        &self.turns
    }

    pub(super) fn stop(&self) -> &[String] {
        &self.stop
    }

    /// What ended it before it was done: `Interrupt` or `Deadline`.
    pub fn cut(&self) -> Option<FinishReason> {
        self.cut
    }
}

/// So that [`Engine::step`] takes a slice of generations.
impl Borrow<Sequence> for Generation {
    fn borrow(&self) -> &Sequence {
        &self.sequence
    }
}

impl BorrowMut<Sequence> for Generation {
    fn borrow_mut(&mut self) -> &mut Sequence {
        &mut self.sequence
    }
}

/// Generations that step together, in passes that they share. They join and leave between steps;
/// neighbours change no token of each other.
#[derive(Debug)]
pub struct Batch {
    members: Vec<Member>,
    sequences: usize,
}

#[derive(Debug)]
struct Member {
    number: u64,
    generation: Generation,
}

impl Borrow<Sequence> for Member {
    fn borrow(&self) -> &Sequence {
        &self.generation.sequence
    }
}

impl BorrowMut<Sequence> for Member {
    fn borrow_mut(&mut self) -> &mut Sequence {
        &mut self.generation.sequence
    }
}

impl Batch {
    /// An empty batch for as many sequences as the engine was planned for.
    pub fn new(engine: &Engine) -> Batch {
        let sequences = engine.limits().sequences;
        Batch { members: Vec::with_capacity(sequences), sequences }
    }

    /// Whether no generation is in it.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether one more may join.
    pub fn has_room(&self) -> bool {
        self.members.len() < self.sequences
    }

    /// Adds a generation under a number of the caller's.
    ///
    /// # Errors
    /// [`Error::SequencesTooMany`] where there is no room, [`Error::ForeignSequence`] for a
    /// generation of another engine than the batch's first.
    pub fn join(&mut self, number: u64, generation: Generation) -> Result<(), Error> {
        if !self.has_room() {
            return Err(Error::SequencesTooMany {
                sequences: self.members.len() + 1,
                sequences_max: self.sequences,
            });
        }
        if let Some(first) = self.members.first()
            && !first.generation.sequence.shares_engine(&generation.sequence)
        {
            return Err(Error::ForeignSequence);
        }
        self.members.push(Member { number, generation });
        Ok(())
    }

    /// Takes out those that need no more steps, with their numbers, and frees their places.
    pub fn leave(&mut self, engine: &mut Engine) -> Vec<(u64, Generation)> {
        let over = self.members.extract_if(.., |member| member.generation.is_over());
        let over: Vec<_> = over.map(|member| (member.number, member.generation)).collect();
        over.iter().for_each(|(_, generation)| engine.release(&generation.sequence));
        over
    }

    /// One denoising step of each, all in one pass. `after` is called with the number of each that
    /// made a step, and what that did.
    ///
    /// # Errors
    /// An engine that did not start them.
    pub fn step(
        &mut self,
        engine: &mut Engine,
        mut after: impl FnMut(u64, Progress<'_>),
    ) -> Result<(), Error> {
        // The engine tells indices, and borrows the members while it does.
        let mut numbers = [0; crate::backend::SEQUENCES_MAX];
        for (number, member) in numbers.iter_mut().zip(&self.members) {
            *number = member.number;
        }
        engine.step(&mut self.members, |index, progress| after(numbers[index], progress))
    }
}
