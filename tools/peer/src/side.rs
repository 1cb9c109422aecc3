//! A program that has loaded a model and runs forward passes of it when told to.
//!
//! It answers each line of its standard input with one line; `driver.cpp` has the list. Between
//! its turns it is stopped, so that its idle threads take nothing from the others whatever they
//! do while they wait.

use crate::report::Pass;
use dllm_bench::Error;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Bytes of a program's own messages that an error shows: the end, where the cause is.
const LOG_BYTES_SHOWN: usize = 2000;

/// A running program. Ends with this.
pub struct Side {
    pub name: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    log: PathBuf,
}

impl Side {
    /// Starts `command`, waits until it has loaded its model, and stops it. What it prints besides
    /// its answers goes to the file `log`.
    pub fn start(name: &str, command: &mut Command, log: PathBuf) -> Result<Side, Error> {
        let program = PathBuf::from(command.get_program());
        let errors = File::create(&log).map_err(Error::io(&log))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().map_err(Error::io(&program))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both were asked for")
        };
        let output = BufReader::new(output);
        let mut side = Side { name: name.into(), child, input, output, log };
        side.answer()?;
        side.stop()?;
        Ok(side)
    }

    /// A context on `threads` threads for the canvas `ids`.
    pub fn open(&mut self, threads: usize, ids: &[u32]) -> Result<(), Error> {
        self.ask(&format!("open {threads} {}", list(ids))).map(drop)
    }

    /// A forward pass of the canvas.
    pub fn run(&mut self) -> Result<Pass, Error> {
        let reply = self.ask("run")?;
        let numbers: Vec<f64> = reply.split(' ').filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [ms, cpu_ms, idle_ms] if ms > 0.0 => Ok(Pass { ms, cpu_ms, idle_ms }),
            _ => Err(self.error(format!("answered `{reply}` instead of times"))),
        }
    }

    /// The last pass's logits at `positions`, `[positions, vocabulary]`, by way of `file`.
    pub fn logits(&mut self, positions: &[u32], file: &Path) -> Result<Vec<Vec<f32>>, Error> {
        let reply = self.ask(&format!("logits {} {}", list(positions), file.display()))?;
        let vocab: usize = reply.strip_prefix("ok ").and_then(|n| n.parse().ok()).unwrap_or(0);
        let bytes = fs::read(file).map_err(Error::io(file))?;
        if vocab == 0 || bytes.len() != positions.len() * vocab * size_of::<f32>() {
            return Err(self.error(format!("answered `{reply}` and {} bytes", bytes.len())));
        }
        let values = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let values: Vec<f32> = values.collect();
        Ok(values.chunks(vocab).map(<[f32]>::to_vec).collect())
    }

    /// Whether the program's own messages hold `text`.
    pub fn has_said(&self, text: &str) -> bool {
        fs::read(&self.log).is_ok_and(|log| String::from_utf8_lossy(&log).contains(text))
    }

    /// One turn: wakes the program, gives it `line` and stops it once it has answered.
    pub fn ask(&mut self, line: &str) -> Result<String, Error> {
        self.signal(Signal::CONT)?;
        if let Err(error) = writeln!(self.input, "{line}").and_then(|()| self.input.flush()) {
            return Err(self.error(format!("does not listen: {error}")));
        }
        let reply = self.answer()?;
        self.stop()?;
        Ok(reply)
    }

    fn answer(&mut self) -> Result<String, Error> {
        let mut reply = String::new();
        let read = self.output.read_line(&mut reply);
        let reply = reply.trim_end();
        match (read, reply.strip_prefix("error ")) {
            (Ok(0) | Err(_), _) => Err(self.error("ended without an answer")),
            (_, Some(what)) => Err(self.error(what)),
            _ => Ok(reply.to_string()),
        }
    }

    /// Returns once all its threads stand still.
    fn stop(&mut self) -> Result<(), Error> {
        self.signal(Signal::STOP)?;
        match waitpid(self.pid(), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => Ok(()),
            _ => Err(self.error("ended")),
        }
    }

    fn signal(&self, signal: Signal) -> Result<(), Error> {
        let sent = self.pid().map(|pid| kill_process(pid, signal));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(self.error("has ended")),
        }
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    fn error(&self, what: impl Into<String>) -> Error {
        let log = fs::read(&self.log).unwrap_or_default();
        let end = String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_BYTES_SHOWN)..]);
        let (what, end) = (what.into(), end.trim());
        Error::program(&self.name, if end.is_empty() { what } else { format!("{what}\n{end}") })
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // Reaches a stopped program too. One that has ended already needs nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn list(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}
