//! The SSE control word: rounding to nearest and no flushing of subnormals while a step runs.

/// Round to nearest, all exceptions masked, no flush-to-zero, no denormals-are-zero: the state
/// that the x86-64 ABI gives every thread, and that Rust's floats assume.
const DEFAULT_WORD: u32 = 0x1f80;

/// Holds the default control word; the caller's comes back when it is dropped. Elsewhere than on
/// x86-64, where float settings are the platform's, it does nothing.
#[derive(Debug)]
pub struct FloatEnv {
    previous: u32,
}

impl FloatEnv {
    /// Sets the default control word on this thread.
    pub fn enter() -> FloatEnv {
        let previous = control_word();
        // SAFETY: the word that Rust's floats assume.
        unsafe { set_control_word(DEFAULT_WORD) };
        FloatEnv { previous }
    }
}

impl Drop for FloatEnv {
    fn drop(&mut self) {
        // SAFETY: the caller's own word, under which it ran before.
        unsafe { set_control_word(self.previous) };
    }
}

/// This thread's control word.
fn control_word() -> u32 {
    #[allow(unused_mut)]
    let mut word = DEFAULT_WORD;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: stmxcsr writes 4 bytes at the address, which `word` has.
    unsafe {
        core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack));
    }
    word
}

/// Sets this thread's control word, all exceptions masked and none flagged.
///
/// # Safety
/// - Rust's float arithmetic assumes [`DEFAULT_WORD`]: another one is put back only for code that
///   was running under it.
unsafe fn set_control_word(word: u32) {
    /// The sticky flags (bits 0..=5) are a record, not a setting.
    const FLAGS: u32 = 0x3f;
    /// An unmasked exception (bits 7..=12) would end the process.
    const MASKS: u32 = 0x1f80;
    let _word = (word & !FLAGS | MASKS) & 0xffff;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: ldmxcsr reads the 4 bytes of `_word`, whose reserved bits (16.., which would fault)
    // are clear; the caller answers for the settings.
    unsafe {
        core::arch::asm!("ldmxcsr [{}]", in(reg) &_word, options(nostack, readonly));
    }
}
