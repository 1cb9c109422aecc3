//! Greedy runs, the whole canvas after every step, against runs made outside this project.

use dllm_rt::denoise::{RequestParameters, TokenFacts};
use dllm_rt::sample::Kind;
use dllm_rt::{Engine, GenerationParameters, Limits, Options, gguf};
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Transcripts {
    model: String,
    mask: u32,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    algorithm: String,
    r#gen: u32,
    steps: u32,
    block: Option<u32>,
    eps: Option<f64>,
    prompt: Vec<u32>,
    trace: Vec<Vec<u32>>,
}

#[test]
fn every_step_of_every_transcript_is_reproduced() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut checked = 0;
    for folder in [here.join("tests/data"), here.join("../shared/reference")] {
        let Ok(entries) = std::fs::read_dir(folder.join("transcripts")) else {
            println!("skipped: {} is not there", folder.display());
            continue;
        };
        let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        files.sort();
        for file in &files {
            checked += check(&folder, file);
        }
    }
    assert!(checked >= 40, "only {checked} transcripts were found");
}

fn check(folder: &Path, path: &Path) -> usize {
    let transcripts: Transcripts = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let file = gguf::open(&folder.join("models").join(&transcripts.model)).unwrap();
    let limits = Limits { logits: true, ..Limits::new(64, 32, 2) };
    let mut engine = Engine::load(&file, limits, &Options::default(), &mut |_, _| ()).unwrap();
    for (n, case) in transcripts.cases.iter().enumerate() {
        let trace = run(&mut engine, transcripts.mask, case);
        let name = path.file_name().unwrap().to_string_lossy();
        assert_eq!(trace.len(), case.trace.len(), "{name} case {n}: number of steps");
        for (step, (got, want)) in trace.iter().zip(&case.trace).enumerate() {
            assert_eq!(got, want, "{name} case {n} ({}), step {step}", case.algorithm);
        }
    }
    transcripts.cases.len()
}

fn run(engine: &mut Engine, mask_token: u32, case: &Case) -> Vec<Vec<u32>> {
    let kind = if case.block.is_some() { Kind::Llada } else { Kind::Dream };
    let request = RequestParameters {
        max_tokens: case.r#gen,
        steps: Some(case.steps),
        block_length: case.block,
        algorithm: Some(case.algorithm.parse().unwrap()),
        temperature: Some(0.0),
        eps: case.eps,
        early_stop: false,
        ..RequestParameters::default()
    };
    let parameters = GenerationParameters::new(kind, &request).unwrap();
    let facts = TokenFacts {
        mask_token,
        vocab_size: engine.config().vocab as u32,
        shift_logits: engine.config().shift_logits,
        end_of_text: vec![],
        end_of_turn: vec![],
    };
    let mut sequence = engine.sequence(&case.prompt, &parameters, &facts).unwrap();
    let mut trace = Vec::new();
    while !sequence.canvas().is_done() {
        engine.step_one(&mut sequence).unwrap();
        trace.push(sequence.canvas().ids().to_vec());
    }
    trace
}
