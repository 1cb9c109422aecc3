//! The SSE control word of a thread, for tests that play a caller with unusual float settings. The
//! library changes it by `FloatEnv` alone. Elsewhere than on x86-64 nothing is changed.

/// Round to nearest, exceptions masked, nothing flushed.
pub const DEFAULT: u32 = 0x1f80;
/// Flush to zero, subnormals taken as zero, rounding towards zero.
pub const UNUSUAL: u32 = DEFAULT | 0x8000 | 0x0040 | 0x6000;
/// The sticky exception flags, which are no setting.
const FLAGS: u32 = 0x3f;

/// The settings of this thread.
pub fn settings() -> u32 {
    #[allow(unused_mut)]
    let mut word = DEFAULT;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: stmxcsr writes 4 bytes at the address, which `word` has.
    unsafe {
        core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack))
    };
    word & !FLAGS
}

/// Runs `f` under the unusual settings and puts the default ones back.
pub fn unusually<T>(f: impl FnOnce() -> T) -> T {
    set(UNUSUAL);
    let result = f();
    set(DEFAULT);
    result
}

fn set(_word: u32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: ldmxcsr reads the 4 bytes of `_word`, no reserved bit of which is set. What floats do
    // under it is what the tests are there to see.
    unsafe {
        core::arch::asm!("ldmxcsr [{}]", in(reg) &_word, options(nostack, readonly))
    };
}
