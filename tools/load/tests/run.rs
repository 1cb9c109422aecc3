//! The program on a small model.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn model() -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    tree.join("tests/data/models/llada-tiny-sharp-Q4_K_M.gguf")
}

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_dllm-load"))
        .arg("--model")
        .arg(model())
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn it_times_and_measures_every_way_of_loading() {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("load-cache");
    let _ = std::fs::remove_dir_all(&cache);
    let cache = cache.to_str().unwrap();
    let args = ["--reps", "3", "--rows", "32", "--huge-pages", "--packed-cache", cache];
    let (status, out, err) = run(&[&args[..], &["--json"]].concat());
    assert_eq!(status, Some(0), "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["file_bytes"], model().metadata().unwrap().len());
    let series = report["series"].as_array().unwrap();
    let whats: Vec<&str> = series.iter().map(|series| series["what"].as_str().unwrap()).collect();
    let ways = ["copy", "copy to present pages", "load", "load packed"];
    assert_eq!(whats, ways.repeat(2));
    for series in series {
        assert_eq!(series["seconds"].as_array().unwrap().len(), 3);
        assert!(series["over_copy"].as_f64().unwrap() > 0.0, "{series}");
    }
    assert_eq!(series[0]["over_copy"], 1.0);
    for memory in report["memory"].as_array().unwrap() {
        assert_eq!(memory["is_from_packed"], memory["what"] == "load packed");
        let number = |key: &str| memory[key].as_f64().unwrap();
        assert!(number("resident_bytes") > number("arena_bytes"), "{memory}");
        assert!(number("arena_bytes") > number("weight_bytes"), "{memory}");
        assert!(number("resident_over_file") > 1.0, "{memory}");
    }
    let (status, out, err) = run(&args);
    assert_eq!(status, Some(0), "{err}");
    assert!(out.contains("load packed, huge pages") && out.contains("over copy"), "{out}");
}

#[test]
fn what_cannot_be_done_is_said() {
    let (status, _, err) = run(&["--model", "absent.gguf"]);
    assert_eq!(status, Some(2), "{err}");
    let (status, _, err) = run(&["--reps", "0"]);
    assert!(status == Some(1) && err.contains("at least 1"), "{err}");
    let (status, out, _) = run(&["--help"]);
    assert!(status == Some(0) && out.contains("--packed-cache"), "{out}");
}
