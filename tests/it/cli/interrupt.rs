//! Ctrl-C: the best canvas is printed; a second one ends the process.

use super::support::{LLADA, ids, model, program};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// Steps of the run: their lines, of more than 1,000 bytes each, fill a pipe long before the last,
/// so that the run cannot end while nobody reads them.
const TOKENS: u32 = 500;

fn start(tokens: u32, args: &[&str]) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut command = program();
    let count = tokens.to_string();
    command.args(["run", "--tokens", "5,6,7", "--watch", "--max-tokens", &count]);
    command.arg("--model").arg(model(LLADA)).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    for step in 1..=3 {
        line.clear();
        err.read_line(&mut line).unwrap();
        assert!(line.starts_with(&format!("step {step}/{tokens}: ")), "{line}");
    }
    (child, err)
}

fn interrupt(child: &Child) {
    signal(child, "INT");
}

fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// Reads both streams to their ends.
fn finish(mut child: Child, mut err: BufReader<std::process::ChildStderr>) -> (i32, String) {
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("panicked"), "{rest}");
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    (child.wait().unwrap().code().unwrap_or(-1), out)
}

#[test]
fn the_first_interrupt_prints_the_best_canvas() {
    let (child, err) = start(TOKENS, &["--json"]);
    interrupt(&child);
    let (status, out) = finish(child, err);
    assert_eq!(status, 130);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["finish_reason"], "interrupt");
    let tokens = ids(&json["tokens"]);
    let masks = tokens.iter().filter(|id| **id == super::support::MASK).count();
    assert_eq!(tokens.len(), TOKENS as usize);
    assert!(masks > 0 && masks + 3 <= tokens.len(), "{masks} masks");
    assert_eq!(json["forward_passes"].as_u64().unwrap() as usize, tokens.len() - masks);
    assert!(!json["text"].as_str().unwrap().is_empty());
}

#[test]
fn plain_text_comes_with_status_130() {
    let (child, err) = start(TOKENS, &[]);
    interrupt(&child);
    let (status, out) = finish(child, err);
    assert_eq!(status, 130);
    assert!(out.ends_with('\n') && out.len() > 1, "{out:?}");
    assert!(!out.contains("mask"), "{out:?}");
}

/// What a service manager sends, and what a closed terminal does.
#[test]
fn other_signals_print_the_best_canvas_too() {
    for (name, expected) in [("TERM", 143), ("HUP", 129)] {
        let (child, err) = start(TOKENS, &[]);
        signal(&child, name);
        let (status, out) = finish(child, err);
        assert_eq!(status, expected, "{name}");
        assert!(out.ends_with('\n') && out.len() > 1, "{name}: {out:?}");
    }
}

/// As under `nohup`, or in a shell's background.
#[test]
fn an_ignored_signal_stays_ignored() {
    let model = model(LLADA);
    let run = format!(
        "trap '' INT HUP; exec {} run --tokens 5,6,7 --max-tokens 40 --watch --json --model {}",
        program().get_program().display(),
        model.display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &run]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    err.read_line(&mut String::new()).unwrap();
    interrupt(&child);
    signal(&child, "HUP");
    let (status, out) = finish(child, err);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(status, 0);
    assert_ne!(json["finish_reason"], "interrupt");
}

#[test]
fn the_second_interrupt_ends_the_process() {
    // A report longer than a pipe holds: the process cannot end by itself while nobody reads it.
    let (child, err) = start(4000, &["--json", "--trace"]);
    interrupt(&child);
    // Two signals at once would be one.
    std::thread::sleep(std::time::Duration::from_millis(300));
    interrupt(&child);
    let (status, out) = finish(child, err);
    assert_eq!(status, 130);
    assert!(serde_json::from_str::<Value>(&out).is_err(), "a whole report");
}
