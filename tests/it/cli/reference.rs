//! Greedy runs made outside this project, step by step through the program.

use super::support::{list, run};
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
struct File {
    model: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    algorithm: String,
    prompt: Vec<u32>,
    r#gen: u32,
    steps: u32,
    block: Option<u32>,
    eps: Option<f64>,
    trace: Vec<Vec<u32>>,
}

#[test]
fn transcripts_are_followed_step_by_step() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference");
    let Ok(entries) = std::fs::read_dir(folder.join("transcripts")) else {
        println!("skipped: {} is not there", folder.display());
        return;
    };
    let mut checked = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        let file: File = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let model = folder.join("models").join(&file.model);
        for (number, case) in file.cases.iter().enumerate() {
            check(&format!("{} case {number}", path.display()), &model, case);
            checked += 1;
        }
    }
    assert!(checked > 0, "no transcript was found");
}

fn check(name: &str, model: &Path, case: &Case) {
    let mut args: Vec<String> = [
        "run",
        "--json",
        "--trace",
        "--early-stop",
        "false",
        "--temperature",
        "0",
        "--top-p",
        "1",
        "--algorithm",
        &case.algorithm,
        "--model",
        model.to_str().unwrap(),
        "--tokens",
        &list(&case.prompt),
        "--max-tokens",
        &case.r#gen.to_string(),
        "--steps",
        &case.steps.to_string(),
    ]
    .map(String::from)
    .into();
    if let Some(block) = case.block {
        args.extend(["--block-length".into(), block.to_string()]);
    }
    if let Some(eps) = case.eps {
        args.extend(["--eps".into(), eps.to_string()]);
    }
    let json = run(&args).json();
    let trace: Vec<Vec<u32>> = serde_json::from_value(json["trace"].clone()).unwrap();
    assert_eq!(trace.len(), case.trace.len(), "{name}: steps");
    for (step, (got, want)) in trace.iter().zip(&case.trace).enumerate() {
        assert_eq!(got, want, "{name}: step {step}");
    }
}
