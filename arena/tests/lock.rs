//! Locking: pages as they become present, and what is said where it is not permitted. The limit
//! is the process's, so these tests have a file, and so a process, of their own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use dllm_arena::{Lock, Options, Region, prefault};
use std::fs;
use std::sync::Mutex;

const REGION_BYTES: usize = 4 << 20;
/// The tests change the limit or depend on it.
static LIMIT: Mutex<()> = Mutex::new(());

/// A number of this process's status, in KiB.
fn status_kib(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Takes the privilege of locking without limit from the calling thread, where it has it.
fn drop_privileges() {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header { version: VERSION_3, pid: 0 };
    // Effective, permitted and inheritable, in two halves.
    let none = [0u32; 6];
    // SAFETY: the call reads a header and six words, which both live until it returns; 0 means
    // the calling thread.
    let status = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    assert_eq!(status, 0);
}

#[test]
fn a_mapped_region_is_locked_but_not_made_present() {
    let _limit = LIMIT.lock().unwrap();
    for lock in [Lock::Auto, Lock::On] {
        let (locked, resident) = (status_kib("VmLck:"), status_kib("RssAnon:"));
        let mut region = Region::map(REGION_BYTES, &Options { huge_pages: false, lock }).unwrap();
        if !region.locked() {
            assert!(region.warnings()[0].contains("RLIMIT_MEMLOCK"), "{:?}", region.warnings());
            println!("skipped: locking is not permitted here");
            return;
        }
        assert!(region.warnings().is_empty());
        assert_eq!(status_kib("VmLck:") - locked, REGION_BYTES / 1024);
        assert!(status_kib("RssAnon:") < resident + REGION_BYTES / 2048);
        let bytes = region.bytes();
        prefault(region.span_mut(dllm_arena::Span { offset: 0, bytes }));
        assert!(status_kib("RssAnon:") >= resident + REGION_BYTES / 1024);
    }
}

#[test]
fn a_lock_that_is_refused_is_a_warning_that_names_the_limit() {
    let _limit = LIMIT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes one struct, which lives until it returns.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut before) }, 0);
    let low = libc::rlimit { rlim_cur: before.rlim_max.min(64 << 10), ..before };
    // SAFETY: the call reads one struct, which lives until it returns.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const low) }, 0);
    std::thread::spawn(|| {
        drop_privileges();
        for (lock, lead) in [(Lock::Auto, "memory not locked"), (Lock::On, "was asked for")] {
            let options = Options { huge_pages: false, lock };
            let region = Region::reserve(REGION_BYTES, &options).unwrap();
            assert!(!region.locked());
            let [warning] = region.warnings() else { panic!("{:?}", region.warnings()) };
            for word in [lead, "4.0 MiB", "RLIMIT_MEMLOCK", " KiB", "ulimit -l"] {
                assert!(warning.contains(word), "{word}: {warning}");
            }
        }
    })
    .join()
    .unwrap();
    // SAFETY: the call reads one struct, which lives until it returns.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const before) }, 0);
}
