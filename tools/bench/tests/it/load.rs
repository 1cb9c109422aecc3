//! `load` on a small model.

use crate::{TOP, folder, program, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn model() -> PathBuf {
    Path::new(TOP).join("tests/data/models/llada-tiny-sharp-Q4_K_M.gguf")
}

fn load(args: &[&str]) -> Command {
    let mut command = program("load");
    command.arg("--model").arg(model()).args(args);
    command
}

#[test]
fn it_times_and_measures_every_way_of_loading() {
    let json = folder("load").join("load.json");
    let args = ["--reps", "3", "--rows", "32", "--huge-pages", "--json", json.to_str().unwrap()];
    let (status, out, err) = run(&mut load(&args));
    assert_eq!(status, Some(0), "{err}");
    assert!(out.contains("load, huge pages") && out.contains("over copy"), "{out}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(report["file_bytes"], model().metadata().unwrap().len());
    let series = report["series"].as_array().unwrap();
    let whats: Vec<&str> = series.iter().map(|series| series["what"].as_str().unwrap()).collect();
    assert_eq!(whats, ["copy", "copy to present pages", "load"].repeat(2));
    for series in series {
        assert_eq!(series["seconds"].as_array().unwrap().len(), 3);
        assert!(series["over_copy"].as_f64().unwrap() > 0.0, "{series}");
    }
    assert_eq!(series[0]["over_copy"], 1.0);
    let memory = report["memory"].as_array().unwrap();
    assert_eq!(memory.len(), 2);
    for memory in memory {
        let number = |key: &str| memory[key].as_f64().unwrap();
        assert!(number("resident_bytes") > number("arena_bytes"), "{memory}");
        assert!(number("arena_bytes") > number("weight_bytes"), "{memory}");
        assert!(number("resident_over_file") > 1.0, "{memory}");
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let (status, _, err) = run(&mut load(&["--model", "absent.gguf"]));
    assert_eq!(status, Some(2), "{err}");
    let (status, _, err) = run(program("load").args(["--model", "absent.gguf"]));
    assert!(status == Some(1) && err.contains("absent.gguf"), "{err}");
    let (status, _, err) = run(&mut load(&["--reps", "0"]));
    assert!(status == Some(1) && err.contains("at least 1"), "{err}");
    let (status, out, _) = run(&mut load(&["--help"]));
    assert!(status == Some(0) && out.contains("--huge-pages"), "{out}");
}
