//! What the kernel says of this process's memory.

use std::fs;

/// Forgets the largest resident size so far, so that the next reading is about what follows.
pub fn reset_peak() {
    // The number that means so, since Linux 4.0; elsewhere the peak is that of the process.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The largest resident size since the last reset, in bytes.
pub fn peak_bytes() -> u64 {
    status("VmHWM:")
}

/// The resident size now, in bytes.
pub fn resident_bytes() -> u64 {
    status("VmRSS:")
}

fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
