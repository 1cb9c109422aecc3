//! Puts tasks before a model and counts.

use super::question::Question;
use crate::cli::args::one_line;
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Progress;
use dllm_rt::generate::{Batch, Generation, PreparedRequest};
use dllm_rt::{Engine, GenerationParameters, Model, RequestParameters};
use std::fmt;
use std::time::{Duration, Instant};

/// A family's tasks, ready to be put.
pub struct Exam<'a> {
    pub name: &'a str,
    /// In the order of its tasks.
    pub questions: Vec<Question<'a>>,
}

/// Sums over tasks.
#[derive(Clone, Debug, Default)]
pub struct Score {
    pub items: usize,
    /// Tasks whose answer was the right one, to the last byte.
    pub right: usize,
    pub passes: u64,
    pub rows: u64,
    /// Tokens that the model wrote, ends and what comes after them not counted.
    pub tokens: u64,
    pub seconds: f64,
    /// Wrong answers, as many as were asked for.
    pub wrong: Vec<Wrong>,
    /// Every answer, where they were asked for.
    pub answers: Vec<String>,
}

/// A wrong answer.
#[derive(Clone, Debug)]
pub struct Wrong {
    pub prompt: String,
    pub expected: String,
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

/// A loaded model and what is shown of its work.
pub struct Examiner<'a> {
    pub model: &'a Model,
    pub engine: Engine,
    pub interrupt: Interrupt,
    /// Of all tasks of all parameters.
    pub progress: Progress,
    pub done: u64,
    pub total: u64,
    /// Wrong answers to keep of each family.
    pub show: usize,
    pub keeps_answers: bool,
    /// How long an answer may take.
    pub deadline: Option<Duration>,
}

/// What was answered to a task.
struct Answered {
    number: usize,
    answer: String,
}

impl Examiner<'_> {
    /// The score of each family with these parameters; after an interrupt, of the tasks that were
    /// answered until then.
    pub fn examine(
        &mut self,
        exams: &[Exam<'_>],
        asked: &RequestParameters,
        parameters: &GenerationParameters,
    ) -> Result<Vec<Score>, Failure> {
        let mut scores = Vec::with_capacity(exams.len());
        for exam in exams {
            let mut score = Score::default();
            let prepare = |question: &Question<'_>| {
                question.prepare(self.model, asked, parameters, self.deadline)
            };
            let requests: Vec<_> = exam.questions.iter().map(prepare).collect::<Result<_, _>>()?;
            let mut answered = self.answer(exam, &requests, &mut score)?;
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
    /// interrupts; adds what that took to `score`.
    fn answer(
        &mut self,
        exam: &Exam<'_>,
        requests: &[PreparedRequest],
        score: &mut Score,
    ) -> Result<Vec<Answered>, Failure> {
        let mut waiting = (0_u64..).zip(requests);
        let mut batch = Batch::new(&self.engine);
        let mut answered = Vec::with_capacity(requests.len());
        let mut seconds = 0.0;
        self.engine.reset_stats();
        loop {
            while batch.has_room()
                && let Some((number, request)) = waiting.next()
            {
                batch.join(number, Generation::start(&mut self.engine, request)?)?;
            }
            if batch.is_empty() || self.interrupt.is_pressed() {
                return Ok(answered);
            }
            let over = batch.leave(&mut self.engine);
            if over.is_empty() {
                let start = Instant::now();
                batch.step(&mut self.engine, |_, _| ())?;
                seconds += start.elapsed().as_secs_f64();
            }
            for (number, generation) in over {
                let number = number as usize;
                let (answer, tokens) =
                    exam.questions[number].read(self.model, generation.canvas())?;
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
        let (answer, task) = (answered.answer, exam.questions[answered.number].task);
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
