//! Mapped files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use dllm_arena::MappedFile;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use tempfile::NamedTempFile;

fn scratch(contents: &[u8]) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    fs::write(&file, contents).unwrap();
    file
}

#[test]
fn bytes_stay_the_same_after_a_release() {
    let contents: Vec<u8> = (0..50_001u32).map(|at| (at * 7 + at / 256) as u8).collect();
    let file = scratch(&contents);
    let mapped = MappedFile::open(file.path()).unwrap();
    assert_eq!(mapped.bytes(), contents);
    let ranges = [0..50_001, 0..0, 4095..4097, 4096..8192, 49_000..usize::MAX, 60_000..70_000];
    let reversed = std::ops::Range { start: 9000, end: 100 };
    let beyond = std::ops::Range { start: usize::MAX, end: usize::MAX };
    for range in ranges.into_iter().chain([reversed, beyond]) {
        mapped.release(range);
        assert_eq!(mapped.bytes(), contents);
    }
}

/// Resident bytes of file mappings of this process.
fn resident_file_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssFile:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_release_gives_the_pages_back() {
    let file = scratch(&vec![1u8; 64 << 20]);
    let mapped = MappedFile::open(file.path()).unwrap();
    let sum: u64 = mapped.bytes().iter().step_by(4096).map(|&byte| u64::from(byte)).sum();
    assert_eq!(sum, 16_384);
    let before = resident_file_kib();
    mapped.release(0..mapped.bytes().len());
    let after = resident_file_kib();
    assert!(after + 60_000 < before, "{before} KiB before, {after} KiB after");
}

#[test]
fn what_is_no_file_is_refused_by_name() {
    let refused = |path: &Path, why: &str| {
        let error = MappedFile::open(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(text.contains(why) && text.contains(path.to_str().unwrap()), "{text}");
    };
    refused(&std::env::temp_dir(), "is a folder");
    refused(Path::new("/dev/null"), "is no regular file");
    refused(scratch(&[]).path(), "is empty");
    let missing = MappedFile::open(Path::new("no such file")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}
