//! Standard output and error, files that are whole or absent, and progress.

use crate::cli::failure::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Work that takes longer than this shows how far it is.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

/// Writes a line to standard error. Nobody can be told if that fails.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes results to standard output.
///
/// # Errors
/// [`Failure::BrokenPipe`] where the reader is gone, or what the system says.
pub fn results(
    write: impl FnOnce(&mut BufWriter<io::StdoutLock<'static>>) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    write(&mut out).and_then(|()| out.flush()).map_err(|cause| match cause.kind() {
        ErrorKind::BrokenPipe => Failure::BrokenPipe,
        _ => Failure::File { doing: "write to standard output".into(), cause },
    })
}

/// Writes one JSON value and a newline to standard output.
///
/// # Errors
/// As [`results`].
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    results(|out| {
        serde_json::to_writer(&mut *out, value)?;
        writeln!(out)
    })
}

/// Refuses a path that nothing can be written to, before the work is done.
///
/// # Errors
/// A folder, a file in a folder that does not exist, or a GGUF file.
pub fn check_target(path: &Path) -> Result<(), Failure> {
    let refuse = |kind: ErrorKind, why: &str| {
        Err(Failure::file("write", path, io::Error::new(kind, why.to_owned())))
    };
    if path.is_dir() {
        return refuse(ErrorKind::IsADirectory, "it is a folder");
    }
    if !folder(path).is_dir() {
        return refuse(ErrorKind::NotFound, "its folder does not exist");
    }
    // The model itself, or a part of it, by whatever name.
    if path.is_file() && is_gguf(path) {
        return refuse(ErrorKind::AlreadyExists, "it is a GGUF file, which may be the model");
    }
    Ok(())
}

fn is_gguf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"GGUF"
}

/// Writes a file that is either whole or as it was before: into a file beside it, which then takes
/// its name. A device or a pipe is written to as it is.
///
/// # Errors
/// What the system says, with the path.
pub fn file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let failed = |cause| Failure::file("write", path, cause);
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        let mut out = File::options().write(true).open(path).map_err(failed)?;
        return write(&mut out).map_err(failed);
    }
    // A link keeps pointing where it does.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = format!(".dllm-rt-{}.part", std::process::id());
    let draft = Draft(folder(&target).join(name));
    let mut out = BufWriter::new(File::create(&draft.0).map_err(failed)?);
    write(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    fs::rename(&draft.0, &target).map_err(failed)
}

/// A file that goes away unless it was renamed.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// How far a piece of work is: shown on a terminal once it has taken a second.
pub struct Progress {
    template: &'static str,
    start: Instant,
    bar: Option<ProgressBar>,
    is_shown: bool,
}

impl Progress {
    /// Of bytes.
    pub fn bytes(is_shown: bool) -> Progress {
        Progress::new("loading {wide_bar} {bytes}/{total_bytes}", is_shown)
    }

    /// Of measurements.
    pub fn measurements() -> Progress {
        Progress::new("measuring {wide_bar} {pos}/{len} {eta}", true)
    }

    /// Of steps.
    pub fn steps(is_shown: bool) -> Progress {
        Progress::new("denoising {wide_bar} {pos}/{len} {eta}", is_shown)
    }

    fn new(template: &'static str, is_shown: bool) -> Progress {
        let is_shown = is_shown && io::stderr().is_terminal();
        Progress { template, start: Instant::now(), bar: None, is_shown }
    }

    /// `done` of `total` are done.
    pub fn set(&mut self, done: u64, total: u64) {
        if !self.is_shown || self.start.elapsed() < PROGRESS_AFTER {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template(self.template);
            ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr())
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
                .with_elapsed(self.start.elapsed())
        });
        bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
