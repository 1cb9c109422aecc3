//! A step makes no heap allocation, no free and no page fault, on any thread.
//!
//! `harness = false`: the counting allocator is this process's, and nothing else runs beside it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "it/common/models.rs"]
mod models;

use dllm_arena::count::{thread_counts, thread_usage};
use dllm_arena::{CountingAllocator, Counts, Lock, Phase, PhaseAccess, Region, Sealing, Usage};
use dllm_rt::backend::cpu::threads::{Counters, ThreadPool};
use dllm_rt::denoise::{Progress, RequestParameters};
use dllm_rt::{Batch, Engine, Generation, GenerationParameters, Limits, Model, Options, Request};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Steps that are counted for each sampler, after as many that are not.
const STEPS: usize = 64;

fn main() {
    assert!(dllm_arena::count::installed(), "the counting allocator is not in use");
    [1, 2, 3].into_iter().for_each(canary);
    for name in models::ALL {
        for threads in [1, 2, 3] {
            // Few rows of logits: as tight as requests make it.
            let limits = Limits {
                logits: true,
                guidance: true,
                kv_cache: true,
                sequences: 3,
                ..Limits::new(48, 25, threads)
            };
            let mut engine = models::load_within(name, limits, None);
            if !dllm_arena::lock_process() {
                println!("no_alloc: memory is not locked; a page may be reclaimed and fault");
            }
            let kind = engine.kind();
            for request in models::every_setting(kind) {
                check(&mut engine, name, threads, &request);
            }
            check_together(&mut engine, name, threads);
        }
    }
    front();
    println!("no_alloc: passed");
}

fn check(engine: &mut Engine, name: &str, threads: usize, request: &RequestParameters) {
    let what = format!("{name}, {threads} threads, {request:?}");
    check_steps(engine, &what, |engine| steps(engine, request));
}

/// Every three request that follow each other, in passes that they share.
fn check_together(engine: &mut Engine, name: &str, threads: usize) {
    for request in models::every_setting(engine.kind()).chunks(3) {
        let what = format!("{name}, {threads} threads, together {request:?}");
        check_steps(engine, &what, |engine| steps_together(engine, request));
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

/// Runs [`STEPS`] steps of as many canvases as there are request; what the calling thread did in
/// them.
fn steps_together(engine: &mut Engine, request: &[RequestParameters]) -> (Counts, Usage) {
    let (prompt, facts) = (models::prompt(), models::facts(engine));
    let new = |engine: &mut Engine, request: &RequestParameters| {
        let parameters = GenerationParameters::new(engine.kind(), request).unwrap();
        engine.sequence(&prompt, &parameters, &facts).unwrap()
    };
    let mut batch: Vec<_> = request.iter().map(|request| new(engine, request)).collect();
    let mut done = Done::default();
    for _ in 0..STEPS {
        for (sequence, request) in batch.iter_mut().zip(request) {
            if sequence.canvas().is_done() {
                *sequence = new(engine, request);
            }
        }
        done.add(|| {
            let after = |_, progress: Progress<'_>| _ = std::hint::black_box(progress.committed);
            engine.step(&mut batch, after).unwrap()
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
fn steps(engine: &mut Engine, request: &RequestParameters) -> (Counts, Usage) {
    let parameters = GenerationParameters::new(engine.kind(), request).unwrap();
    let (prompt, facts) = (models::prompt(), models::facts(engine));
    let new = |engine: &mut Engine| engine.sequence(&prompt, &parameters, &facts).unwrap();
    let mut done = Done::default();
    let mut sequence = new(engine);
    for _ in 0..STEPS {
        if sequence.canvas().is_done() {
            sequence = new(engine);
        }
        done.add(|| {
            std::hint::black_box(engine.step_one(&mut sequence).unwrap().committed);
        });
    }
    (done.counts, done.usage)
}

/// The library's front: a generation alone and in a batch, and logits.
fn front() {
    let model = Model::built_in().unwrap();
    let limits = Limits { logits: true, sequences: 2, ..Limits::new(200, 128, 2) };
    let mut engine = model.load(limits, &Options::default(), &mut |_, _| ()).unwrap();
    let request = Request::chat("What is the capital of France?");
    let prepared = model.prepare(&request).unwrap();
    let (ids, rows) = (prepared.ids().to_vec(), [0, 3]);
    check_steps(&mut engine, "a generation", |engine| {
        let mut generation = Generation::start(engine, &prepared).unwrap();
        let mut done = Done::default();
        while !generation.is_over() {
            done.add(|| _ = std::hint::black_box(generation.step(engine).unwrap().committed));
        }
        (done.counts, done.usage)
    });
    check_steps(&mut engine, "a batch", |engine| {
        let mut batch = Batch::new(engine);
        for number in 0..2 {
            batch.join(number, Generation::start(engine, &prepared).unwrap()).unwrap();
        }
        let mut done = Done::default();
        for _ in 0..STEPS {
            done.add(|| batch.step(engine, |number, _| _ = std::hint::black_box(number)).unwrap());
        }
        (done.counts, done.usage)
    });
    check_steps(&mut engine, "logits", |engine| {
        let mut done = Done::default();
        for _ in 0..STEPS {
            done.add(|| _ = std::hint::black_box(engine.logits(&ids, &rows).unwrap()));
        }
        (done.counts, done.usage)
    });
}

/// The counters see an allocation on every worker: of a thread pool as the engine has it, whose
/// workers allocate once a pass.
fn canary(threads: usize) {
    const PASSES: u64 = 5;
    let options = dllm_arena::Options { huge_pages: false, lock: Lock::Off };
    let region = Region::reserve(64, &options).unwrap();
    let phases = vec![PhaseAccess::default(); 2];
    let sealing = Sealing { fixed_bytes: 0, slots: vec![], phases, workers: threads };
    let (leader, workers) = region.seal(sealing).unwrap();
    let work = |phase: &Phase<'_>, allocates: &bool| {
        if *allocates && phase.index() == 0 {
            std::hint::black_box(Box::new(phase.worker()));
        }
    };
    let mut pool = ThreadPool::start(leader, workers, &[], work).unwrap();
    for (counts, allocates) in [(false, true), (true, false), (true, true)] {
        pool.set_counting(counts);
        pool.reset_counters();
        (0..PASSES).for_each(|_| pool.run(allocates, 2, work, |_| ()));
        let Counters { allocations, frees, .. } = pool.counters();
        let expected = if counts && allocates { PASSES * threads as u64 } else { 0 };
        assert_eq!((allocations, frees), (expected, expected), "{threads} threads");
    }
}
