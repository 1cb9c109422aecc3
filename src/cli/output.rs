//! Standard output and error, files that are whole or absent, and progress.

use crate::cli::failure::Failure;
use dllm_rt::GenerationParameters;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// Who may do what with a new file, less what the user's mask takes away.
const FILE_MODE: u32 = 0o666;
/// Work that takes longer than this shows how far it is.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

/// Writes a line to standard error. Nobody can be told if that fails.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Says what was assumed, or refused without harm.
pub fn warn(message: &str) {
    say(&format!("warning: {message}"));
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

/// Writes a model's text and a newline. On a terminal, characters that would move its cursor or
/// change its settings are shown as U+FFFD.
pub fn text(text: &str) -> Result<(), Failure> {
    let is_terminal = io::stdout().is_terminal();
    results(|out| match is_terminal {
        true => writeln!(out, "{}", harmless(text)),
        false => writeln!(out, "{text}"),
    })
}

/// A text for a terminal: line ends and tabs, and no other control characters.
pub fn harmless(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// Writes one JSON value and a newline to standard output.
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    results(|out| {
        serde_json::to_writer(&mut *out, value)?;
        writeln!(out)
    })
}

/// Parameters under the names of their flags, with the number of steps that follows from them.
pub fn settings(parameters: &GenerationParameters, steps: u32) -> Value {
    let mut settings = json!(parameters);
    settings["steps"] = steps.into();
    settings
}

/// Refuses a path that nothing can be written to, before the work is done.
///
/// # Errors
/// A folder, a file in a folder that does not exist or may not be written to, a file that may not,
/// a GGUF file, a link that leads nowhere, a stream that is open already.
pub fn check_target(path: &Path) -> Result<(), Failure> {
    let failed = |cause| Failure::file("write", path, cause);
    let refuse = |kind: ErrorKind, why: &str| Err(failed(io::Error::new(kind, why.to_owned())));
    if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return refuse(ErrorKind::IsADirectory, "it is a folder");
    }
    if !folder(path).is_dir() {
        return refuse(ErrorKind::NotFound, "its folder does not exist");
    }
    match fs::metadata(path) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(failed(cause)),
        Err(_) if path.is_symlink() => {
            return refuse(ErrorKind::NotFound, "it is a link that leads nowhere");
        }
        // A pipe or a device; what it does with what it is given is its own affair.
        Ok(there) if !there.is_file() => return Ok(()),
        Ok(there) if there.permissions().readonly() => {
            return refuse(ErrorKind::PermissionDenied, "it may not be written to");
        }
        // The model itself, or a part of it, by whatever name.
        Ok(_) if is_gguf(path) => {
            return refuse(ErrorKind::AlreadyExists, "it is a GGUF file, which may be the model");
        }
        Ok(_) if is_stream(path) => {
            let why = "it names a stream that is open; give the file's own name";
            return refuse(ErrorKind::AlreadyExists, why);
        }
        _ => {}
    }
    draft(path).map(drop).map_err(failed)
}

/// Whether a path is one of the names that the system gives to open files, like `/dev/stdout`: a
/// file that takes such a name would take the place of what is written there.
fn is_stream(path: &Path) -> bool {
    let is_process = |path: &Path| path.starts_with("/proc");
    fs::read_link(path).is_ok_and(|target| is_process(&target))
        || folder(path).canonicalize().is_ok_and(|folder| is_process(&folder))
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
    // A link keeps pointing where it does, and a file keeps who may read it.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let draft = draft(&target).map_err(failed)?;
    if let Ok(there) = fs::metadata(&target) {
        draft.as_file().set_permissions(there.permissions()).map_err(failed)?;
    }
    let mut out = BufWriter::new(draft.as_file());
    write(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    drop(out);
    draft.persist(&target).map(drop).map_err(|error| failed(error.error))
}

/// A file beside `path`, of a name that nobody can know before. It goes away unless it is
/// persisted.
fn draft(path: &Path) -> io::Result<NamedTempFile> {
    let permissions = Permissions::from_mode(FILE_MODE);
    tempfile::Builder::new()
        .prefix(".dllm-rt-")
        .suffix(".part")
        .permissions(permissions)
        .tempfile_in(folder(path))
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

    /// Of tasks.
    pub fn tasks() -> Progress {
        Progress::new("asking {wide_bar} {pos}/{len} {eta}", true)
    }

    /// Of masks.
    pub fn masks(is_shown: bool) -> Progress {
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

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn nothing_reaches_a_terminal_that_moves_its_cursor() {
        let title = "\x1b]0;owned\x07é\t1\r\n\u{9b}31m\u{7f}";
        assert_eq!(harmless(title), "\u{fffd}]0;owned\u{fffd}é\t1\u{fffd}\n\u{fffd}31m\u{fffd}");
    }
}
