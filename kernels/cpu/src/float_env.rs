//! The SSE control word: rounding to nearest and no flushing of subnormals while a step runs.

/// Round to nearest, all exceptions masked, no flush-to-zero, no denormals-are-zero: the state
/// that the x86-64 ABI gives every thread, and that Rust's floats assume.
const DEFAULT_WORD: u32 = 0x1f80;

/// Holds the default control word; the caller's comes back when it is dropped.
#[derive(Debug)]
pub struct FloatEnv {
    previous: u32,
}

impl FloatEnv {
    /// Sets the default control word on this thread.
    pub fn enter() -> FloatEnv {
        let previous = control_word();
        set_control_word(DEFAULT_WORD);
        FloatEnv { previous }
    }
}

impl Drop for FloatEnv {
    fn drop(&mut self) {
        set_control_word(self.previous);
    }
}

/// This thread's control word.
#[cfg(target_arch = "x86_64")]
pub fn control_word() -> u32 {
    let mut word = 0u32;
    // SAFETY: stmxcsr writes 4 bytes at the address, which `word` has.
    unsafe { core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack)) };
    word
}

/// Sets this thread's control word, all exceptions masked and none flagged; for [`FloatEnv`], and
/// for tests that play a caller with unusual rounding. Rust's own float arithmetic assumes the
/// default, so nothing else should be computed under another one.
#[cfg(target_arch = "x86_64")]
pub fn set_control_word(word: u32) {
    /// The sticky flags (bits 0..=5) are a record, not a setting.
    const FLAGS: u32 = 0x3f;
    /// An unmasked exception (bits 7..=12) would end the process.
    const MASKS: u32 = 0x1f80;
    let word = word & !FLAGS | MASKS;
    // SAFETY: the mask keeps reserved bits out (bits 16.. would fault).
    unsafe {
        core::arch::asm!("ldmxcsr [{}]", in(reg) &(word & 0xffff), options(nostack, readonly));
    }
}

/// No control word is known here: float settings are the platform's.
#[cfg(not(target_arch = "x86_64"))]
pub fn control_word() -> u32 {
    DEFAULT_WORD
}

/// Does nothing here.
#[cfg(not(target_arch = "x86_64"))]
pub fn set_control_word(_word: u32) {}
