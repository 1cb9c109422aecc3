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
            let limits = Limits {
                logits: true,
                guidance: true,
                cache: true,
                canvases: 3,
                ..Limits::new(48, 25, threads)
            };
            let mut engine = models::load_within(name, limits, None);
            if !dllm_arena::lock_process() {
                println!("no_alloc: memory is not locked; a page may be reclaimed and fault");
            }
            let kind = engine.kind();
            for settings in models::every_setting(kind) {
                check(&mut engine, name, threads, &settings);
            }
            check_together(&mut engine, name, threads);
            canary(&mut engine, threads);
        }
    }
    println!("no_alloc: passed");
}

fn check(engine: &mut Engine, name: &str, threads: usize, settings: &Settings) {
    let what = format!("{name}, {threads} threads, {settings:?}");
    check_steps(engine, &what, |engine| steps(engine, settings));
}

/// Every three settings that follow each other, in passes that they share.
fn check_together(engine: &mut Engine, name: &str, threads: usize) {
    for settings in models::every_setting(engine.kind()).chunks(3) {
        let what = format!("{name}, {threads} threads, together {settings:?}");
        check_steps(engine, &what, |engine| steps_together(engine, settings));
    }
}

fn check_steps(engine: &mut Engine, what: &str, steps: impl Fn(&mut Engine) -> (Counts, Usage)) {
    engine.set_counting(true);
    steps(engine);
    engine.reset_counters();
    let (counts, usage) = steps(engine);
    assert_eq!(counts, Counts::default(), "the calling thread, {what}");
    assert_eq!((usage.minor_faults, usage.major_faults), (0, 0), "the calling thread, {what}");
    let Counters { allocations, frees, minor_faults, major_faults, .. } = engine.counters();
    let all = (allocations, frees, minor_faults, major_faults);
    assert_eq!(all, (0, 0, 0, 0), "all workers (allocations, frees, faults), {what}");
}

/// Runs [`STEPS`] steps of as many canvases as there are settings; what the calling thread did in
/// them.
fn steps_together(engine: &mut Engine, settings: &[Settings]) -> (Counts, Usage) {
    let (prompt, facts) = (models::prompt(), models::facts(engine));
    let new = |engine: &Engine, settings: &Settings| {
        let schedule = Schedule::new(engine.kind(), settings).unwrap();
        engine.canvas(&prompt, &schedule, &facts).unwrap()
    };
    let mut canvases: Vec<_> = settings.iter().map(|settings| new(engine, settings)).collect();
    let mut done = Done::default();
    for _ in 0..STEPS {
        for (canvas, settings) in canvases.iter_mut().zip(settings) {
            if canvas.is_done() {
                *canvas = new(engine, settings);
            }
        }
        done.add(|| {
            engine.step_together(&mut canvases, |_, progress| {
                std::hint::black_box(progress.committed);
            })
        });
    }
    (done.counts, done.usage)
}

/// What the calling thread did in the steps that were added.
#[derive(Default)]
struct Done {
    counts: Counts,
    usage: Usage,
}

impl Done {
    fn add(&mut self, step: impl FnOnce()) {
        let before = (thread_counts(), thread_usage());
        step();
        let (c, u) = (thread_counts().since(&before.0), thread_usage().since(&before.1));
        self.counts.allocations += c.allocations;
        self.counts.frees += c.frees;
        self.usage.minor_faults += u.minor_faults;
        self.usage.major_faults += u.major_faults;
    }
}

/// Runs [`STEPS`] steps, over as many requests as that takes; what the calling thread did in them.
fn steps(engine: &mut Engine, settings: &Settings) -> (Counts, Usage) {
    let schedule = Schedule::new(engine.kind(), settings).unwrap();
    let (prompt, facts) = (models::prompt(), models::facts(engine));
    let new = |engine: &Engine| engine.canvas(&prompt, &schedule, &facts).unwrap();
    let mut done = Done::default();
    let mut canvas = new(engine);
    for _ in 0..STEPS {
        if canvas.is_done() {
            canvas = new(engine);
        }
        done.add(|| {
            std::hint::black_box(engine.step(&mut canvas).committed);
        });
    }
    (done.counts, done.usage)
}

/// The counters see an allocation on every worker.
fn canary(engine: &mut Engine, threads: usize) {
    engine.reset_stats();
    engine.set_canary(true);
    steps(engine, &models::every_sampler(engine.kind())[0]);
    engine.set_canary(false);
    let passes = engine.stats().passes;
    let Counters { allocations, frees, .. } = engine.counters();
    let expected = passes * threads as u64;
    assert!(passes > 0 && (allocations, frees) == (expected, expected), "{allocations}, {frees}");
    engine.reset_stats();
}
