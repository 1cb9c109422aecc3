//! Every command of the README runs as it stands.

use std::path::Path;
use std::process::Command;

/// What this is part of, which continuous integration runs itself; and what builds a program that
/// is built already.
const RUN_ELSEWHERE: [&str; 2] = ["cargo test --workspace", "cargo install --locked --path ."];
/// How the first command starts; the program that it builds is the one tested here.
const CARGO_RUN: &str = "cargo run --release -- ";

#[test]
fn every_command_of_the_readme_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    // Where cargo builds, unless it was told to build elsewhere: a command writes there.
    std::fs::create_dir_all(folder.join("target")).unwrap();
    let (mut ran, mut elsewhere, mut shown) = (0, Vec::new(), 0);
    // What the commands of the block before printed, and how many they are.
    let (mut printed, mut since_shown) = (String::new(), 0);
    for (kind, block) in blocks(&readme) {
        if kind == "text" && !printed.is_empty() {
            assert_eq!(block, printed.trim_end(), "the README shows another answer");
            shown += since_shown;
        }
        (printed, since_shown) = (String::new(), 0);
        for line in block.lines().filter(|_| kind == "sh") {
            if RUN_ELSEWHERE.contains(&line) {
                elsewhere.push(line.to_owned());
                continue;
            }
            let command = line.strip_prefix(CARGO_RUN).or(line.strip_prefix("dllm-rt "));
            let Some(command) = command else { panic!("no test knows how to run `{line}`") };
            printed += &run(folder, line, &words(command));
            (ran, since_shown) = (ran + 1, since_shown + 1);
        }
    }
    assert_eq!(elsewhere, RUN_ELSEWHERE);
    assert!(ran >= 14, "only {ran} commands were found");
    assert!(shown >= 4, "only {shown} answers are shown");
}

/// The fenced blocks with their kinds. A `text` block shows what the commands of the `sh` block
/// before it print, with no heading between the two.
fn blocks(readme: &str) -> Vec<(&str, String)> {
    let (mut blocks, mut open) = (Vec::new(), None);
    for line in readme.lines() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(kind), None) => open = Some((kind, Vec::new())),
            (Some(_), Some((kind, lines))) => blocks.push((kind, lines.join("\n"))),
            (None, Some((kind, mut lines))) => {
                lines.push(line);
                open = Some((kind, lines));
            }
            (None, None) if line.starts_with('#') => blocks.push(("heading", String::new())),
            (None, None) => {}
        }
    }
    blocks
}

/// What the command prints.
fn run(folder: &Path, line: &str, arguments: &[String]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dllm-rt"));
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{line}`: {error}");
    let to_file = arguments.iter().any(|a| a == "--out");
    assert!(to_file || !output.stdout.is_empty(), "`{line}` printed nothing");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Words as a shell splits them, as far as the README needs it: blanks and double quotes.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in command.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|w| !w.is_empty());
    words
}
