//! What a caller will never exceed, and how a load within it went.

use super::error::Error;
use serde::Serialize;

/// Longest sequence: positions fit the rotary table's and the sampler's u32 arithmetic with room,
/// and a plan this long is already far beyond any supported model's context.
pub const ROWS_MAX: usize = 1 << 20;
/// Most sequences of a batch. What a pass is told of each is copied to every worker, and that many
/// blocks of 32 rows are far beyond the length from which matrices run at full speed.
pub const SEQUENCES_MAX: usize = 16;
/// Most worker threads: scratch is planned per worker.
pub const THREADS_MAX: usize = 1024;

/// What the caller will never exceed; every buffer's size follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Longest sequence in tokens, prompt included.
    pub rows: usize,
    /// Most output rows of a sequence in one forward pass.
    pub output_rows: usize,
    /// Sequences that may share a pass, and that the KV cache has slots for; each as long as
    /// `rows`.
    pub sequences: usize,
    /// Whether whole rows of logits may be asked for: by a caller, or by a request whose rule
    /// [needs them](crate::sample::Rule::needs_logits). Without, a step keeps statistics of them
    /// alone, a tenth of their `output_rows x vocabulary x 4` bytes.
    pub logits: bool,
    /// Whether classifier-free guidance may be used: a second set of logits. Implies `logits`.
    pub guidance: bool,
    /// Whether there is a KV cache: keys and values for each layer, where passes that compute every
    /// row share one set.
    pub kv_cache: bool,
    /// Worker threads, the caller's included.
    pub threads: usize,
}

impl Limits {
    /// Room for all that either leaves room for.
    pub fn max(self, other: Limits) -> Limits {
        Limits {
            rows: self.rows.max(other.rows),
            output_rows: self.output_rows.max(other.output_rows),
            sequences: self.sequences.max(other.sequences),
            logits: self.logits || other.logits,
            guidance: self.guidance || other.guidance,
            kv_cache: self.kv_cache || other.kv_cache,
            threads: self.threads.max(other.threads),
        }
    }

    /// For one sequence at a time and statistics of logits alone, without a KV cache.
    pub const fn new(rows: usize, output_rows: usize, threads: usize) -> Limits {
        let (sequences, logits, guidance, kv_cache) = (1, false, false, false);
        Limits { rows, output_rows, sequences, logits, guidance, kv_cache, threads }
    }

    /// The same with `output_rows` at most `rows`, and `logits` where guidance implies it.
    ///
    /// # Errors
    /// [`Error::Limit`].
    pub fn checked(self) -> Result<Limits, Error> {
        let output_rows = self.output_rows.min(self.rows);
        for (name, asked, max) in [
            ("rows", self.rows, ROWS_MAX),
            ("output_rows", output_rows, ROWS_MAX),
            ("sequences", self.sequences, SEQUENCES_MAX),
            ("threads", self.threads, THREADS_MAX),
        ] {
            if asked == 0 || asked > max {
                return Err(Error::Limit { name, asked, max });
            }
        }
        Ok(Limits { output_rows, logits: self.logits || self.guidance, ..self })
    }
}

/// How a load went.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadReport {
    /// What was planned for: the limits asked for, as [`Limits::checked`] gives them.
    pub limits: Limits,
    /// Rows of the KV cache, `limits.sequences` times those of a slot.
    pub kv_rows: usize,
    /// Bytes of the arena.
    pub arena_bytes: usize,
    /// Bytes of weights and tables in it.
    pub weight_bytes: usize,
    /// Seconds until the arena was full.
    pub fill_s: f64,
    /// Whether the arena is locked in memory.
    pub is_locked: bool,
    /// Bytes of the arena that lie in huge pages; `None` where none were asked for or the system
    /// does not say.
    pub huge_bytes: Option<usize>,
    /// What the system refused without preventing the load.
    pub warnings: Vec<String>,
}
