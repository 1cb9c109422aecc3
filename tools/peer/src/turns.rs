//! dllm-rt's side: the driver's protocol over the library, as the program itself uses it.

use argh::FromArgs;
use dllm_bench::Error;
use dllm_rt::{Engine, Limits, Options, gguf};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

/// Answers lines of standard input with forward passes, as `run` asks for them.
#[derive(FromArgs)]
#[argh(subcommand, name = "turns")]
pub struct Turns {
    /// a GGUF file
    #[argh(option, arg_name = "file")]
    model: PathBuf,
    /// instruction set (default: the fastest)
    #[argh(option, arg_name = "name")]
    isa: Option<String>,
}

/// An engine for one canvas.
struct Open {
    engine: Engine,
    ids: Vec<u32>,
    positions: Vec<u32>,
}

/// Answers each line of `input` with a line to `output` until it ends.
pub fn serve(
    Turns { model: path, isa }: &Turns,
    input: impl BufRead,
    mut output: impl Write,
) -> Result<(), Error> {
    // The parent may end while this is stopped. Without it this still ends with its input.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let mut open = None;
    let mut answered_ms = cpu_ms();
    let opened = gguf::open(path).map(drop).map_err(dllm_rt::Error::from);
    write_reply(&mut output, opened.map(|()| "ok".into()).map_err(Error::from))?;
    for line in input.lines() {
        let line = line.map_err(Error::io(Path::new("standard input")))?;
        let reply = answer(path, isa.as_deref(), &line, &mut open, answered_ms);
        answered_ms = cpu_ms();
        write_reply(&mut output, reply)?;
    }
    Ok(())
}

fn write_reply(output: &mut impl Write, reply: Result<String, Error>) -> Result<(), Error> {
    let line = reply.unwrap_or_else(|error| format!("error {error}")).replace('\n', " ");
    let written = writeln!(output, "{line}").and_then(|()| output.flush());
    written.map_err(Error::io(Path::new("standard output")))
}

fn answer(
    path: &Path,
    isa: Option<&str>,
    line: &str,
    open: &mut Option<Open>,
    answered_ms: f64,
) -> Result<String, Error> {
    let mut words = line.splitn(3, ' ');
    let (command, first, rest) = (words.next(), words.next(), words.next());
    match (command, open) {
        (Some("open"), open) => {
            // The arena of the one before goes first: there may be no room for both.
            *open = None;
            *open = Some(load(path, isa, first.unwrap_or(""), rest.unwrap_or(""))?);
            Ok("ok".into())
        }
        (Some("facts"), Some(open)) => Ok(open.engine.isa().into()),
        (Some("run"), Some(open)) => open.run(answered_ms),
        (Some("logits"), Some(open)) => open.logits(first.unwrap_or(""), rest.unwrap_or("")),
        (_, None) => Err(Error::Argument("nothing is open".into())),
        _ => Err(Error::Argument(format!("no command `{line}`"))),
    }
}

fn load(path: &Path, isa: Option<&str>, threads: &str, ids: &str) -> Result<Open, Error> {
    let wrong = || Error::Argument("write `open THREADS ID,ID,...`".into());
    let (threads, ids) =
        (threads.parse().map_err(|_| wrong())?, numbers(ids).map_err(Error::Argument)?);
    let limits = Limits { logits: true, ..Limits::new(ids.len(), ids.len(), threads) };
    // As the program loads it.
    let options = Options { isa: isa.map(String::from), pin_caller: true, ..Options::default() };
    let engine = dllm_bench::engine(path, limits, &options)?;
    let positions = (0..).take(ids.len()).collect();
    Ok(Open { engine, ids, positions })
}

impl Open {
    fn run(&mut self, answered_ms: f64) -> Result<String, Error> {
        let (before_ms, start) = (cpu_ms(), Instant::now());
        self.engine.logits(&self.ids, &self.positions)?;
        let wall_ms = start.elapsed().as_secs_f64() * 1e3;
        let (busy_ms, idle_ms) = (cpu_ms() - before_ms, before_ms - answered_ms);
        Ok(format!("{wall_ms:.3} {busy_ms:.3} {idle_ms:.3}"))
    }

    fn logits(&mut self, positions: &str, file: &str) -> Result<String, Error> {
        let positions: Vec<usize> = numbers(positions).map_err(Error::Argument)?;
        // The same pass again: rows that are not asked for are not kept between calls.
        let logits = self.engine.logits(&self.ids, &self.positions)?;
        let rows: Vec<&[f32]> = logits.rows().collect();
        let mut bytes = Vec::new();
        for position in &positions {
            let row = rows.get(*position).copied().unwrap_or_default();
            bytes.extend(row.iter().flat_map(|value| value.to_le_bytes()));
        }
        fs::write(file, bytes).map_err(Error::io(Path::new(file)))?;
        Ok(format!("ok {}", self.engine.config().vocab))
    }
}

/// CPU time of all threads of this process so far.
fn cpu_ms() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 * 1e-6
}

/// The numbers of a list with commas.
pub fn numbers<T: FromStr>(list: &str) -> Result<Vec<T>, String> {
    let number = |item: &str| item.parse().map_err(|_| format!("`{item}` is no number"));
    list.split(',').map(number).collect()
}
