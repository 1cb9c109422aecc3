//! A step makes no heap allocation, no free and no page fault, on any thread.
//!
//! `harness = false`: the counting allocator is this process's, and nothing else runs beside it.

#[path = "common/models.rs"]
mod models;

use dllm_arena::count::{thread_counts, thread_usage};
use dllm_arena::{CountingAllocator, Counts, Usage};
use dllm_rt::denoise::Settings;
use dllm_rt::team::Counters;
use dllm_rt::{Engine, Limits, Schedule};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Steps that are counted for each sampler, after as many that are not.
const STEPS: usize = 64;

fn main() {
    assert!(dllm_arena::count::installed(), "the counting allocator is not in use");
    for name in models::ALL {
        for threads in [1, 2, 3] {
            // Few rows of logits: as tight as requests make it.
            let limits =
                Limits { rows: 48, wanted: 25, logits: true, guidance: true, cache: true, threads };
            let mut engine = models::load_within(name, limits, None);
            if !dllm_arena::lock_process() {
                println!("no_alloc: memory is not locked; a page may be reclaimed and fault");
            }
            let kind = models::kind(&engine);
            for settings in models::every_setting(kind) {
                check(&mut engine, name, threads, &settings);
            }
            canary(&mut engine, threads);
        }
    }
    println!("no_alloc: passed");
}

fn check(engine: &mut Engine, name: &str, threads: usize, settings: &Settings) {
    engine.set_counting(true);
    steps(engine, settings);
    engine.reset_counters();
    let (counts, usage) = steps(engine, settings);
    let what = format!("{name}, {threads} threads, {settings:?}");
    assert_eq!(counts, Counts::default(), "the calling thread, {what}");
    assert_eq!((usage.minor_faults, usage.major_faults), (0, 0), "the calling thread, {what}");
    let Counters { allocations, frees, minor_faults, major_faults, .. } = engine.counters();
    let all = (allocations, frees, minor_faults, major_faults);
    assert_eq!(all, (0, 0, 0, 0), "all workers (allocations, frees, faults), {what}");
}

/// Runs [`STEPS`] steps, over as many requests as that takes; what the calling thread did in them.
fn steps(engine: &mut Engine, settings: &Settings) -> (Counts, Usage) {
    let schedule = Schedule::new(models::kind(engine), settings).unwrap();
    let (prompt, facts) = (models::prompt(), models::facts(engine));
    let new = |engine: &Engine| engine.canvas(&prompt, &schedule, &facts).unwrap();
    let (mut counts, mut usage) = (Counts::default(), Usage::default());
    let mut canvas = new(engine);
    for _ in 0..STEPS {
        if canvas.is_done() {
            canvas = new(engine);
        }
        let before = (thread_counts(), thread_usage());
        let progress = engine.step(&mut canvas);
        std::hint::black_box(progress.committed);
        let (c, u) = (thread_counts().since(&before.0), thread_usage().since(&before.1));
        counts.allocations += c.allocations;
        counts.frees += c.frees;
        usage.minor_faults += u.minor_faults;
        usage.major_faults += u.major_faults;
    }
    (counts, usage)
}

/// The counters see an allocation on every worker.
fn canary(engine: &mut Engine, threads: usize) {
    engine.reset_stats();
    engine.set_canary(true);
    steps(engine, &models::every_sampler(models::kind(engine))[0]);
    engine.set_canary(false);
    let passes = engine.stats().passes;
    let Counters { allocations, frees, .. } = engine.counters();
    let expected = passes * threads as u64;
    assert!(passes > 0 && (allocations, frees) == (expected, expected), "{allocations}, {frees}");
    engine.reset_stats();
}
