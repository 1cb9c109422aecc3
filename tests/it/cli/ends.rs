//! Where a text ends. The models of the tree never choose their end token, so here a copy of one
//! says that a token which it does choose is the end.

use super::support::{DREAM, LLADA, MASK, folder, ids, model, run};
use serde_json::Value;
use std::path::{Path, PathBuf};

const ARGS: &str = "run --tokens 5,6,7 --max-tokens 16 --temperature 0 --json --trace";

fn generate(model: &Path, args: &str) -> Value {
    let args = format!("{ARGS} {args} --model {}", model.display());
    run(args.split(' ').filter(|word| !word.is_empty())).json()
}

/// A copy of the model with another end-of-text token.
fn with_end(name: &str, end: u32) -> PathBuf {
    let mut bytes = std::fs::read(model(name)).unwrap();
    let key = b"tokenizer.ggml.eos_token_id";
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap() + key.len();
    // After the key its type, which is 4 for u32, and the value.
    assert_eq!(bytes[at..at + 4], 4u32.to_le_bytes());
    bytes[at + 4..at + 8].copy_from_slice(&end.to_le_bytes());
    let path = folder(&format!("ends-{name}")).join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The token that a plain run first commits among those that are not in its first place.
fn chosen(name: &str) -> u32 {
    let tokens = ids(&generate(&model(name), "")["tokens"]);
    *tokens.iter().find(|id| **id != tokens[0]).unwrap()
}

#[test]
fn stopping_early_changes_no_text() {
    for name in [LLADA, DREAM] {
        let end = chosen(name);
        let path = with_end(name, end);
        let (early, late) = (generate(&path, ""), generate(&path, "--early-stop false"));
        assert_eq!(early["text"], late["text"], "{name}");
        assert_eq!(early["finish_reason"], "stop", "{name}");
        assert_eq!(late["finish_reason"], "stop", "{name}");
        let at = ids(&late["tokens"]).iter().position(|id| *id == end).unwrap();
        let kept = ids(&early["tokens"]);
        assert_eq!(kept[..=at], ids(&late["tokens"])[..=at], "{name}");
        let steps = |run: &Value| run["trace"].as_array().unwrap().len();
        assert_eq!(steps(&late), 16, "{name}");
        // Done as soon as everything up to the end is committed, and not before.
        let trace: Vec<Vec<u32>> = early["trace"].as_array().unwrap().iter().map(ids).collect();
        let open = |canvas: &Vec<u32>| {
            let first = canvas[3..].iter().find(|id| **id == MASK || **id == end);
            first != Some(&end)
        };
        assert!(trace[..trace.len() - 1].iter().all(open), "{name}: too late");
        assert!(steps(&early) == 16 || !open(trace.last().unwrap()), "{name}: too early");
    }
}

#[test]
fn an_end_can_be_forbidden() {
    for name in [LLADA, DREAM] {
        let end = chosen(name);
        let json = generate(&with_end(name, end), "--forbid-end");
        assert!(!ids(&json["tokens"]).contains(&end), "{name}");
        assert_eq!(json["finish_reason"], "length", "{name}");
    }
}

#[test]
fn a_distrusted_end_commits_last() {
    let end = chosen(LLADA);
    let path = with_end(LLADA, end);
    let json = generate(&path, "--distrust-end --early-stop false --block-length 16");
    let trace: Vec<Vec<u32>> = json["trace"].as_array().unwrap().iter().map(ids).collect();
    let first = trace.iter().position(|canvas| canvas[3..].contains(&end));
    // Once one is committed, nothing but ends was left to choose.
    let after = &trace[first.unwrap_or(trace.len() - 1)..];
    for pair in after.windows(2) {
        let committed = pair[0].iter().zip(&pair[1]).filter(|(a, b)| a != b);
        assert!(committed.into_iter().all(|(_, token)| *token == end), "{pair:?}");
    }
    let plain = generate(&path, "--early-stop false --block-length 16");
    let place = |run: &Value| {
        let trace = run["trace"].as_array().unwrap();
        trace.iter().position(|canvas| ids(canvas)[3..].contains(&end)).unwrap_or(trace.len())
    };
    assert!(place(&plain) < place(&json), "the flag does nothing");
}
