//! Style as a test, where no compiler lint says it: line and file length, banned names, allowed
//! `use` edges, where unsafe code may live. The lints are in `Cargo.toml` and `.clippy.toml`.
//!
//! Each rule is a pure function over a file's path and text, and `tidy/planted.rs` shows that each
//! one catches what it is for. A rule is changed here, in one place, and for the whole tree.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/edges.rs"]
mod edges;
#[path = "tidy/planted.rs"]
mod planted;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/source.rs"]
mod source;

use source::{Offence, Source};
use std::path::Path;

/// Two windows side by side on a laptop.
const LINE_COLUMNS_MAX: usize = 100;
/// A file holds one idea; what needs more lines holds two.
const FILE_LINES_MAX: usize = 500;
/// Test data is cloned with the tree.
const TEST_DATA_BYTES_MAX: u64 = 15_000_000;

/// The top level, dotfiles aside. `target` is where cargo builds.
const TOP_LEVEL: &[&str] =
    &["Cargo.toml", "src", "kernels", "arena", "tests", "benches", "tools", "README.md"];
const TOP_LEVEL_ALSO: &[&str] =
    &["Cargo.lock", "LICENSE", "NOTICE", "CHANGELOG.md", "CONTRIBUTING.md", "target"];

/// The folders that may hold unsafe code.
const UNSAFE_FOLDERS: &[&str] = &["arena/", "kernels/", "src/capi/"];

/// Each part of the root package and what it may name, all of which lies below it. `kernels` stands
/// for the crates in `kernels/`, `arena` for `dllm-arena`, `lib` for the library's public names. A
/// part may always name itself; `a::b` allows `b` of `a` alone.
const EDGES: &[(&str, &[&str])] = &[
    ("main", &["cli", "serve", "profile", "lib", "arena::CountingAllocator"]),
    // `bench` measures the kernels alone, on memory as the arena reserves it.
    ("cli", &["lib", "kernels", "arena"]),
    ("serve", &["lib"]),
    ("profile", &["lib"]),
    ("capi", &["lib"]),
    // The library's root names its modules.
    ("lib", ALL_PARTS),
    // One variant for each module's error.
    ("error", &["gguf", "model", "vocab", "denoise", "synth", "backend", "arena"]),
    (
        "generate",
        &["engine", "vocab", "demo", "error", "backend", "denoise", "sample", "model", "gguf"],
    ),
    ("engine", &["backend", "denoise", "sample", "model", "gguf", "error"]),
    ("backend", &["model", "gguf", "sample", "arena", "kernels"]),
    ("denoise", &["sample"]),
    // Token bytes lie in a table of the arena.
    ("vocab", &["gguf", "arena::ByteTable", "arena::TableFull"]),
    // Types and their blocks.
    ("synth", &["model", "kernels::dtype"]),
    ("demo", &["gguf"]),
    // A matrix keeps its type and the activations it asks for.
    ("model", &["gguf", "kernels::dtype", "kernels::gemm", "kernels::ops"]),
    ("sample", &["kernels"]),
    // The mapping, which is unsafe code and therefore the arena's.
    ("gguf", &["arena::file"]),
];
const ALL_PARTS: &[&str] = &[
    "generate", "engine", "backend", "denoise", "sample", "model", "vocab", "gguf", "synth",
    "demo", "error", "arena", "kernels", "lib",
];

/// Runs a rule over the whole tree and fails with every offender.
fn check(rule: impl Fn(&Source) -> Vec<Offence>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut report = Vec::new();
    for source in source::tree(root) {
        for offence in rule(&source) {
            report.push(format!("{}:{}: {}", source.path, offence.line, offence.what));
        }
    }
    assert!(report.is_empty(), "{} offenders:\n{}", report.len(), report.join("\n"));
}

#[test]
fn lines_are_short() {
    check(|source| rules::long_lines(source, LINE_COLUMNS_MAX));
}

#[test]
fn files_are_short() {
    check(|source| rules::long_file(source, FILE_LINES_MAX));
}

#[test]
fn nothing_is_left_over() {
    check(rules::leftovers);
}

#[test]
fn banned_names_are_absent() {
    check(rules::banned_names);
}

#[test]
fn parts_name_only_the_parts_they_may() {
    check(|source| edges::forbidden(source, EDGES));
}

#[test]
fn no_files_go_in_circles() {
    let circles = circles::circles(&source::tree(Path::new(env!("CARGO_MANIFEST_DIR"))));
    assert!(circles.is_empty(), "{} circles:\n{}", circles.len(), circles.join("\n"));
}

#[test]
fn unsafe_code_stays_in_its_folders() {
    check(|source| rules::stray_unsafe(source, UNSAFE_FOLDERS));
}

#[test]
fn files_open_with_what_they_are() {
    check(rules::missing_opening);
}

#[test]
fn the_tree_knows_no_machine() {
    check(rules::places);
}

#[test]
fn the_top_level_is_the_design() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let offences = rules::top_level(&source::names(root), TOP_LEVEL, TOP_LEVEL_ALSO);
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}

#[test]
fn test_data_is_small() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["tests", "arena/tests", "kernels/cpu/tests"].map(|folder| root.join(folder));
    let bytes: u64 = folders.iter().filter(|f| f.is_dir()).map(|f| source::data_bytes(f)).sum();
    assert!(
        bytes <= TEST_DATA_BYTES_MAX,
        "tests hold {bytes} bytes of data, at most {TEST_DATA_BYTES_MAX} are allowed"
    );
}
