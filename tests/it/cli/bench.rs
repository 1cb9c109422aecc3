//! `bench`: every field of its report, what they mean together, and what it refuses.

use super::support::{DREAM, LLADA, folder, model, on, run};
use dllm_rt::model::Architecture;
use dllm_rt::synth::{Recipe, Shape, SyntheticFile, Types};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Matrices of a layer of the shape `tiny`: 256 wide, a feed-forward of 512.
const MATRICES: [(u64, u64); 3] = [(256, 256), (512, 256), (256, 512)];
const QUICK: &str = "bench --shape tiny --reps 1 --threads 1 --json";

fn bench(args: &str) -> Value {
    let ran = run(args.split_whitespace());
    assert_eq!(ran.err, "");
    ran.json()
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn list<'a>(report: &'a Value, name: &str) -> &'a [Value] {
    report[name].as_array().unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// A file of architecture llama, small.
fn llama(folder_name: &str) -> PathBuf {
    let shape = Shape { layers: 1, context: 64, ..Shape::TINY };
    let (architecture, types) = (Architecture::Llama, Types::Q4KM);
    let file = SyntheticFile::new(Recipe { architecture, shape, types, seed: 1 }).unwrap();
    let path = folder(folder_name).join("llama.gguf");
    file.write(&mut std::fs::File::create(&path).unwrap()).unwrap();
    path
}

