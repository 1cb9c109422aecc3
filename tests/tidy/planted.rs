//! Each rule catches what it is for, and lets pass what only looks like it.

use crate::source::{Offence, Source};
use crate::{circles, edges, rules};

/// The lines at which a rule objects to a text.
fn lines(path: &str, text: &str, rule: impl Fn(&Source) -> Vec<Offence>) -> Vec<usize> {
    rule(&Source::new(path, text)).iter().map(|offence| offence.line).collect()
}

#[test]
fn code_is_told_from_comments_and_strings() {
    let text = "let a = \"// x \\\" y\"; // c \"q\"\nlet b = r#\"un\"safe\"#; /* d /* e */ f */ g\n\
                let c = ('\\'', '\"', 'x'); fn h<'a>(i: &'a str) {}\n";
    let source = Source::new("src/a.rs", text);
    assert_eq!(source.code[0].trim_end(), "let a = \"         \";");
    assert_eq!(source.comments[0].trim(), "// c \"q\"");
    assert!(source.code[1].starts_with("let b = r          #; "), "{}", source.code[1]);
    assert!(source.code[1].ends_with('g') && !source.code[1].contains('f'));
    assert!(source.code[2].contains("fn h<'a>(i: &'a str) {}"));
}

#[test]
fn test_items_are_told_from_the_rest() {
    let text = "//! a\nfn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() { if x {} }\n}\nfn h() {}\n\
                #[cfg(test)]\nmod more;\nfn i() {}\n";
    let expected = [false, false, true, true, true, true, false, true, true, false];
    assert_eq!(Source::new("src/a.rs", text).test, expected);
    assert!(Source::new("tests/a.rs", "fn f() {}\n").test[0]);
    assert!(Source::new("src/a/tests.rs", "fn f() {}\n").test[0]);
}

#[test]
fn long_lines_are_caught() {
    let text = format!("{}\n{}\n", "é".repeat(10), "x".repeat(11));
    assert_eq!(lines("src/a.rs", &text, |s| rules::long_lines(s, 10)), [2]);
    assert_eq!(lines("tools/a.py", &text, |s| rules::long_lines(s, 10)), [2]);
    assert!(lines("README.md", &text, |s| rules::long_lines(s, 10)).is_empty());
}

#[test]
fn long_files_are_caught() {
    assert_eq!(lines("src/a.rs", "a\nb\nc\n", |s| rules::long_file(s, 2)), [3]);
    assert!(lines("src/a.rs", "a\nb\n", |s| rules::long_file(s, 2)).is_empty());
}

#[test]
fn leftovers_are_caught() {
    let mark = concat!("TO", "DO");
    let skipped = concat!("#[ig", "nore]");
    let text = format!("// {mark}: later\nlet a = \"{mark}\";\n{skipped}\nfn f() {{}}\n");
    assert_eq!(lines("src/a.rs", &text, rules::leftovers), [1, 3]);
    assert_eq!(lines("tools/a.md", &format!("a\n{mark}\n"), rules::leftovers), [2]);
}

#[test]
fn banned_names_are_caught() {
    let catches = |path: &str, line: &str| !lines(path, line, rules::banned_names).is_empty();
    assert!(catches("src/backend/cpu/ops/norm.rs", "let a = b.exp();"));
    assert!(catches("kernels/cpu/src/norm.rs", "let a = x.map(f32::tanh);"));
    assert!(catches("kernels/cpu/src/norm.rs", "let a = x.powi(2);"));
    assert!(catches("src/backend/cpu/ops/norm.rs", "use crossbeam_channel::bounded;"));
    assert!(catches("src/sample/mod.rs", "let a = half.to_f32();"));
    assert!(catches("src/backend/cpu/plan.rs", "use std::collections::HashMap;"));
    assert!(catches("src/gguf/mod.rs", "unreachable!()"));
    assert!(!catches("src/gguf/mod.rs", "unreachable!(\"why\")"));
    assert!(!catches("src/gguf/mod.rs", "// unreachable!()"));
    assert!(!catches("src/vocab/mod.rs", "use std::collections::HashMap;"));
    assert!(!catches("src/backend/cpu/ops/norm.rs", "let a = libm::expf(b); self.expect_more();"));
    assert!(!catches(
        "src/backend/cpu/ops/norm.rs",
        "#[cfg(test)]\nmod tests {\n    fn f() { b.exp(); }\n}"
    ));
    assert!(!catches("tests/a.rs", "let a = b.exp();"));
}

