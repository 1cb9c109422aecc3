//! Ctrl-C: the first one ends the work, the second one the process.

use crate::cli::failure::Failure;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the first interrupt; one that comes while it is set ends the process with status 130.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes SIGINT over, for the rest of the process's life.
    pub fn listen() -> Result<Interrupt, Failure> {
        let pressed = Arc::new(AtomicBool::new(false));
        // In this order: the second signal finds the flag that the first one has set.
        flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&pressed))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&pressed)))
            .map_err(|cause| Failure::File { doing: "listen for interrupts".into(), cause })?;
        Ok(Interrupt(pressed))
    }

    /// The flag itself.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether there was an interrupt.
    pub fn is_pressed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// From now on the first interrupt sets the flag (`false`), or ends the process (`true`).
    pub fn set(&self, pressed: bool) {
        self.0.store(pressed, Ordering::Relaxed);
    }
}
