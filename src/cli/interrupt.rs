//! Ctrl-C, and what a service manager or a closed terminal sends: the first signal ends the work,
//! the second one the process.

use crate::cli::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::ffi::c_int;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The signals that end the work.
const SIGNALS: [c_int; 3] = [SIGINT, SIGTERM, SIGHUP];
/// What a shell adds to a signal's number.
const STATUS: c_int = 128;

/// Set by the first signal; one that comes while it is set ends the process.
#[derive(Clone, Debug)]
pub struct Interrupt {
    pressed: Arc<AtomicBool>,
    /// The number of the last signal.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Takes the signals over, for the rest of the process's life. One that was ignored when the
    /// process began, as `nohup` and shells do for their children, stays ignored.
    pub fn listen() -> Result<Interrupt, Failure> {
        let interrupt = Interrupt { pressed: Arc::default(), signal: Arc::default() };
        let ignored = ignored();
        for signal in SIGNALS.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0) {
            let Interrupt { pressed, signal: last } = &interrupt;
            // In this order: the second signal finds the flag that the first one has set.
            flag::register_conditional_shutdown(signal, STATUS + signal, Arc::clone(pressed))
                .and_then(|_| flag::register_usize(signal, Arc::clone(last), signal as usize))
                .and_then(|_| flag::register(signal, Arc::clone(pressed)))
                .map_err(|cause| Failure::File { doing: "listen for signals".into(), cause })?;
        }
        Ok(interrupt)
    }

    /// The flag itself.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.pressed)
    }

    /// Whether there was a signal.
    pub fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    /// What the process ends with: 128 and the number of the signal.
    pub fn status(&self) -> u8 {
        // The numbers are below 32.
        STATUS as u8 + self.signal.load(Ordering::Relaxed) as u8
    }

    /// From now on the first signal sets the flag (`false`), or ends the process (`true`).
    pub fn set(&self, pressed: bool) {
        self.pressed.store(pressed, Ordering::Relaxed);
    }
}

/// The signals that this process ignores, a bit each, as the kernel shows them; none where it does
/// not.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
