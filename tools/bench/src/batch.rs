//! `batch`: steps of one block with kept keys beside whole steps, and several sequences' steps in
//! one pass beside one after the other.

use crate::passes::{Setup, model_command};
use dllm_bench::figures::median;
use dllm_bench::record::write_json;
use dllm_bench::{Error, canvas, engine};
use dllm_rt::denoise::{Cache, RequestParameters, TokenFacts};
use dllm_rt::{Engine, GenerationParameters, Limits, Options, Sequence};
use serde::Serialize;
use std::time::Instant;

/// Positions a block.
const BLOCK: u32 = 32;
/// Steps of a block that are timed after its first: each commits one position.
const STEPS: usize = 8;

model_command! {
    /// Compares steps of a block of 32 with whole ones, and sequences that share passes with
    /// sequences in turn.
    #[argh(subcommand, name = "batch")]
    pub struct Batch {
        /// sequences (default: 4)
        #[argh(option, default = "4")]
        sequences: usize,
        /// turns (default: 7)
        #[argh(option, default = "7")]
        reps: usize,
    }
}

#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    setup: Setup,
    sequences: usize,
    /// Milliseconds of a step of one sequence: all of it, its block alone, and its share of a step
    /// that all sequences share; one value a turn.
    whole_ms: Vec<f64>,
    block_ms: Vec<f64>,
    shared_ms: Vec<f64>,
    /// How many times faster the second is than the first, and the third than the second; medians
    /// of the ratios within turns.
    block_over_whole: f64,
    shared_over_block: f64,
}

pub fn run(command: &Batch) -> Result<(), Error> {
    let Batch { model, rows, sequences, threads, reps, json } = command;
    if *rows <= BLOCK as usize || *reps == 0 {
        let text = format!("give more than {BLOCK} --rows and at least 1 of --reps");
        return Err(Error::Argument(text));
    }
    let limits = Limits {
        sequences: *sequences,
        kv_cache: true,
        logits: true,
        ..Limits::new(*rows, BLOCK as usize, *threads)
    };
    let options = Options { pin_caller: true, ..Options::default() };
    let mut setup = Setup::new(model, *rows, *threads);
    let mut engine = engine(model, limits, &options)?;
    setup.isa = engine.isa();
    turn(&mut engine)?;
    let mut turns = vec![];
    for number in 1..=*reps {
        let ms @ [whole, block, shared] = turn(&mut engine)?;
        eprintln!("{number}/{reps}: {whole:.1}, {block:.1} and {shared:.1} ms");
        turns.push(ms);
    }
    let each = |of: &dyn Fn(&[f64; 3]) -> f64| turns.iter().map(of).collect::<Vec<f64>>();
    let outcome = Outcome {
        setup,
        sequences: *sequences,
        whole_ms: each(&|ms| ms[0]),
        block_ms: each(&|ms| ms[1]),
        shared_ms: each(&|ms| ms[2]),
        block_over_whole: median(&each(&|ms| ms[0] / ms[1])),
        shared_over_block: median(&each(&|ms| ms[1] / ms[2])),
    };
    println!(
        "{rows} rows, {threads} threads, {}: a block's step x {:.2} of a whole one, {sequences} \
         sequences together x {:.2} of in turn",
        outcome.setup.isa, outcome.block_over_whole, outcome.shared_over_block
    );
    json.as_ref().map_or(Ok(()), |path| write_json(path, &outcome))
}

/// New sequences: their first steps, which are whole, in turn; then steps of their blocks, in turn
/// and together by halves. Gives milliseconds of a sequence's step: whole, of its block, and
/// shared.
fn turn(engine: &mut Engine) -> Result<[f64; 3], Error> {
    let mut sequences = (0..engine.limits().sequences)
        .map(|seed| sequence(engine, seed as u32))
        .collect::<Result<Vec<Sequence>, Error>>()?;
    let count = sequences.len() as f64;
    let in_turn = |engine: &mut Engine, sequences: &mut [Sequence]| {
        let start = Instant::now();
        for sequence in sequences {
            engine.step_one(sequence)?;
        }
        Ok::<f64, Error>(start.elapsed().as_secs_f64() / count)
    };
    let whole_s = in_turn(engine, &mut sequences)?;
    let (mut block_s, mut shared_s) = (0.0, 0.0);
    for _ in 0..STEPS / 2 {
        block_s += in_turn(engine, &mut sequences)?;
        let start = Instant::now();
        engine.step(&mut sequences, |_, _| ())?;
        shared_s += start.elapsed().as_secs_f64() / count;
    }
    // Otherwise they have not had the same rows to compute.
    if sequences
        .iter()
        .any(|sequence| sequence.canvas().masks_left() as usize != BLOCK as usize - 1 - STEPS)
    {
        let text = "a step committed more than one position, or none";
        return Err(Error::Figures(text.into()));
    }
    let steps = (STEPS / 2) as f64;
    Ok([whole_s, block_s / steps, shared_s / steps].map(|s| s * 1e3))
}

/// A prompt of any tokens and one block, of which every step commits a position.
fn sequence(engine: &mut Engine, seed: u32) -> Result<Sequence, Error> {
    let request = RequestParameters {
        max_tokens: BLOCK,
        threshold: Some(1.0),
        cache: Some(Cache::Dual),
        early_stop: false,
        ..RequestParameters::default()
    };
    let parameters =
        GenerationParameters::new(engine.kind(), &request).map_err(dllm_rt::Error::from)?;
    let vocab = engine.config().vocab as u32;
    let facts = TokenFacts {
        mask_token: vocab - 1,
        vocab_size: vocab,
        shift_logits: engine.config().shift_logits,
        end_of_text: vec![],
        end_of_turn: vec![],
    };
    let prompt = canvas(engine.limits().rows - BLOCK as usize, vocab - 1, seed);
    Ok(engine.sequence(&prompt, &parameters, &facts)?)
}
