//! `load`: times loading a model against copying the bytes of its file, in turn in one process,
//! and measures the memory that a load and a step take.

use crate::passes::{Setup, model_command};
use dllm_arena::{MappedFile, Region, Span};
use dllm_bench::Error;
use dllm_bench::figures::median;
use dllm_bench::record::write_json;
use dllm_rt::{Engine, Limits, Lock, Options};
use serde::Serialize;
use std::fs::{self, File};
use std::io;
use std::sync::Mutex;
use std::time::Instant;

model_command! {
    /// Times loading a model against copying the bytes of its file, with the same threads, page
    /// cache warm; and measures the memory that a load and a step take. Only ratios within a round
    /// mean anything on a machine that others use.
    #[argh(subcommand, name = "load")]
    pub struct Load {
        /// rounds, each with one turn of everything (default: 5)
        #[argh(option, default = "5")]
        reps: usize,
        /// also load, and copy, into huge pages
        #[argh(switch)]
        huge_pages: bool,
        /// auto, on or off, as of dllm-rt (default: auto)
        #[argh(option, default = "Lock::Auto", from_str_fn(lock))]
        lock: Lock,
        /// tokens of the forward pass after which memory is measured; 0 for none (default: 32)
        #[argh(option, default = "32")]
        step_tokens: usize,
    }
}

fn lock(value: &str) -> Result<Lock, String> {
    match value {
        "auto" => Ok(Lock::Auto),
        "on" => Ok(Lock::On),
        "off" => Ok(Lock::Off),
        other => Err(format!("`{other}` is none of auto, on and off")),
    }
}

/// Bytes that a thread copies at a time: little beside a file, much beside claiming it, and whole
/// huge pages, so that threads do not meet in one.
const CHUNK_BYTES: usize = 4 << 20;

/// Gives the seconds of a turn, with huge pages or without. Giving the memory back is not timed.
type Timer = fn(&Load, bool) -> Result<f64, Error>;

/// What is timed, the yardstick first.
const TIMED: [(&str, Timer); 3] = [
    ("copy", |command, huge_pages| copy(command, huge_pages, false)),
    ("copy to present pages", |command, huge_pages| copy(command, huge_pages, true)),
    ("load", |command, huge_pages| Ok(load(command, huge_pages)?.1)),
];

#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    setup: Setup,
    file_bytes: u64,
    reps: usize,
    series: Vec<Series>,
    memory: Vec<Memory>,
}

/// The turns of one thing.
#[derive(Serialize)]
struct Series {
    what: &'static str,
    huge_pages: bool,
    seconds: Vec<f64>,
    median_s: f64,
    /// The median over rounds of the time over that of the copy in the same round, to pages of the
    /// same size.
    over_copy: f64,
}

/// Memory of a load.
#[derive(Serialize)]
struct Memory {
    #[serde(skip)]
    isa: &'static str,
    what: &'static str,
    huge_pages: bool,
    is_locked: bool,
    /// Bytes of the arena in huge pages, where they were asked for.
    huge_bytes: Option<usize>,
    arena_bytes: usize,
    weight_bytes: usize,
    /// Largest resident size of the process during the load.
    peak_bytes: u64,
    /// Resident size after a forward pass.
    resident_bytes: u64,
    peak_over_file: f64,
    resident_over_file: f64,
    warnings: Vec<String>,
}

impl Series {
    fn new(what: &'static str, huge_pages: bool, seconds: &[f64], copy: &[f64]) -> Series {
        let ratios: Vec<f64> = seconds.iter().zip(copy).map(|(own, copy)| own / copy).collect();
        let (median_s, over_copy) = (median(seconds), median(&ratios));
        Series { what, huge_pages, seconds: seconds.to_vec(), median_s, over_copy }
    }
}

pub fn run(command: &Load) -> Result<(), Error> {
    let Load { model, rows, threads, json, reps, .. } = command;
    if *threads == 0 || *reps == 0 {
        return Err(Error::Argument("--threads and --reps must be at least 1".into()));
    }
    let mut setup = Setup::new(model, *rows, *threads);
    // Read once, so that it is in the page cache.
    let read = File::open(model).and_then(|mut file| io::copy(&mut file, &mut io::sink()));
    let file_bytes = read.map_err(Error::io(model))?;
    let sizes: &[bool] = if command.huge_pages { &[false, true] } else { &[false] };
    let mut seconds = vec![[const { vec![] }; TIMED.len()]; sizes.len()];
    for _ in 0..*reps {
        for (huge_pages, seconds) in sizes.iter().zip(&mut seconds) {
            for ((_, timer), seconds) in TIMED.iter().zip(seconds) {
                seconds.push(timer(command, *huge_pages)?);
            }
        }
    }
    let mut series = vec![];
    for (huge_pages, seconds) in sizes.iter().zip(&seconds) {
        let all = TIMED.iter().zip(seconds);
        series.extend(all.map(|((what, _), own)| Series::new(what, *huge_pages, own, &seconds[0])));
    }
    let measure = |huge_pages: &bool| measure(command, *huge_pages, file_bytes);
    let memory = sizes.iter().map(measure).collect::<Result<Vec<Memory>, Error>>()?;
    setup.isa = memory[0].isa;
    let outcome = Outcome { setup, file_bytes, reps: *reps, series, memory };
    let size = file_bytes as f64 / 1e9;
    println!("{}: {size:.2} GB, {threads} threads, {rows} rows, {reps} rounds", model.display());
    print(&outcome);
    json.as_ref().map_or(Ok(()), |path| write_json(path, &outcome))
}

