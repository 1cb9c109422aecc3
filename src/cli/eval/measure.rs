//! Puts tasks before a model and counts.

use super::request::Request;
use crate::cli::args::one_line;
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Progress;
use crate::cli::session::Session;
use dllm_rt::denoise::Settings;
use dllm_rt::{Canvas, Engine, Schedule};
use std::borrow::{Borrow, BorrowMut};
use std::fmt;
use std::time::{Duration, Instant};

/// A family's tasks, ready to be put.
pub struct Exam<'a> {
    /// Its name.
    pub name: &'a str,
    /// In the order of its tasks.
    pub requests: Vec<Request<'a>>,
}

/// Sums over tasks.
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// Tasks put.
    pub items: usize,
    /// Tasks whose answer was the right one, to the last byte.
    pub right: usize,
    /// Forward passes.
    pub passes: u64,
    /// Rows of all passes.
    pub rows: u64,
    /// Tokens that the model wrote, ends and what comes after them not counted.
    pub tokens: u64,
    /// Seconds of all steps.
    pub seconds: f64,
    /// Wrong answers, as many as were asked for.
    pub wrong: Vec<Wrong>,
    /// Every answer, where they were asked for.
    pub answers: Vec<String>,
}

/// A wrong answer.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// What was asked.
    pub prompt: String,
    /// The right answer.
    pub expected: String,
    /// What was said.
    pub answer: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wrong { prompt, expected, answer } = self;
        write!(f, "{}: {answer:?}, not {expected:?}", one_line(prompt))
    }
}

impl Score {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Score) {
        self.items += other.items;
        self.right += other.right;
        self.passes += other.passes;
        self.rows += other.rows;
        self.tokens += other.tokens;
        self.seconds += other.seconds;
    }

    /// Share of right answers, 0 to 1.
    pub fn exact_match(&self) -> f64 {
        self.right as f64 / self.items.max(1) as f64
    }

    /// Forward passes an answer took; those that several shared count once.
    pub fn passes_per_answer(&self) -> f64 {
        self.passes as f64 / self.items.max(1) as f64
    }

    /// Rows that were computed for an answer.
    pub fn rows_per_answer(&self) -> f64 {
        self.rows as f64 / self.items.max(1) as f64
    }

    /// Tokens of answers a forward pass gave.
    pub fn tokens_per_pass(&self) -> f64 {
        self.tokens as f64 / self.passes.max(1) as f64
    }

    /// Tokens of answers a second.
    pub fn tokens_per_s(&self) -> f64 {
        if self.seconds > 0.0 { self.tokens as f64 / self.seconds } else { 0.0 }
    }
}

/// A loaded model and who looks on.
pub struct Examiner<'a> {
    /// The model's metadata.
    pub session: &'a Session,
    /// The model.
    pub engine: Engine,
    /// Ends the work.
    pub interrupt: Interrupt,
    /// Of all tasks of all settings.
    pub progress: Progress,
    /// Tasks put so far.
    pub done: u64,
    /// Tasks to put.
    pub total: u64,
    /// Wrong answers to keep of each family.
    pub show: usize,
    /// Whether to keep every answer.
    pub keeps_answers: bool,
    /// How long an answer may take.
    pub deadline: Option<Duration>,
}

/// A task that is being answered.
struct Seat {
    /// Its number in the family.
    number: usize,
    canvas: Canvas,
    /// When it was taken.
    start: Instant,
}

impl Borrow<Canvas> for Seat {
    fn borrow(&self) -> &Canvas {
        &self.canvas
    }
}

impl BorrowMut<Canvas> for Seat {
    fn borrow_mut(&mut self) -> &mut Canvas {
        &mut self.canvas
    }
}

/// What was answered to a task.
struct Answered {
    number: usize,
    answer: String,
}

impl Examiner<'_> {
    /// The score of each family with these settings; where the user has had enough, of the tasks
    /// that were answered until then.
    ///
    /// # Errors
    /// Those of decoding, and whatever the engine refuses, which limits made for it do not give.
    pub fn examine(
        &mut self,
        exams: &[Exam<'_>],
        settings: &Settings,
        schedule: &Schedule,
    ) -> Result<Vec<Score>, Failure> {
        let mut scores = Vec::with_capacity(exams.len());
        for exam in exams {
            let mut score = Score::default();
            let mut answered = self.answer(exam, settings, schedule, &mut score)?;
            // Those that share passes are not done in the order in which they began.
            answered.sort_unstable_by_key(|answered| answered.number);
            answered.into_iter().for_each(|answered| self.mark(exam, answered, &mut score));
            if self.interrupt.is_pressed() {
                scores.extend((score.items > 0).then_some(score));
                return Ok(scores);
            }
            scores.push(score);
        }
        Ok(scores)
    }

    /// Answers a family's tasks, as many at a time as share passes, until all are done or the user
    /// has had enough; adds what that took to `score`.
    fn answer(
        &mut self,
        exam: &Exam<'_>,
        settings: &Settings,
        schedule: &Schedule,
        score: &mut Score,
    ) -> Result<Vec<Answered>, Failure> {
        let mut waiting = exam.requests.iter().enumerate();
        let mut seats: Vec<Seat> = Vec::with_capacity(self.engine.limits().canvases);
        let mut answered = Vec::with_capacity(exam.requests.len());
        let mut seconds = 0.0;
        self.engine.reset_stats();
        loop {
            while seats.len() < self.engine.limits().canvases
                && let Some((number, request)) = waiting.next()
            {
                let schedule = request.schedule(settings, schedule)?;
                let canvas = self.engine.canvas(&request.given, &schedule, &self.session.facts)?;
                seats.push(Seat { number, canvas, start: Instant::now() });
            }
            if seats.is_empty() || self.interrupt.is_pressed() {
                return Ok(answered);
            }
            let is_late = |seat: &Seat| {
                self.deadline.is_some_and(|deadline| seat.start.elapsed() >= deadline)
            };
            let is_over = |seat: &mut Seat| seat.canvas.is_done() || is_late(seat);
            let over: Vec<Seat> = seats.extract_if(.., is_over).collect();
            if over.is_empty() {
                let start = Instant::now();
                self.engine.step_together(&mut seats, |_, _| ());
                seconds += start.elapsed().as_secs_f64();
            }
            for Seat { number, canvas, .. } in over {
                self.engine.forget(&canvas);
                let (answer, tokens) = exam.requests[number].read(self.session, &canvas)?;
                score.tokens += tokens as u64;
                score.passes = self.engine.stats().passes;
                score.rows = self.engine.stats().rows_computed;
                score.seconds = seconds;
                answered.push(Answered { number, answer });
                self.done += 1;
                self.progress.set(self.done, self.total);
            }
        }
    }

    /// Counts an answer, right or wrong.
    fn mark(&self, exam: &Exam<'_>, answered: Answered, score: &mut Score) {
        let (answer, task) = (answered.answer, exam.requests[answered.number].task);
        score.items += 1;
        if self.keeps_answers {
            score.answers.push(answer.clone());
        }
        if answer == task.answer {
            score.right += 1;
        } else if score.wrong.len() < self.show {
            let (prompt, expected) = (task.prompt.clone(), task.answer.clone());
            score.wrong.push(Wrong { prompt, expected, answer });
        }
    }
}
