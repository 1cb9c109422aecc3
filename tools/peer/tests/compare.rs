//! Whole runs: against this program itself, against one with another model, and against a library
//! that has the others' interface and computes nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use dllm_peer::report::{Case, Report};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_dllm-peer");

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/models").join(name)
}

/// `dllm-peer run` of LLaDA.
fn run(arguments: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--model"]).arg(model("llada-tiny-sharp-Q4_K_M.gguf"));
    command.args(arguments.split(' '));
    command
}

const SMALL: &str = "--rows 5 --threads 1 --reps 2";

/// What a run that failed said.
fn failure(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_program_agrees_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let mut command = run("--rows 3,40 --threads 1,2 --reps 4 --isa scalar --model");
    command.arg(model("dream-tiny-sharp-Q4_K_M.gguf"));
    command.args(["--other", &format!("again:{PROGRAM}"), "--json"]).arg(&json);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("llada-tiny-sharp-Q4_K_M: llada, 2 layers of 256"), "{table}");
    let report: Report = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let names: Vec<&str> = report.sides.iter().map(|side| side.name.as_str()).collect();
    assert_eq!(names, ["dllm-rt", "again"]);
    assert!(report.sides.iter().all(|side| side.isa == "scalar"));
    assert_eq!(report.models.len(), 2);
    // The projections of 2 layers of width 256 and the output's 2048 rows.
    assert_eq!(report.models[0].macs_per_token, llada_macs());
    for model in &report.models {
        let settings: Vec<_> = model.cases.iter().map(|case| (case.tokens, case.threads)).collect();
        assert_eq!(settings, [(3, 1), (3, 2), (40, 1), (40, 2)]);
        model.cases.iter().for_each(|case| check_case(case, model.macs_per_token));
    }
}

fn check_case(case: &Case, macs_per_token: u64) {
    let itself = case.agreement[0].unwrap();
    assert_eq!((itself.rms, itself.max, case.agreement[1]), (0.0, 0.0, None));
    assert_eq!((case.turns.len(), case.summary.len()), (4, 2));
    assert!(case.turns.iter().flatten().all(|pass| pass.ms > 0.0 && pass.cpu_ms > 0.0));
    let ms = case.summary[1].ms;
    let macs = macs_per_token as f64 * case.tokens as f64;
    let expected = macs / (ms * 1e-3);
    assert!((case.summary[1].macs_per_s / expected - 1.0).abs() < 1e-9);
}

/// From the model's shape, by hand: width 256, feed-forward 512, 2048 tokens, keys and values as
/// wide as queries.
fn llada_macs() -> u64 {
    let layer = 4 * 256 * 256 + 3 * 256 * 512;
    2 * layer + 2048 * 256
}

#[test]
fn other_logits_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("other.sh");
    let other = model("dream-tiny-sharp-Q4_K_M.gguf");
    // Another model, whatever it was told.
    let text = format!("#!/bin/sh\nexec '{PROGRAM}' turns --model '{}'\n", other.display());
    std::fs::write(&script, text).unwrap();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, permissions).unwrap();
    let message = failure(run(SMALL).args(["--other", &format!("other:{}", script.display())]));
    assert!(message.contains("do not compute the same"), "{message}");
}

#[test]
fn what_cannot_be_used_is_named() {
    let cases: [(&[&str], &str); 5] = [
        (&[], "nothing to compare with"),
        (&["--llama", "missing:build"], "missing/include/llama.h does not exist"),
        (&["--llama", "missing"], "SOURCE_DIR:BUILD_DIR"),
        (&["--other", "it:/missing/program"], "/missing/program: "),
        (&["--other", "it:/bin/false"], "it: ended without an answer"),
    ];
    for (arguments, expected) in cases {
        let message = failure(run(SMALL).args(arguments));
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

#[test]
fn a_model_that_cannot_be_loaded_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.gguf");
    std::fs::write(&path, "GGUF").unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--other", &format!("again:{PROGRAM}"), "--model"]).arg(&path);
    assert!(failure(&mut command).contains("empty.gguf"));
}

/// A build with the others' interface, or nothing where there is no compiler.
fn stub(folder: &Path, ik: bool) -> Option<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stub");
    let library = folder.join("lib");
    std::fs::create_dir_all(&library).unwrap();
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-shared", "-fPIC"]).arg("-I").arg(source.join("include"));
    compiler.args(ik.then_some("-DPEER_IK"));
    compiler.arg(source.join("stub.cpp")).arg("-o").arg(library.join("libllama.so"));
    match compiler.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(format!("{}:{}", source.display(), folder.display()))
        }
        Err(error) => {
            println!("skipped: no C++ compiler ({error})");
            None
        }
    }
}

#[test]
fn a_library_is_compiled_driven_and_checked() {
    for (flag, says) in [("--llama", "CPU_REPACK"), ("--ik", "Repacked 14 tensors")] {
        let folder = tempfile::tempdir().unwrap();
        let Some(build) = stub(folder.path(), flag == "--ik") else { return };
        let said =
            |text: &str| failure(run(SMALL).args([flag, &build]).env("PEER_STUB_SAYS", text));
        let message = said("nothing");
        assert!(message.contains("does not say that it did"), "{flag}: {message}");
        let message = said(says);
        assert!(message.contains("do not compute the same"), "{flag}: {message}");
        assert!(message.contains("dllm-rt"), "{flag}: {message}");
    }
}