/// Seconds from opening the file until all of it lies in anonymous memory: fresh, the faults of
/// which are part of the copy as they are of any load, or present, which says what the caches and
/// the memory itself allow.
fn copy(command: &Load, huge_pages: bool, is_present: bool) -> Result<f64, Error> {
    let open = || MappedFile::open(&command.model).map_err(Error::io(&command.model));
    let options = dllm_arena::Options { huge_pages, lock: Lock::Off };
    let refused = |error| Error::from(dllm_rt::Error::from(dllm_rt::backend::Error::from(error)));
    let bytes = open()?.bytes().len();
    let present =
        is_present.then(|| Region::reserve(bytes, &options)).transpose().map_err(refused)?;
    let start = Instant::now();
    let file = open()?;
    let mut to = present.map_or_else(|| Region::map(bytes, &options), Ok).map_err(refused)?;
    copy_bytes(&file, &mut to, command.threads);
    Ok(start.elapsed().as_secs_f64())
}

fn copy_bytes(file: &MappedFile, to: &mut Region, threads: usize) {
    let bytes = file.bytes();
    let to = to.span_mut::<u8>(Span { offset: 0, bytes: bytes.len() });
    let chunks = Mutex::new(to.chunks_mut(CHUNK_BYTES).zip(bytes.chunks(CHUNK_BYTES)));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // A poisoned lock means that another thread panicked, which the scope passes on.
                while let Some((to, from)) = chunks.lock().ok().and_then(|mut c| c.next()) {
                    // As a load does it: far cheaper than a fault a page.
                    dllm_arena::prefault(to);
                    to.copy_from_slice(from);
                }
            });
        }
    });
}

/// From opening the file to an engine that can run, and the seconds of that.
fn load(command: &Load, huge_pages: bool) -> Result<(Engine, f64), Error> {
    let options = Options { huge_pages, lock: command.lock, ..Options::default() };
    let limits = Limits { logits: true, ..Limits::new(command.rows, 32, command.threads) };
    let start = Instant::now();
    let engine = dllm_bench::engine(&command.model, limits, &options)?;
    Ok((engine, start.elapsed().as_secs_f64()))
}

/// What a load and a forward pass take of memory.
fn measure(command: &Load, huge_pages: bool, file_bytes: u64) -> Result<Memory, Error> {
    // Forgets the largest resident size so far. The number means so since Linux 4.0; elsewhere the
    // peak is that of the process.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let (mut engine, _) = load(command, huge_pages)?;
    let peak_bytes = status_bytes("VmHWM:");
    let tokens = command.step_tokens.min(command.rows);
    if tokens > 0 {
        engine.logits(&dllm_bench::canvas(tokens, engine.config().vocab as u32, 0), &[0])?;
    }
    let resident_bytes = status_bytes("VmRSS:");
    let report = engine.load_report();
    Ok(Memory {
        isa: engine.isa(),
        what: "load",
        huge_pages,
        is_locked: report.is_locked,
        huge_bytes: report.huge_bytes,
        arena_bytes: engine.arena_bytes(),
        weight_bytes: engine.weight_bytes(),
        peak_bytes,
        resident_bytes,
        peak_over_file: peak_bytes as f64 / file_bytes as f64,
        resident_over_file: resident_bytes as f64 / file_bytes as f64,
        warnings: engine.warnings().to_vec(),
    })
}

/// A size that the kernel gives of this process.
fn status_bytes(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn print(outcome: &Outcome) {
    let file_bytes = outcome.file_bytes as f64;
    let name = |what: &str, huge_pages| match huge_pages {
        true => format!("{what}, huge pages"),
        false => what.to_owned(),
    };
    println!("{:<34}{:>10}{:>10}{:>12}", "", "seconds", "GB/s", "over copy");
    for Series { what, huge_pages, median_s, over_copy, .. } in &outcome.series {
        let (name, rate) = (name(what, *huge_pages), file_bytes / 1e9 / median_s);
        println!("{name:<34}{median_s:>10.3}{rate:>10.2}{over_copy:>12.2}");
    }
    println!("{:<34}{:>10}{:>10}{:>12}", "memory over the file", "arena", "peak", "after step");
    for memory in &outcome.memory {
        let (name, arena) = (name("load", memory.huge_pages), memory.arena_bytes as f64);
        let (peak, resident) = (memory.peak_over_file, memory.resident_over_file);
        println!("{name:<34}{:>10.3}{peak:>10.3}{resident:>12.3}", arena / file_bytes);
        if let Some(huge) = memory.huge_bytes {
            println!("  {:.2} GB of the arena in huge pages", huge as f64 / 1e9);
        }
        memory.warnings.iter().for_each(|warning| println!("  warning: {warning}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_rounds() {
        let series = Series::new("load", false, &[2.0, 30.0, 8.0], &[1.0, 10.0, 2.0]);
        assert_eq!((series.median_s, series.over_copy), (8.0, 3.0));
        let series = Series::new("load", false, &[2.0, 4.0], &[1.0, 1.0]);
        assert_eq!(series.over_copy, 3.0);
    }
}
