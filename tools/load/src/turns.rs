//! The turns of a round: copies and loads, one after the other, again and again.

use crate::Arguments;
use crate::copy;
use crate::memory;
use crate::report::{Memory, Report, Series};
use dllm_rt::{Engine, Limits, Options, gguf};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

/// One thing that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    what: What,
    huge_pages: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Copy,
    CopyToPresent,
    Load,
    LoadPacked,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            What::Copy => "copy",
            What::CopyToPresent => "copy to present pages",
            What::Load => "load",
            What::LoadPacked => "load packed",
        }
    }
}

/// Runs everything.
///
/// # Errors
/// What cannot be opened, loaded or measured, in words.
pub fn run(arguments: &Arguments) -> Result<Report, String> {
    if arguments.threads == 0 || arguments.reps == 0 {
        return Err("--threads and --reps must be at least 1".into());
    }
    let turns = turns(arguments);
    warm(&arguments.model)?;
    if arguments.packed_cache.is_some() {
        // Written, or found to be there, before anything is timed.
        load(arguments, What::LoadPacked, false)?;
    }
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); turns.len()];
    for _ in 0..arguments.reps {
        for (turn, seconds) in turns.iter().zip(&mut seconds) {
            seconds.push(time(arguments, *turn)?);
        }
    }
    let mut memory = Vec::new();
    for turn in turns.iter().filter(|turn| matches!(turn.what, What::Load | What::LoadPacked)) {
        memory.push(measure(arguments, *turn)?);
    }
    let copy_of = |turn: &Turn| {
        let is_copy =
            |other: &Turn| other.what == What::Copy && other.huge_pages == turn.huge_pages;
        turns.iter().position(is_copy).unwrap_or(0)
    };
    let series = turns.iter().zip(&seconds).map(|(turn, own)| {
        Series::new(turn.what.name(), turn.huge_pages, own, &seconds[copy_of(turn)])
    });
    Ok(Report {
        model: arguments.model.display().to_string(),
        file_bytes: file_bytes(&arguments.model)?,
        threads: arguments.threads,
        rows: arguments.rows,
        reps: arguments.reps,
        series: series.collect(),
        memory,
    })
}

fn turns(arguments: &Arguments) -> Vec<Turn> {
    let sizes: &[bool] = if arguments.huge_pages { &[false, true] } else { &[false] };
    let mut whats = vec![What::Copy, What::CopyToPresent, What::Load];
    if arguments.packed_cache.is_some() {
        whats.push(What::LoadPacked);
    }
    let of_size =
        |huge_pages: bool| whats.clone().into_iter().map(move |what| Turn { what, huge_pages });
    sizes.iter().flat_map(|huge_pages| of_size(*huge_pages)).collect()
}

fn file_bytes(path: &Path) -> Result<u64, String> {
    let failed = |error| format!("cannot open `{}`: {error}", path.display());
    Ok(path.metadata().map_err(failed)?.len())
}

/// Reads the file once, so that it is in the page cache.
fn warm(path: &Path) -> Result<(), String> {
    let failed = |error| format!("cannot read `{}`: {error}", path.display());
    let mut file = File::open(path).map_err(failed)?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer).map_err(failed)? > 0 {}
    Ok(())
}

/// Seconds of a turn. Giving the memory back is not timed.
fn time(arguments: &Arguments, Turn { what, huge_pages }: Turn) -> Result<f64, String> {
    let (path, threads) = (&arguments.model, arguments.threads);
    match what {
        What::Copy => copy::to_fresh(path, threads, huge_pages),
        What::CopyToPresent => copy::to_present(path, threads, huge_pages),
        What::Load | What::LoadPacked => Ok(load(arguments, what, huge_pages)?.1),
    }
}

/// From opening the file to an engine that can run, and the seconds of that.
fn load(arguments: &Arguments, what: What, huge_pages: bool) -> Result<(Engine, f64), String> {
    let packed_cache = match what {
        What::LoadPacked => arguments.packed_cache.clone(),
        _ => None,
    };
    let options =
        Options { huge_pages, lock: arguments.lock.0, packed_cache, ..Options::default() };
    let limits = Limits { logits: true, ..Limits::new(arguments.rows, 32, arguments.threads) };
    let start = Instant::now();
    let file = gguf::open(&arguments.model).map_err(|error| error.to_string())?;
    let engine = Engine::load(&file, limits, &options, &mut |_, _| ());
    let engine = engine.map_err(|error| error.to_string())?;
    Ok((engine, start.elapsed().as_secs_f64()))
}

/// What a load and a forward pass take of memory.
fn measure(arguments: &Arguments, Turn { what, huge_pages }: Turn) -> Result<Memory, String> {
    memory::reset_peak();
    let (mut engine, _) = load(arguments, what, huge_pages)?;
    let peak_bytes = memory::peak_bytes();
    let tokens = arguments.step_tokens.min(arguments.rows);
    if tokens > 0 {
        let ids: Vec<u32> =
            (0..tokens as u32).map(|id| id % engine.config().vocab as u32).collect();
        engine.logits(&ids, &[0]).map_err(|error| error.to_string())?;
    }
    let file_bytes = file_bytes(&arguments.model)? as f64;
    let resident_bytes = memory::resident_bytes();
    let report = engine.load_report();
    Ok(Memory {
        what: what.name(),
        huge_pages,
        is_from_packed: report.is_from_packed,
        is_locked: report.is_locked,
        huge_bytes: report.huge_bytes,
        arena_bytes: engine.arena_bytes(),
        weight_bytes: engine.weight_bytes(),
        peak_bytes,
        resident_bytes,
        peak_over_file: peak_bytes as f64 / file_bytes,
        resident_over_file: resident_bytes as f64 / file_bytes,
        warnings: engine.warnings().to_vec(),
    })
}
