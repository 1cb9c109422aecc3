//! Every command of the README runs as it stands.

use std::path::Path;
use std::process::Command;

/// What continuous integration runs itself: the tests are what this is part of.
const RUN_ELSEWHERE: &str = "cargo test --workspace";
/// How the first command starts; the program that it builds is the one tested here.
const CARGO_RUN: &str = "cargo run --release -- ";

#[test]
fn every_command_of_the_readme_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    // Where cargo builds, unless it was told to build elsewhere: a command writes there.
    std::fs::create_dir_all(folder.join("target")).unwrap();
    let (mut in_shell, mut ran, mut elsewhere) = (false, 0, false);
    for line in readme.lines() {
        if line.starts_with("```") {
            in_shell = line == "```sh";
        } else if in_shell && line == RUN_ELSEWHERE {
            elsewhere = true;
        } else if in_shell {
            let command = line.strip_prefix(CARGO_RUN).or(line.strip_prefix("dllm-rt "));
            let Some(command) = command else { panic!("no test knows how to run `{line}`") };
            run(folder, line, &words(command));
            ran += 1;
        }
    }
    assert!(elsewhere, "the README does not give `{RUN_ELSEWHERE}`");
    assert!(ran >= 9, "only {ran} commands were found");
}

fn run(folder: &Path, line: &str, arguments: &[String]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dllm-rt"));
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{line}`: {error}");
    let to_file = arguments.iter().any(|a| a == "--out");
    assert!(to_file || !output.stdout.is_empty(), "`{line}` printed nothing");
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