/// The edges of the planted cases; the real table may change.
const EDGES: &[(&str, &[&str])] = &[
    ("main", &["cli", "lib"]),
    ("cli", &["lib"]),
    ("lib", &["plan", "model", "gguf"]),
    ("plan", &["model", "arena::layout"]),
    ("model", &["gguf"]),
    ("gguf", &[]),
];

#[test]
fn forbidden_edges_are_caught() {
    let catches = |path: &str, text: &str| lines(path, text, |s| edges::forbidden(s, EDGES));
    let plan = |text: &str| catches("src/plan.rs", text);
    assert_eq!(plan("//! a\nuse crate::gguf::Header;\n"), [2]);
    assert_eq!(plan("use crate::{model::Config, gguf::{A, B}};\n"), [1, 1]);
    assert_eq!(plan("fn f(a: crate::gguf::Header) {}\n"), [1]);
    assert_eq!(plan("use super::gguf;\n"), [1]);
    assert_eq!(plan("use crate::Engine;\n"), [1]);
    assert_eq!(plan("use dllm_arena::region::Region;\n"), [1]);
    assert_eq!(plan("use dllm_arena as memory;\n"), [1]);
    assert_eq!(plan("use dllm_arena::{layout::A, B as C, layout::D};\n"), [1]);
    assert_eq!(plan("use dllm_cpu::Dtype;\n"), [1]);
    assert_eq!(catches("src/gguf/keys.rs", "use super::super::model::Config;\n"), [1]);
    assert_eq!(catches("src/model/a/b.rs", "use super::super::super::plan::Plan;\n"), [1]);
    assert_eq!(catches("src/cli/run.rs", "use crate::gguf;\n"), [1]);
    assert_eq!(catches("src/new.rs", "\n"), [1]);
    assert_eq!(catches("arena/src/a.rs", "use dllm_cpu::A;\n"), [1]);
    assert_eq!(catches("kernels/cpu/src/a.rs", "use dllm_arena::A;\n"), [1]);
    assert_eq!(catches("kernels/cpu/Cargo.toml", "[dependencies]\ndllm-arena = \"1\"\n"), [2]);
}

#[test]
fn allowed_edges_pass() {
    let passes =
        |path: &str, text: &str| lines(path, text, |s| edges::forbidden(s, EDGES)).is_empty();
    assert!(passes("src/plan.rs", "use crate::model::{Config, Handle};\nuse crate::plan::part;\n"));
    assert!(passes("src/plan.rs", "use dllm_arena::layout::{Layout, Span as Other};\n"));
    assert!(passes("src/plan.rs", "//! crate::gguf\nlet a = \"crate::gguf\";\nuse std::gguf;\n"));
    assert!(passes("src/plan.rs", "#[cfg(test)]\nmod tests {\n    use crate::gguf::A;\n}\n"));
    assert!(passes("src/plan/table.rs", "use super::{Plan, gguf};\npub(crate) fn f() {}\n"));
    assert!(passes("src/model/a/b.rs", "use super::super::plan::Plan;\n"));
    assert!(passes("src/cli/run.rs", "use crate::cli::Flags;\nuse dllm_rt::gguf::Header;\n"));
    assert!(passes("src/main.rs", "mod cli;\nfn main() { cli::run(crate::Exit) }\n"));
    assert!(passes("kernels/cpu/src/a.rs", "//! dllm_arena\nuse crate::dtype::*;\n"));
    assert!(passes("tests/a.rs", "use dllm_arena::A;\n"));
}

fn circles(files: &[(&str, &str)]) -> Vec<String> {
    let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    circles::circles(&sources)
}

