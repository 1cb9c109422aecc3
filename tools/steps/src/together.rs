//! Steps of one block with kept keys beside whole steps, and several canvases' steps in one pass
//! beside one after the other.

use crate::figures::median;
use argh::FromArgs;
use dllm_rt::denoise::{Cache, Canvas, ModelFacts, Pace, Settings};
use dllm_rt::{Engine, Limits, Options, Schedule, gguf};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// Positions a block.
const BLOCK: u32 = 32;
/// Steps of a block that are timed after its first: each commits one position.
const STEPS: usize = 8;

/// Compares steps of a block with whole ones, and canvases together with canvases in turn.
#[derive(FromArgs)]
#[argh(subcommand, name = "together")]
pub struct Together {
    /// the model's GGUF file
    #[argh(option)]
    model: PathBuf,
    /// rows of a canvas, a block of 32 among them (default: 148)
    #[argh(option, default = "148")]
    rows: usize,
    /// canvases (default: 4)
    #[argh(option, default = "4")]
    canvases: usize,
    /// worker threads (default: 2)
    #[argh(option, default = "2")]
    threads: usize,
    /// turns (default: 7)
    #[argh(option, default = "7")]
    reps: usize,
    /// file to write the figures to
    #[argh(option)]
    json: Option<PathBuf>,
}

#[derive(Serialize)]
struct Outcome {
    model: String,
    isa: &'static str,
    rows: usize,
    canvases: usize,
    threads: usize,
    /// Milliseconds of a step of one canvas: all of it, its block alone, and its share of a step
    /// that all canvases share; one value a turn.
    whole_ms: Vec<f64>,
    block_ms: Vec<f64>,
    shared_ms: Vec<f64>,
    /// How many times faster the second is than the first, and the third than the second; medians
    /// of the ratios within turns.
    block_over_whole: f64,
    shared_over_block: f64,
}

/// Seconds of a canvas's step in one turn.
struct Turn {
    whole_s: f64,
    block_s: f64,
    shared_s: f64,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be loaded or written, in words.
pub fn run(command: &Together) -> Result<(), String> {
    let Together { model, rows, canvases, threads, reps, json } = command;
    if *rows <= BLOCK as usize || *reps == 0 {
        return Err(format!("give more than {BLOCK} `--rows` and at least 1 of `--reps`"));
    }
    let file = gguf::open(model).map_err(|cause| cause.to_string())?;
    let limits = Limits {
        canvases: *canvases,
        cache: true,
        logits: true,
        ..Limits::new(*rows, BLOCK as usize, *threads)
    };
    let options = Options { pin_caller: true, ..Options::default() };
    let engine = Engine::load(&file, limits, &options, &mut |_, _| ());
    let mut engine = engine.map_err(|cause| cause.to_string())?;
    turn(&mut engine)?;
    let turns = (1..=*reps).map(|number| {
        let turn = turn(&mut engine)?;
        let ms = [turn.whole_s, turn.block_s, turn.shared_s].map(|s| s * 1e3);
        eprintln!("{number}/{reps}: {:.1}, {:.1} and {:.1} ms", ms[0], ms[1], ms[2]);
        Ok(turn)
    });
    let turns = turns.collect::<Result<Vec<Turn>, String>>()?;
    let each = |of: fn(&Turn) -> f64| turns.iter().map(of).collect::<Vec<f64>>();
    let outcome = Outcome {
        model: model.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        isa: engine.isa(),
        rows: *rows,
        canvases: *canvases,
        threads: *threads,
        whole_ms: each(|turn| turn.whole_s * 1e3),
        block_ms: each(|turn| turn.block_s * 1e3),
        shared_ms: each(|turn| turn.shared_s * 1e3),
        block_over_whole: median(&each(|turn| turn.whole_s / turn.block_s)),
        shared_over_block: median(&each(|turn| turn.block_s / turn.shared_s)),
    };
    println!(
        "{rows} rows, {threads} threads, {}: a block's step x {:.2} of a whole one, {canvases} \
         canvases together x {:.2} of in turn",
        outcome.isa, outcome.block_over_whole, outcome.shared_over_block
    );
    crate::write_json(&outcome, json.as_ref())
}

/// New canvases: their first steps, which are whole, in turn; then steps of their blocks, in turn
/// and together by halves.
fn turn(engine: &mut Engine) -> Result<Turn, String> {
    let mut canvases = (0..engine.limits().canvases)
        .map(|seed| canvas(engine, seed as u32))
        .collect::<Result<Vec<Canvas>, String>>()?;
    let count = canvases.len() as f64;
    let in_turn = |engine: &mut Engine, canvases: &mut [Canvas]| {
        let start = Instant::now();
        for canvas in canvases {
            engine.step(canvas);
        }
        start.elapsed().as_secs_f64() / count
    };
    let whole_s = in_turn(engine, &mut canvases);
    let (mut block_s, mut shared_s) = (0.0, 0.0);
    for _ in 0..STEPS / 2 {
        block_s += in_turn(engine, &mut canvases);
        let start = Instant::now();
        engine.step_together(&mut canvases, |_, _| ());
        shared_s += start.elapsed().as_secs_f64() / count;
    }
    // Otherwise they have not had the same rows to compute.
    if canvases.iter().any(|canvas| canvas.masks_left() as usize != BLOCK as usize - 1 - STEPS) {
        return Err("a step committed more than one position, or none".into());
    }
    let steps = (STEPS / 2) as f64;
    Ok(Turn { whole_s, block_s: block_s / steps, shared_s: shared_s / steps })
}

/// A prompt of any tokens and one block, of which every step commits a position.
fn canvas(engine: &Engine, seed: u32) -> Result<Canvas, String> {
    let settings = Settings {
        gen_length: BLOCK,
        pace: Pace::Threshold(1.0),
        cache: Cache::Dual,
        early_stop: false,
        ..Settings::default()
    };
    let schedule = Schedule::new(engine.kind(), &settings).map_err(|fault| fault.to_string())?;
    let vocab = engine.config().vocab as u32;
    let facts = ModelFacts {
        mask_token: vocab - 1,
        vocab_size: vocab,
        shift_logits: engine.config().shift_logits,
        end_of_text: vec![],
        end_of_turn: vec![],
    };
    let prompt_len = engine.limits().rows as u32 - BLOCK;
    let token = |i: u32| (i + seed).wrapping_mul(2_654_435_761) % (vocab - 1);
    let prompt: Vec<u32> = (0..prompt_len).map(token).collect();
    engine.canvas(&prompt, &schedule, &facts).map_err(|error| error.to_string())
}
