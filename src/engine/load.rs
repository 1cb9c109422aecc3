//! The engine: loaded, asked, and requests laid out on it.

use super::kv_cache::{Age, Slots};
use super::sequence::Sequence;
use super::stats::StepStats;
use crate::backend::{Backend, Counters, FloatEnv, Limits, LoadReport, Options};
use crate::denoise::{Cache, Canvas, GenerationParameters, TokenFacts};
use crate::error::Error;
use crate::gguf::Gguf;
use crate::model::{Architecture, Config, Network};
use crate::sample::Kind;
use std::sync::Arc;

/// A model on its device. Everything was allocated by [`Engine::load`].
pub struct Engine {
    pub(super) backend: Backend,
    pub(super) config: Config,
    load: LoadReport,
    pub(super) stats: StepStats,
    pub(super) slots: Slots,
    /// What its sequences are known by.
    pub(super) identity: Arc<()>,
    sequences_made: u64,
    full_logits: bool,
}

/// The loop that models of an architecture were trained for; LLaDA's for those that generate
/// nothing, whose plans alone ask.
pub fn kind_of(architecture: Architecture) -> Kind {
    match architecture {
        Architecture::Llada | Architecture::Llama => Kind::Llada,
        Architecture::Dream => Kind::Dream,
    }
}

impl Engine {
    /// Loads the model of `gguf` for use within `limits`. `progress` is called with the bytes of
    /// the arena that are ready so far and their total.
    ///
    /// # Errors
    /// Whatever is wrong with the file, the limits or this machine, by name.
    pub fn load(
        gguf: &Gguf,
        limits: Limits,
        options: &Options,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Engine, Error> {
        let model = Network::from_gguf(gguf)?;
        let (backend, load) = Backend::load(gguf, &model, limits, options, progress)?;
        let slots = Slots::new(load.limits.sequences, load.kv_rows);
        Ok(Engine {
            backend,
            config: model.config,
            load,
            stats: StepStats::new(),
            slots,
            identity: Arc::new(()),
            sequences_made: 0,
            full_logits: false,
        })
    }

    /// Lays out a request. The only allocations of a generation are made here.
    ///
    /// # Errors
    /// A prompt or parameters that do not fit the model or the limits; a model that generates
    /// nothing.
    pub fn sequence(
        &mut self,
        prompt: &[u32],
        parameters: &GenerationParameters,
        facts: &TokenFacts,
    ) -> Result<Sequence, Error> {
        let _env = FloatEnv::enter();
        self.config.architecture.check_generates()?;
        let (facts_vocab, vocab) = (facts.vocab_size as usize, self.config.vocab);
        if facts_vocab != vocab {
            return Err(Error::Vocabulary { facts_vocab, vocab });
        }
        let (limits, full_logits) = (*self.limits(), self.full_logits);
        let canvas = Canvas::new(prompt, parameters, facts)?;
        self.check_rows(canvas.positions_max())?;
        if parameters.cfg_scale > 0.0 && !limits.guidance {
            return Err(Error::GuidanceNotPlanned);
        }
        if (full_logits || canvas.rule().needs_logits()) && !limits.logits {
            return Err(Error::LogitsNotPlanned);
        }
        let has_cache = parameters.cache != Cache::None;
        if has_cache && !limits.kv_cache {
            return Err(Error::KvCacheNotPlanned);
        }
        if has_cache && full_logits {
            return Err(Error::FullLogitsWithCache);
        }
        let holes = prompt.iter().filter(|id| **id == facts.mask_token).count();
        let rows = if full_logits { canvas.positions_max() } else { 0 };
        self.check_output_rows(parameters.candidates_max(holes).max(rows))?;
        let (engine, number) = (Arc::clone(&self.identity), self.sequences_made);
        self.sequences_made += 1;
        Ok(Sequence { canvas, engine, number, age: Age::default(), full_logits })
    }

    pub(super) fn check_rows(&self, rows: usize) -> Result<(), Error> {
        let rows_max = self.limits().rows;
        if rows > rows_max { Err(Error::CanvasTooLong { rows, rows_max }) } else { Ok(()) }
    }

    pub(super) fn check_output_rows(&self, rows: usize) -> Result<(), Error> {
        let rows_max = self.limits().output_rows;
        if rows > rows_max {
            Err(Error::OutputRows { output_rows: rows, output_rows_max: rows_max })
        } else {
            Ok(())
        }
    }

    /// Sizes and constants of the model.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The loop that the model was trained for.
    pub fn kind(&self) -> Kind {
        kind_of(self.config.architecture)
    }

    /// What was planned for.
    pub fn limits(&self) -> &Limits {
        &self.load.limits
    }

    /// The name of the instruction set in use.
    pub fn isa(&self) -> &'static str {
        self.backend.isa()
    }

    /// Bytes of the arena.
    pub fn arena_bytes(&self) -> usize {
        self.load.arena_bytes
    }

    /// Bytes of weights and tables in the arena.
    pub fn weight_bytes(&self) -> usize {
        self.load.weight_bytes
    }

    /// How the load went.
    pub fn load_report(&self) -> &LoadReport {
        &self.load
    }

    /// What the system refused without preventing the load.
    pub fn warnings(&self) -> &[String] {
        &self.load.warnings
    }

    /// What engine threads did since [`Engine::reset_stats`] that a step should not do, while
    /// [`Engine::set_counting`] was on.
    pub fn counters(&self) -> Counters {
        self.backend.counters()
    }

    /// Times and counts since [`Engine::reset_stats`].
    pub fn stats(&self) -> &StepStats {
        &self.stats
    }

    /// Starts counters and times anew.
    pub fn reset_stats(&mut self) {
        self.stats.reset();
        self.reset_counters();
    }

    /// Starts the counters alone anew: what the first step does is warm-up.
    pub fn reset_counters(&mut self) {
        self.backend.reset_counters();
    }

    /// Whether [`Engine::counters`] counts. Off at first: it takes two system calls a worker and
    /// pass.
    pub fn set_counting(&mut self, on: bool) {
        self.backend.set_counting(on);
    }

    /// Whether sequences that are made from now on compute the logits of every position at each
    /// step, as other runtimes do: for comparing times, no token changes. The limits must allow for
    /// logits, and as many output rows as a sequence has.
    pub fn set_full_logits(&mut self, on: bool) {
        self.full_logits = on;
    }

    /// Fills every buffer between the weights and the end of the arena with `pattern`: what a step
    /// reads it must have written. For tests.
    #[doc(hidden)]
    pub fn poison(&mut self, pattern: u32) {
        self.backend.poison(pattern);
    }
}