#[test]
fn circles_are_caught() {
    let siblings = [
        ("src/lib.rs", "pub mod a;\nmod b;\nmod c;\npub use a::A;\n"),
        ("src/a.rs", "use crate::b;\npub struct A;\nfn f() { b::make() }\n"),
        ("src/b.rs", "use crate::c::{C as Other, D};\npub fn make() {}\n"),
        ("src/c/mod.rs", "pub struct C;\npub struct D;\nfn f() { crate::A::new(); }\n"),
    ];
    let said = "src/a.rs:3 (names b::make) -> src/b.rs:1 (names crate::c::C) -> \
                src/c/mod.rs:3 (names crate::A::new) -> src/a.rs";
    assert_eq!(circles(&siblings), [said]);
    let parent = [
        ("arena/src/lib.rs", "mod a;\n"),
        ("arena/src/a/mod.rs", "mod b;\npub use b::B;\nstruct A {\n    b: B,\n}\n"),
        ("arena/src/a/b.rs", "pub struct B;\nimpl super::A {}\n"),
    ];
    let said = "arena/src/a/mod.rs:2 (names b::B) -> arena/src/a/b.rs:2 (names super::A) -> \
                arena/src/a/mod.rs";
    assert_eq!(circles(&parent), [said]);
    let globs = [
        ("tools/x/src/main.rs", "mod a;\nuse a::*;\nconst M: u8 = 0;\nfn main() { run(); }\n"),
        ("tools/x/src/a.rs", "use super::*;\npub fn run() -> u8 { M }\n"),
    ];
    let said = "tools/x/src/main.rs:2 (names a::run) -> tools/x/src/a.rs:1 (names super::M) -> \
                tools/x/src/main.rs";
    assert_eq!(circles(&globs), [said]);
}

#[test]
fn what_goes_down_is_no_circle() {
    // The parent only declares and re-exports; tests, comments and strings use nothing.
    let files = [
        ("src/lib.rs", "mod a;\npub use a::{B, c::C};\n"),
        ("src/a/mod.rs", "mod b;\npub mod c;\npub use b::B;\npub(crate) use c::*;\n"),
        ("src/a/b.rs", "use super::c::{self, C};\npub struct B(C);\nfn f() { c::g() }\n"),
        (
            "src/a/c.rs",
            "// super::B\npub struct C;\npub fn g() { \"super::B\"; super::C; std::B::x() }\n\
             #[cfg(test)]\nmod tests {\n    use super::super::B;\n}\n",
        ),
    ];
    assert!(circles(&files).is_empty(), "{:?}", circles(&files));
    // A child may use its parent's definitions, and a program its library.
    let files = [
        ("src/lib.rs", "mod a;\npub struct Error;\n"),
        ("src/a.rs", "fn f() -> crate::Error {}\n"),
        ("src/main.rs", "mod cli;\nfn main() { dllm_rt::f(); cli::run() }\n"),
        ("src/cli/mod.rs", "use dllm_rt::Error;\npub fn run() {}\n"),
    ];
    assert!(circles(&files).is_empty(), "{:?}", circles(&files));
}

#[test]
fn stray_unsafe_is_caught() {
    let rule = |s: &Source| rules::stray_unsafe(s, &["arena/", "src/capi/"]);
    let text = "#![forbid(unsafe_code)]\n// unsafe\nlet a = \"unsafe\";\nunsafe { f() }\n";
    assert_eq!(lines("src/a.rs", text, rule), [4]);
    assert_eq!(lines("tests/a.rs", text, rule), [4]);
    assert!(lines("arena/src/a.rs", text, rule).is_empty());
    assert!(lines("src/capi/src/lib.rs", text, rule).is_empty());
}

#[test]
fn missing_openings_are_caught() {
    let caught = |path: &str, text: &str| !lines(path, text, rules::missing_opening).is_empty();
    assert!(caught("src/a.rs", "use b;\n//! c\n"));
    assert!(!caught("src/a.rs", "//! c\nuse b;\n"));
    assert!(caught("tools/a.py", "#!/usr/bin/env python3\nimport b\n"));
    assert!(!caught("tools/a.py", "#!/usr/bin/env python3\n\"\"\"c\"\"\"\n"));
    assert!(caught(".ci/run", "#!/usr/bin/env bash\nset -e\n"));
    assert!(!caught(".ci/run", "#!/usr/bin/env bash\n# c\n"));
}

#[test]
fn places_are_caught() {
    let path = concat!("/ho", "me/me/model.gguf");
    let text = format!("// {path}\nlet a = \"{path}\";\nlet b = \"../c/d\";\n");
    assert_eq!(lines("src/a.rs", &text, rules::places), [1, 2]);
    assert_eq!(lines("Cargo.toml", concat!("# crates", ".io\n"), rules::places), [1]);
}

#[test]
fn the_top_level_is_compared() {
    let names = ["src", ".git", "notes", "LICENSE"].map(str::to_string);
    let said = rules::top_level(&names, &["src", "tests"], &["LICENSE"]);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("tests") && said[1].starts_with("notes"));
}
