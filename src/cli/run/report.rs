//! What `run` says of a generation: `--json` and `--verbose`.

use super::generate::Outcome;
use crate::cli::answer::{Answer, Filled, Finish};
use crate::cli::output;
use crate::cli::session::Session;
use crate::cli::source::Source;
use dllm_rt::engine::{Milliseconds, SplitMs};
use dllm_rt::error::Gib;
use dllm_rt::team::Counters;
use dllm_rt::{Canvas, Engine, Options, Schedule, peak_rss_bytes};
use serde::Serialize;

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
    gen_length: u32,
    steps: u32,
    block_length: u32,
    algorithm: &'static str,
    threshold: Option<f64>,
    factor: Option<f64>,
    cache: &'static str,
    refresh: Option<u32>,
    grow: bool,
    seed: u64,
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
    finish_reason: Finish,
    /// What the prompt's holes were filled with, where there were any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<Filled>,
    /// The whole canvas after every step, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<Vec<u32>>>,
}

/// A model and how it was loaded.
pub struct Loaded<'a> {
    /// The model.
    pub source: Source<'a>,
    /// Its hash.
    pub model_hash: String,
    /// Seconds that loading took.
    pub load_s: f64,
    /// How.
    pub options: &'a Options,
    /// Its metadata.
    pub session: &'a Session,
}

/// The report of a generation, without holes and trace.
pub fn report<'a>(
    loaded: &'a Loaded<'_>,
    engine: &Engine,
    canvas: &'a Canvas,
    schedule: &Schedule,
    outcome: &Outcome,
    answer: &'a Answer,
) -> Report<'a> {
    let stats = engine.stats();
    Report {
        runtime: "dllm-rt",
        version: env!("CARGO_PKG_VERSION"),
        model: loaded.source.to_string(),
        model_hash: &loaded.model_hash,
        arch: loaded.session.config.architecture.name(),
        device: loaded.options.device.to_string(),
        isa: engine.isa(),
        threads: engine.limits().threads,
        prompt_tokens: canvas.prompt_len(),
        gen_length: schedule.gen_length(),
        steps: canvas.steps_total(),
        block_length: schedule.block_length(),
        algorithm: schedule.algorithm().name(),
        threshold: schedule.threshold(),
        factor: schedule.factor(),
        cache: schedule.cache().name(),
        refresh: schedule.refresh(),
        grow: schedule.grows(),
        seed: schedule.seed(),
        forward_passes: stats.passes,
        rows_computed: stats.rows_computed,
        load_s: loaded.load_s,
        generate_s: outcome.generate_s,
        ms_per_step: stats.milliseconds(),
        split_ms: stats.split_per_pass(),
        counters: outcome.counters,
        arena_bytes: engine.arena_bytes(),
        weight_bytes: engine.weight_bytes(),
        peak_rss_bytes: peak_rss_bytes(),
        tokens: &canvas.ids()[canvas.prompt_len()..],
        text: &answer.text,
        finish_reason: answer.finish,
        holes: Vec::new(),
        trace: None,
    }
}

/// Says on standard error how a generation went.
pub fn say(engine: &Engine, outcome: &Outcome) {
    let stats = engine.stats();
    let (ms, split, counters) = (stats.milliseconds(), stats.split_per_pass(), outcome.counters);
    let (steps, passes, rows) = (stats.steps(), stats.passes, stats.rows_computed);
    let (isa, threads) = (engine.isa(), engine.limits().threads);
    let bytes = (Gib(engine.arena_bytes()), Gib(engine.weight_bytes()));
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
