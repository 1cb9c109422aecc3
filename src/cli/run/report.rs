//! What `run` says of a generation: `--json` and `--verbose`.

use super::watch::Outcome;
use crate::cli::model::ModelSource;
use crate::cli::output;
use dllm_arena::{Bytes, count::peak_rss_bytes};
use dllm_rt::engine::{Counters, Milliseconds, SplitMs};
use dllm_rt::generate::{FilledHole, Generation};
use dllm_rt::{Answer, Engine, FinishReason, GenerationParameters, Model, Options};
use serde::Serialize;
use serde_json::Value;

/// The JSON object, in the order of its keys.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    runtime: &'static str,
    version: &'static str,
    model: String,
    model_hash: &'a str,
    arch: &'static str,
    device: String,
    isa: &'static str,
    threads: usize,
    prompt_tokens: usize,
    settings: Value,
    forward_passes: u64,
    rows_computed: u64,
    load_s: f64,
    generate_s: f64,
    ms_per_step: Milliseconds,
    split_ms: SplitMs,
    counters: Counters,
    arena_bytes: usize,
    weight_bytes: usize,
    peak_rss_bytes: u64,
    tokens: &'a [u32],
    text: &'a str,
    finish_reason: FinishReason,
    /// What the prompt's holes were filled with, where there were any.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    holes: &'a [FilledHole],
    /// The whole canvas after every step, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Vec<Vec<u32>>>,
}

/// A model and how it was loaded.
pub struct Loaded<'a> {
    pub source: ModelSource<'a>,
    pub model_hash: String,
    pub load_s: f64,
    pub options: &'a Options,
    pub model: &'a Model,
}

impl Loaded<'_> {
    /// The report of a generation.
    pub fn report<'a>(
        &'a self,
        engine: &Engine,
        generation: &'a Generation,
        parameters: &GenerationParameters,
        outcome: &Outcome,
        answer: &'a Answer,
        trace: Option<Vec<Vec<u32>>>,
    ) -> Report<'a> {
        let (stats, canvas) = (engine.stats(), generation.canvas());
        Report {
            runtime: "dllm-rt",
            version: env!("CARGO_PKG_VERSION"),
            model: self.source.to_string(),
            model_hash: &self.model_hash,
            arch: self.model.config().architecture.name(),
            device: self.options.device.to_string(),
            isa: engine.isa(),
            threads: engine.limits().threads,
            prompt_tokens: canvas.prompt_len(),
            settings: output::settings(parameters, canvas.steps_total()),
            forward_passes: stats.passes,
            rows_computed: stats.rows_computed,
            load_s: self.load_s,
            generate_s: outcome.generate_s,
            ms_per_step: stats.milliseconds(),
            split_ms: stats.split_per_pass(),
            counters: outcome.counters,
            arena_bytes: engine.arena_bytes(),
            weight_bytes: engine.weight_bytes(),
            peak_rss_bytes: peak_rss_bytes(),
            tokens: &canvas.ids()[canvas.prompt_len()..],
            text: &answer.text,
            finish_reason: answer.finish_reason,
            holes: &answer.holes,
            trace,
        }
    }
}

/// Says on standard error how a generation went.
pub fn say(engine: &Engine, outcome: &Outcome) {
    let stats = engine.stats();
    let (ms, split, counters) = (stats.milliseconds(), stats.split_per_pass(), outcome.counters);
    let (steps, passes, rows) = (stats.steps(), stats.passes, stats.rows_computed);
    let (isa, threads) = (engine.isa(), engine.limits().threads);
    let bytes = (Bytes(engine.arena_bytes()), Bytes(engine.weight_bytes()));
    output::say(&format!("isa       {isa}, {threads} threads"));
    output::say(&format!("arena     {}, of which weights {}", bytes.0, bytes.1));
    output::say(&format!(
        "steps     {steps} in {:.3} s: {passes} forward passes, {rows} rows, {} rows of logits",
        outcome.generate_s, stats.logit_rows
    ));
    output::say(&format!(
        "ms/step   mean {:.3}, p50 {:.3}, p90 {:.3}, p99 {:.3}, max {:.3}",
        ms.mean, ms.p50, ms.p90, ms.p99, ms.max
    ));
    output::say(&format!(
        "ms/pass   gemm {:.3}, attention {:.3}, lm_head {:.3}, sampling {:.3}, other {:.3}",
        split.gemm, split.attention, split.lm_head, split.sampling, split.other
    ));
    output::say(&format!(
        "counters  after the first step: {} allocations, {} frees, {} minor and {} major faults, \
         {} voluntary and {} involuntary switches",
        counters.allocations,
        counters.frees,
        counters.minor_faults,
        counters.major_faults,
        counters.voluntary_switches,
        counters.involuntary_switches
    ));
}
