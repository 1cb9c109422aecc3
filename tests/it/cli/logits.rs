//! `logits`: rows, order, and files that are whole or untouched.

use super::support::{DREAM, LLADA, Ran, folder, on, on_with};
use std::path::Path;

/// Bytes of a row: 2048 tokens.
const ROW_BYTES: usize = 4 * 2048;

fn logits(name: &str, args: &str, out: &Path) -> Ran {
    on_with(name, "logits", args, &["--out", out.to_str().unwrap()])
}

#[test]
fn rows_come_in_the_order_asked() {
    let folder = folder("rows");
    for name in [LLADA, DREAM] {
        let (all, some) = (folder.join("all"), folder.join("some"));
        let ran = logits(name, "--tokens 5,6,2040,8", &all);
        assert_eq!((ran.status, ran.out.len()), (0, 0), "{}", ran.err);
        let all = std::fs::read(all).unwrap();
        assert_eq!(all.len(), 4 * ROW_BYTES);
        assert!(all.as_chunks::<4>().0.iter().all(|b| f32::from_le_bytes(*b).is_finite()));
        let json = logits(name, "--tokens 5,6,2040,8 --rows 3,0,0,1,2,3 --json", &some).json();
        assert_eq!((&json["rows"], &json["vocab"]), (&6.into(), &2048.into()));
        let row = |at: usize| &all[at * ROW_BYTES..][..ROW_BYTES];
        let expected = [3, 0, 0, 1, 2, 3].map(row).concat();
        assert!(std::fs::read(some).unwrap() == expected, "{name}: other rows");
        let piped = on(name, "logits", "--tokens 5,6,2040,8 --rows 1 --out -");
        assert!(piped.out == row(1), "{name}: another row on standard output");
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "a draft was left behind");
}

#[test]
fn a_failure_leaves_the_file_as_it_was() {
    let folder = folder("kept");
    let out = folder.join("out");
    std::fs::write(&out, "before").unwrap();
    for (args, word) in [
        ("--tokens 1,2,5000", "5000"),
        ("--tokens 1,2 --rows 2", "row 2"),
        ("--tokens 1,2 --isa mmx", "mmx"),
    ] {
        let ran = logits(LLADA, args, &out);
        assert_eq!(ran.status, 1);
        assert!(ran.err.contains(word), "{}", ran.err);
    }
    assert_eq!(std::fs::read(&out).unwrap(), b"before");
    assert_eq!(logits(LLADA, "--tokens 1", &out).status, 0);
    assert_eq!(std::fs::read(&out).unwrap().len(), ROW_BYTES);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "a draft was left behind");
}

#[test]
fn places_that_take_no_file_are_named() {
    let folder = folder("places");
    for (out, word) in [
        (folder.clone(), "folder"),
        (folder.join("missing/out"), "missing/out"),
        ("/dev/full".into(), "/dev/full"),
    ] {
        let ran = logits(LLADA, "--tokens 1", &out);
        assert_eq!(ran.status, 1, "{}", out.display());
        assert!(ran.err.contains(word), "{}", ran.err);
    }
    assert_eq!(logits(LLADA, "--tokens 1", Path::new("/dev/null")).status, 0);
    assert!(!Path::new("/dev/null").is_file());
    let (link, target) = (folder.join("link"), folder.join("target"));
    std::fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert_eq!(logits(LLADA, "--tokens 1", &link).status, 0);
    assert!(link.is_symlink());
    assert_eq!(std::fs::read(target).unwrap().len(), ROW_BYTES);
}

#[test]
fn no_token_or_row_is_wrong_usage() {
    for args in ["--out o", "--out o --rows 0"] {
        let ran = on_with(LLADA, "logits", args, &["--tokens", ""]);
        assert_eq!(ran.status, 2, "{}", ran.err);
    }
    assert_eq!(on_with(LLADA, "logits", "--tokens 1 --out o", &["--rows", ""]).status, 2);
}
