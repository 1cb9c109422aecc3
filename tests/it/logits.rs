//! Logits against f64 forward passes made outside this project.
//!
//! The references lie beside the checkout; the models among them that are small enough to keep are
//! in `tests/data` and are checked everywhere.

use dllm_rt::{Engine, Limits, Options, gguf};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Types with one scale per 32, whose int8 activations cost llama.cpp's scheme a little less.
const PER_32: [&str; 6] = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL"];

#[derive(Deserialize)]
struct Case {
    model: String,
    ids: Vec<u32>,
    rows: Vec<u32>,
    argmax: Vec<usize>,
    llama_cpp: Theirs,
}

#[derive(Deserialize)]
struct Theirs {
    rows: Errors,
    all: Errors,
}

#[derive(Deserialize)]
struct Errors {
    #[serde(default)]
    rel_rms: f64,
    #[serde(default)]
    same_argmax: f64,
}

#[test]
fn every_reference_is_within_its_bound() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut checked = 0;
    for folder in [here.join("tests/data"), here.join("../shared/reference")] {
        let Ok(entries) = std::fs::read_dir(folder.join("logits")) else {
            println!("skipped: {} is not there", folder.display());
            continue;
        };
        let mut cases: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        cases.retain(|path| path.extension().is_some_and(|e| e == "json"));
        cases.sort();
        for case in &cases {
            check(&folder, case);
            checked += 1;
        }
    }
    assert!(checked > 0, "no reference was found");
}

fn check(folder: &Path, path: &Path) {
    let case: Case = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let model = folder.join("models").join(format!("{}.gguf", case.model));
    let reference = std::fs::read(path.with_extension("f32")).unwrap();
    let reference: Vec<f32> =
        reference.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let file = gguf::open(&model).unwrap();
    let rows = case.ids.len();
    let limits = Limits { logits: true, ..Limits::new(rows, rows, 2) };
    let options = Options::default();
    let mut engine = Engine::load(&file, limits, &options, &mut |_, _| ()).unwrap();
    let all: Vec<u32> = (0..rows as u32).collect();
    let logits = engine.logits(&case.ids, &all).unwrap();
    let got: Vec<&[f32]> = logits.rows().collect();
    let vocab = got[0].len();
    let (mut squares, mut norm) = (0.0, 0.0);
    for (row, want) in case.rows.iter().zip(reference.chunks_exact(vocab)) {
        for (g, w) in got[*row as usize].iter().zip(want) {
            squares += (f64::from(*g) - f64::from(*w)).powi(2);
            norm += f64::from(*w).powi(2);
        }
    }
    let error = (squares / norm).sqrt();
    let same = got.iter().zip(&case.argmax).filter(|(row, best)| argmax(row) == **best).count();
    let same = same as f64 / rows as f64;
    let kind = case.model.rsplit('-').next().unwrap();
    let bound = match kind {
        "F32" | "F16" | "BF16" => 0.002,
        kind if PER_32.contains(&kind) => 1.25 * case.llama_cpp.rows.rel_rms,
        _ => 1.1 * case.llama_cpp.rows.rel_rms,
    };
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    println!("{name}: error {error:.4} of {bound:.4}, same first-best {same:.3}");
    assert!(error <= bound, "{name}: relative error {error} over {bound}");
    let least = case.llama_cpp.all.same_argmax - 0.06;
    assert!(same >= least, "{name}: first-best token agrees in {same}, under {least}");
}

fn argmax(row: &[f32]) -> usize {
    let mut best = 0;
    for (i, x) in row.iter().enumerate() {
        if *x > row[best] {
            best = i;
        }
    }
    best
}
