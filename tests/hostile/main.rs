//! Broken files: each is refused, by the library and by the command, with a message that names what
//! is wrong with it; none panics, none allocates more than the file's size plus a constant.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod case;
mod commands;
#[path = "../it/common/mod.rs"]
mod common;
mod layout;
mod metadata;
mod model;
mod splits;
mod tensors;
mod tokenizer;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use case::{Case, Via};
use common::gguf_writer::{Field, GgufWriter, value_type};
use dllm_arena::count::{self, CountingAllocator};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Bytes beyond the file's size that refusing one may take: messages, tables of a few entries.
const SPARE_BYTES: usize = 1 << 20;

/// Bytes beyond the file's size that the largest tables may take: 65,536 tensors of 208 bytes
/// while they are sorted out, 16,384 keys of 48, and their names.
const TABLES_BYTES: usize = 16 << 20;

fn cases() -> Vec<Case> {
    let mut cases = layout::cases();
    cases.extend(metadata::cases());
    cases.extend(tensors::cases());
    cases.extend(splits::cases());
    cases.extend(model::cases());
    cases.extend(tokenizer::cases());
    cases
}

// One test, so that no other thread allocates meanwhile.
#[test]
fn broken_files_are_refused_by_name() {
    let cases = cases();
    let mut names = HashSet::new();
    for case in &cases {
        assert!(names.insert((case.via as u8, &case.name)), "two cases: {}", case.name);
    }
    let by_inspect = cases.iter().filter(|case| case.via == Via::Inspect).count();
    assert!(by_inspect >= 60, "only {by_inspect} cases of the GGUF layer");
    accept("what the cases are made from", Via::Inspect, &one(layout::small().bytes()));
    accept("a split model", Via::Inspect, &splits::whole());
    for via in [Via::Inspect, Via::Tokenize, Via::Logits] {
        let files = one(common::tiny::llada().bytes());
        accept("the tiny model", via, &files);
        assert_eq!(commands::spawn(via, &write(&files)).0, Some(0), "the tiny model via {via:?}");
    }
    let failures: Vec<_> = cases.iter().filter_map(|case| check(case).err()).collect();
    assert!(failures.is_empty(), "{} cases:\n{}", failures.len(), failures.join("\n"));
    largest_tables();
}

/// The case's command refuses it in the expected words and with exit status 1, in this process and
/// in its own. Whatever is wrong deeper than the GGUF layer, `inspect` still shows the file.
fn check(case: &Case) -> Result<(), String> {
    let (name, expected) = (&case.name, &case.expected);
    if case.via != Via::Inspect {
        accept(name, Via::Inspect, &case.files);
    }
    let Err(message) = run(name, case.via, &case.files) else {
        return Err(format!("{name}: accepted"));
    };
    if message.contains(char::is_control) {
        return Err(format!("{name}: {message:?} has a control character"));
    }
    let (status, printed) = commands::spawn(case.via, &write(&case.files));
    if status != Some(1) || !printed.contains(&message) {
        return Err(format!("{name}: status {status:?}, {printed:?} lacks {message:?}"));
    }
    match message.contains(expected) {
        true => Ok(()),
        false => Err(format!("{name}: {message:?} lacks {expected:?}")),
    }
}

fn accept(name: &str, via: Via, files: &[(String, Vec<u8>)]) {
    assert_eq!(run(name, via, files), Ok(()), "{name} via {via:?}");
}

fn run(name: &str, via: Via, files: &[(String, Vec<u8>)]) -> Result<(), String> {
    let path = write(files);
    let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    measured(name, bytes + SPARE_BYTES, || commands::run(via, &path))
}

fn one(bytes: Vec<u8>) -> Vec<(String, Vec<u8>)> {
    vec![("model.gguf".to_owned(), bytes)]
}

/// As many keys and tensors as are accepted, with the shortest names.
fn largest_tables() {
    let mut file = GgufWriter::new();
    for index in 0..16_384 {
        let field = Field { ty: value_type::U8, bytes: vec![0] };
        file.keys.push((format!("{index:x}").into_bytes(), field));
    }
    for index in 0..65_536 {
        let tensor = common::gguf_writer::Tensor {
            name: format!("{index:x}").into_bytes(),
            shape: vec![1],
            ty: common::gguf_writer::tensor_type::F32,
            offset: Some(32 * index),
            data: if index == 65_535 { vec![0; 4] } else { Vec::new() },
        };
        file.tensors.push(tensor);
    }
    let bytes = file.bytes();
    let limit = bytes.len() + TABLES_BYTES;
    let path = write(&one(bytes));
    let result = measured("the largest tables", limit, || commands::run(Via::Inspect, &path));
    assert_eq!(result, Ok(()));
}

/// Runs `run` and checks that at no time it held more than `limit` bytes of the heap.
fn measured<T>(name: &str, limit: usize, run: impl FnOnce() -> T) -> T {
    count::reset_peak();
    let before = count::live_bytes();
    let result = run();
    let peak = count::peak_bytes() - before;
    assert!(peak <= limit, "{name}: {peak} bytes allocated, {limit} allowed");
    result
}

/// Writes the files into a fresh folder and gives the path of the first.
fn write(files: &[(String, Vec<u8>)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    folder.join(&files[0].0)
}
