//! Style as a test: limits, banned names, allowed `use` edges, where unsafe code may live.
//!
//! Each rule is a pure function over a file's path and text, and `tidy/planted.rs` shows that each
//! one catches what it is for. A rule is changed here, in one place, and for the whole tree.

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
/// A ratchet: lower it when the longest function allows, never raise it.
const FUNCTION_LINES_MAX: usize = 70;
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

/// Each part of the root package and what it may name. `kernels` stands for the crates below
/// `kernels/`, `arena` for `dllm-arena`, `lib` for the library's public names. A part may always
/// name itself; `a::b` allows `b` of `a` alone.
const EDGES: &[(&str, &[&str])] = &[
    ("main", &["cli", "serve", "profile", "lib"]),
    // `bench` measures the kernels alone, on memory as the arena reserves it.
    ("cli", &["lib", "engine", "error", "kernels", "arena"]),
    ("serve", &["lib", "engine", "error"]),
    ("profile", &["lib", "engine", "error"]),
    ("capi", &["lib"]),
    // The library's root names its modules, and `engine` ties them together.
    ("lib", ALL_PARTS),
    ("engine", ALL_PARTS),
    ("error", ALL_PARTS),
    ("denoise", &["sample", "step"]),
    // Choosing tokens is an operator; shapes are the model's.
    ("step", &["plan", "team", "device", "arena", "kernels", "sample", "model"]),
    // What goes where is the plan's.
    ("repack", &["gguf", "model", "plan", "arena", "kernels"]),
    // Another source of what `repack` fills the arena with.
    ("packed", &["gguf", "model", "plan", "repack", "arena", "kernels::dtype", "kernels::pack"]),
    ("plan", PLAN),
    // A matrix keeps its type and the activations it asks for.
    ("model", &["gguf", "kernels::dtype", "kernels::gemm", "kernels::ops"]),
    ("vocab", &["gguf"]),
    ("device", &["arena", "kernels"]),
    ("team", &["arena"]),
    ("sample", &["kernels"]),
    // The mapping, which is unsafe code and therefore the arena's.
    ("gguf", &["arena::file"]),
    ("demo", &["gguf"]),
    // Types and their blocks.
    ("synth", &["model", "kernels::dtype"]),
];
/// What a plan is made of: sizes and offsets, tile sizes, and which phase may touch what.
const PLAN: &[&str] = &[
    "model",
    "arena::layout",
    "arena::access",
    "arena::ALIGN",
    "arena::Span",
    "arena::Partition",
    "arena::PhaseAccess",
    "kernels::dtype",
    "kernels::gemm",
    "kernels::ops",
    "kernels::pack",
];
const ALL_PARTS: &[&str] = &[
    "denoise", "sample", "step", "repack", "packed", "plan", "model", "vocab", "gguf", "team",
    "device", "engine", "error", "demo", "synth", "arena", "kernels", "lib",
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
fn functions_are_short() {
    check(|source| rules::long_functions(source, FUNCTION_LINES_MAX));
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
fn what_may_panic_says_why_it_cannot() {
    check(rules::unreasoned_panics);
}

#[test]
fn parts_name_only_the_parts_they_may() {
    check(|source| edges::forbidden(source, EDGES));
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