#[test]
fn every_combination_is_there_with_its_fields() {
    let report =
        bench("bench --shape tiny --rows 5,9 --threads 1,2 --reps 1 --output-rows 7 --json");
    assert_eq!(keys(&report), BTreeSet::from(["machine", "peak", "gemm", "forward"]));
    assert_eq!(keys(&report["machine"]), BTreeSet::from(["cpu", "isa", "threads"]));
    assert!(report["machine"]["cpu"].is_string() && number(&report["machine"]["threads"]) > 0);
    let combinations = |name: &str, fields: &[&str]| -> Vec<Value> {
        let item = |item: &Value| {
            let speed = item["macs_per_s"].as_f64().unwrap();
            assert!(speed > 0.0 && speed.is_finite(), "{item}");
            fields.iter().map(|field| item[field].clone()).collect()
        };
        list(&report, name).iter().map(item).collect()
    };
    let mut peak = Vec::new();
    let mut gemm = Vec::new();
    let mut forward = Vec::new();
    for r#type in ["Q4_K", "Q6_K", "Q8_0", "Q5_K"] {
        peak.extend([1, 2].map(|threads| serde_json::json!([r#type, threads])));
        for (rows, cols) in MATRICES {
            for tokens in [5, 9] {
                let item = |threads| serde_json::json!([r#type, rows, cols, tokens, threads]);
                gemm.extend([1, 2].map(item));
            }
        }
    }
    for threads in [1, 2] {
        let item = |(tokens, rows)| serde_json::json!(["Q4_K_M", tokens, threads, rows]);
        forward.extend([(5, 5), (9, 7)].map(item));
    }
    assert_eq!(combinations("peak", &["type", "threads"]), peak);
    assert_eq!(combinations("gemm", &["type", "rows", "cols", "tokens", "threads"]), gemm);
    assert_eq!(combinations("forward", &["type", "tokens", "threads", "output_rows"]), forward);
    let share = |item: &Value| item["of_peak"].as_f64().unwrap();
    assert!(list(&report, "gemm").iter().all(|item| share(item) > 0.0 && item["of_peak"].is_f64()));
    assert_eq!(keys(&report["peak"][0]).len(), 3);
    assert_eq!(keys(&report["gemm"][0]).len(), 7);
    assert_eq!(keys(&report["forward"][0]).len(), 6);
}

#[test]
fn speed_is_multiply_adds_of_the_matrices_over_time() {
    let report = bench(&format!("{QUICK} --rows 9 --output-rows 4 --layers 3"));
    let pass = &report["forward"][0];
    // Of a layer: q, k and v, then o, gate, up and down; the last layer's latter half and the head
    // of 512 tokens only for the output rows.
    let (before, after) = (3 * 256 * 256, 256 * 256 + 3 * 512 * 256);
    let macs = 9 * (3 * before + 2 * after) + 4 * (after + 512 * 256);
    let computed = pass["macs_per_s"].as_f64().unwrap() * pass["ms"].as_f64().unwrap() / 1e3;
    assert!((computed / f64::from(macs) - 1.0).abs() < 1e-9, "{computed} is not {macs}");
}

#[test]
fn types_are_those_asked_for() {
    let report = bench(&format!("{QUICK} --rows 3 --type q8_0,Q4_K_M,f16"));
    let types = |name: &str| -> Vec<&str> {
        let mut types: Vec<_> =
            list(&report, name).iter().map(|item| item["type"].as_str().unwrap()).collect();
        types.dedup();
        types
    };
    assert_eq!(types("gemm"), ["Q8_0", "Q4_K", "Q6_K", "F16"]);
    assert_eq!(types("peak"), ["Q8_0", "Q4_K", "Q6_K", "F16"]);
    assert_eq!(types("forward"), ["Q8_0", "Q4_K_M", "F16"]);
}

#[test]
fn files_bring_their_own_shapes_and_types() {
    let llama = llama("bench-files");
    let dream = model(DREAM);
    // The small Dream model has 4 heads on 2 of keys and values.
    for (path, kv_rows) in [(model(LLADA), 256), (dream, 128), (llama.clone(), 256)] {
        let path = path.to_str().unwrap();
        let args = ["bench", "--model", path, "--rows", "4", "--reps", "1", "--threads", "1"];
        let report = run(args.into_iter().chain(["--json"])).json();
        let gemm = list(&report, "gemm");
        let has = |t: &str, rows: u64| gemm.iter().any(|g| g["type"] == t && g["rows"] == rows);
        assert!(has("Q4_K", kv_rows) && has("Q4_K", 256), "{path}: {gemm:?}");
        assert_eq!(list(&report, "forward").len(), 1, "{path}");
        assert_eq!(report["forward"][0]["type"], "file");
    }
    for command in ["inspect", "plan"] {
        let mut args = vec![command];
        args.extend((command == "plan").then_some("--model"));
        let ran = run(args.into_iter().chain([llama.to_str().unwrap()]));
        assert_eq!(ran.status, 0, "{command}: {}", ran.err);
        assert!(ran.text().contains("llama"), "{command}");
    }
}

#[test]
fn a_llama_is_refused_by_what_generates() {
    let llama = llama("bench-refused");
    for command in ["run", "logits"] {
        let mut args = vec![command, "--tokens", "1,2,3", "--model", llama.to_str().unwrap()];
        args.extend((command == "logits").then_some(["--out", "-"]).into_iter().flatten());
        let ran = run(args);
        assert_eq!((ran.status, ran.out.len()), (1, 0), "{command}");
        for word in ["llama", "no masked-diffusion model", "bench"] {
            assert!(ran.err.contains(word), "{command}: {}", ran.err);
        }
    }
}

#[test]
fn people_read_tables() {
    let ran = run("bench --shape tiny --rows 3 --reps 1 --threads 1".split(' '));
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    for word in ["tiny, 2 layers", "registers only", "of peak", "%", "passes", "Q4_K_M"] {
        assert!(ran.text().contains(word), "{word:?} is not in {:?}", ran.text());
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_sizes() {
    for (args, words) in [
        ("--layers 0", &["layers is 0"][..]),
        ("--vocab 7", &["vocab is 7"]),
        ("--rows 2000000", &["rows", "2000000"]),
        ("--rows 3 --threads 5000", &["threads", "5000"]),
        ("--isa mmx", &["mmx", "scalar"]),
        // Far more than any machine has.
        ("--shape llada-8b --layers 1024 --vocab 1000000 --type F32", &["GiB", "available"]),
    ] {
        let shape = if args.contains("--shape") { "" } else { "--shape tiny" };
        let ran = run(format!("bench {shape} {args}").split_whitespace());
        assert_eq!((ran.status, ran.out.len()), (1, 0), "{args}: {}", ran.err);
        for word in words {
            assert!(ran.err.contains(word), "{args}: {word:?} is not in {:?}", ran.err);
        }
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
    let ran = on(LLADA, "bench", "--rows 5000");
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("5000") && ran.err.contains("context_length, 4096"), "{}", ran.err);
}
