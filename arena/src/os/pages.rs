//! Pages of the region: made present, locked, huge, and what to say where the system refuses.

use crate::os::available::Bytes;
use memmap2::{Advice, MmapMut};
use std::fs;
use std::ops::Range;

/// Bytes of a transparent huge page on x86-64; the region starts on such a boundary when asked.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;
/// The smallest page there is on x86-64: touching one byte of each touches them all.
pub const PAGE_BYTES: usize = 4096;

/// Whether the system ever gives a mapping that asks for them huge pages.
const HUGE_PAGES_SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Whether the region is to be locked into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lock {
    /// Lock where permitted.
    #[default]
    Auto,
    /// The user asked for it: failure is said more loudly, and is still no error.
    On,
    /// Leave the pages to the kernel.
    Off,
}

/// Makes the pages that lie wholly inside `part` of a region present, so that filling them does
/// not fault one by one. What they hold stays as it is. Threads may do this side by side, and a
/// page that one has made present is warm in its cache when it fills it.
///
/// By one call where the kernel has it (Linux 5.14), else by hand.
pub fn prefault(part: &mut [u8]) {
    let start = part.as_ptr().align_offset(PAGE_BYTES).min(part.len());
    let end = start + (part.len() - start) / PAGE_BYTES * PAGE_BYTES;
    let whole = &mut part[start..end];
    if whole.is_empty() || prefault_by_call(whole) {
        return;
    }
    for page in whole.chunks_mut(PAGE_BYTES) {
        // The value is there already: only what can't be seen through keeps the store.
        page[0] = std::hint::black_box(page[0]);
    }
}

/// `MADV_POPULATE_WRITE` on whole pages; false where it does not do it.
fn prefault_by_call(pages: &mut [u8]) -> bool {
    debug_assert!(pages.as_ptr().addr().is_multiple_of(PAGE_BYTES));
    debug_assert!(pages.len().is_multiple_of(PAGE_BYTES));
    let (start, bytes) = (pages.as_mut_ptr().cast(), pages.len());
    // SAFETY: the pages are exclusively borrowed, and the advice makes them present as a write to
    // each would, without changing what they hold.
    unsafe { libc::madvise(start, bytes, libc::MADV_POPULATE_WRITE) == 0 }
}

/// Asks for huge pages in a range of a mapping; what to tell the user where they will not come.
pub(crate) fn advise_huge(map: &MmapMut, range: Range<usize>) -> Option<String> {
    if let Err(cause) = map.advise_range(Advice::HugePage, range.start, range.len()) {
        return Some(format!("no huge pages: this kernel refuses them ({cause})"));
    }
    // With `never` the advice is taken and forgotten.
    let setting = fs::read_to_string(HUGE_PAGES_SETTING).ok()?;
    setting.contains("[never]").then(|| {
        format!("no huge pages: {HUGE_PAGES_SETTING} is `never`; as root, write `madvise` to it")
    })
}

/// Bytes of huge pages among `pages`, which are all or part of one mapping; `None` where the
/// kernel does not say.
pub(crate) fn huge_bytes(pages: &[u8]) -> Option<usize> {
    let start = pages.as_ptr().addr();
    huge_bytes_in(&fs::read_to_string("/proc/self/smaps").ok()?, start..start + pages.len())
}

/// The sum of `AnonHugePages` over the mappings of an smaps file that meet `addresses`.
fn huge_bytes_in(smaps: &str, addresses: Range<usize>) -> Option<usize> {
    let (mut sum, mut inside) = (None, false);
    for line in smaps.lines() {
        if let Some(mapping) = mapping_of(line) {
            inside = mapping.start < addresses.end && addresses.start < mapping.end;
        } else if inside && let Some(rest) = line.strip_prefix("AnonHugePages:") {
            let kib: usize = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
            sum = Some(sum.unwrap_or(0) + kib * 1024);
        }
    }
    sum
}

/// The addresses of a mapping's first line, `7f00-7f80 rw-p ...`.
fn mapping_of(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let address = |digits: &str| usize::from_str_radix(digits, 16).ok();
    Some(address(start)?..address(end)?)
}

/// Locks `pages` into memory: each as it becomes present where the kernel can (Linux 4.4), else
/// all at once. What to tell the user where it is refused.
pub(crate) fn lock(pages: &[u8], wish: Lock) -> Option<String> {
    let (start, bytes) = (pages.as_ptr().cast(), pages.len());
    // SAFETY: `pages` borrows the range, and locking changes no contents.
    let on_fault = unsafe { libc::mlock2(start, bytes, libc::MLOCK_ONFAULT as libc::c_uint) };
    // SAFETY: `pages` borrows the range, and locking changes no contents.
    if on_fault == 0 || unsafe { libc::mlock(start, bytes) } == 0 {
        return None;
    }
    let cause = std::io::Error::last_os_error();
    let lead = match wish {
        Lock::On => "locking was asked for, but the memory is not locked",
        _ => "memory not locked",
    };
    Some(format!(
        "{lead} ({cause}): it needs {} and the limit on locked memory (RLIMIT_MEMLOCK) is {}; \
         raise it with `ulimit -l unlimited` or LimitMEMLOCK=infinity",
        Bytes(bytes),
        lock_limit()
    ))
}

/// The soft limit on locked memory, in words.
fn lock_limit() -> String {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the one struct that the call writes.
    let status = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    match (status, limit.rlim_cur) {
        (0, libc::RLIM_INFINITY) => "unlimited".to_string(),
        (0, bytes) => Bytes(bytes as usize).to_string(),
        _ => "unknown".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_summed_over_the_mappings_that_meet() {
        let smaps = "7000-9000 rw-p 00000000 00:00 0\nSize: 8 kB\nAnonHugePages:      2048 kB\n\
                     9000-a000 rw-p 00000000 00:00 0 [heap]\nAnonHugePages:  4096 kB\n\
                     VmFlags: rd wr mr mw me\nb000-c000 r--p 0 00:00 0\nAnonHugePages: 8 kB\n";
        assert_eq!(huge_bytes_in(smaps, 0x7000..0x9000), Some(2 << 20));
        assert_eq!(huge_bytes_in(smaps, 0x8fff..0x9001), Some(6 << 20));
        assert_eq!(huge_bytes_in(smaps, 0x9000..0xb001), Some((4 << 20) + 8192));
        assert_eq!(huge_bytes_in(smaps, 0xa000..0xb000), None);
        assert_eq!(huge_bytes_in("", 0..usize::MAX), None);
    }
}
