//! Exit statuses, help, and what is refused.

use super::support::{DREAM, LLADA, Ran, folder, model, on, on_with, program, run};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::Stdio;

/// Status, nothing on standard output, and these words on standard error.
fn refused(ran: &Ran, status: i32, words: &[&str]) {
    assert_eq!(ran.status, status, "{}", ran.err);
    assert!(ran.out.is_empty(), "{}", ran.text());
    for word in words {
        assert!(ran.err.contains(word), "{word:?} is not in {:?}", ran.err);
    }
    assert!(ran.err.starts_with("dllm-rt: "), "{:?}", ran.err);
    assert!(!ran.err.contains("panicked"), "{:?}", ran.err);
    if status == 1 {
        assert_eq!(ran.err.lines().count(), 1, "{:?}", ran.err);
    }
}

#[test]
fn wrong_usage_is_status_2() {
    let cases: &[(&str, &[&str])] = &[
        ("", &["no command"]),
        ("frob", &["frob"]),
        ("run --frob", &["--frob", "run --help"]),
        ("run --steps x", &["--steps", "x"]),
        ("run --algorithm best", &["best", "low_confidence"]),
        ("run --early-stop maybe", &["maybe"]),
        ("run --tokens 1,2x,3", &["item 2 (`2x`)"]),
        ("run --model m --prompt a --prompt-file b", &["--prompt and --prompt-file"]),
        ("run --model m --prompt a --tokens 1", &["--prompt and --tokens"]),
        ("run --model m --prompt a --special", &["--special", "--no-chat"]),
        ("run --model m --prompt a --no-chat --system b", &["--system"]),
        ("run --model m --messages a --no-chat", &["--messages"]),
        ("run --model m --tokens 1 --holes", &["--holes"]),
        ("run --model m --prompt a --trace", &["--trace", "--json"]),
        ("run --model m --interactive --prompt a", &["--prompt", "--interactive"]),
        ("run --model m --interactive --json", &["--json", "--interactive"]),
        ("run --model m --interactive --max-tokens 0", &["--max-tokens 0"]),
        ("run --model m --prompt a --cache best", &["best"]),
        ("run --model m --prompt a --device gpu", &["gpu"]),
        ("run --prompt a --preset quick", &["quick", "exact, balanced, fast"]),
        ("run --prompt a --threshold high", &["--threshold", "high"]),
        ("run --prompt a --threshold 0.9 --factor 1", &["--threshold and --factor exclude"]),
        ("run --prompt a --refresh -1", &["--refresh", "-1"]),
        ("run --prompt a --deadline-ms soon", &["--deadline-ms", "soon"]),
        ("run --model m --prompt a --threads 0", &["--threads"]),
        ("run --model m --prompt a --threads 2 --cpus 0", &["--cpus", "1 CPUs for 2"]),
        ("run --model m --prompt a --cpus 3-1", &["3-1"]),
        ("run --model m --prompt a --cpus 0,0", &["CPU 0 is given twice"]),
        ("run --model m --prompt a --lock maybe", &["auto, on or off"]),
        ("run --seed 1 --seed 2", &["--seed", "duplicate"]),
        ("logits --model m --tokens 1", &["--out"]),
        ("logits --model m --tokens , --out o", &["item 1 (``)"]),
        ("logits --model m --tokens 1 --json --out -", &["standard output"]),
        ("bench --rows 148,0", &["--rows", "item 2 (`0`) is 0"]),
        ("bench --threads 0", &["--threads", "is 0"]),
        ("bench --reps 0", &["--reps is 0"]),
        ("bench --output-rows 0", &["--output-rows is 0"]),
        ("bench --type Q4_K,q9", &["item 2 (`q9`)", "Q4_K_M", "Q6_K"]),
        ("bench --shape llama-70b", &["llama-70b", "llada-8b", "dream-7b"]),
        ("bench --model m --layers 2", &["--layers", "--model"]),
        ("bench --model m --type Q8_0", &["--type", "--model"]),
        ("bench --threads 1,2 --cpus 0", &["--cpus", "1 CPUs for 2"]),
        ("bench --lock maybe", &["auto, on or off"]),
        ("inspect a b", &["b"]),
        ("eval --every 0", &["--every is 0"]),
        ("eval --answers", &["--answers", "--json"]),
        ("run --prompt a --grow", &["--grow"]),
        ("eval --max-tokens 0", &["--max-tokens is 0"]),
        ("eval --steps 1,x", &["item 2 (`x`)"]),
        ("eval --steps=", &["--steps"]),
        ("eval --family frob", &["frob", "capital"]),
        ("eval --cache best", &["best"]),
        ("eval --prompt a", &["--prompt", "eval --help"]),
    ];
    for (args, words) in cases {
        refused(&run(args.split_whitespace()), 2, words);
    }
}

#[test]
fn what_cannot_be_done_is_status_1_and_one_line() {
    let cases: &[(&str, &str, &[&str])] = &[
        (LLADA, "--prompt a --temperature -1", &["temperature", "-1"]),
        (LLADA, "--prompt a --algorithm entropy", &["entropy", "llada", "low_confidence"]),
        (DREAM, "--prompt a --cfg-scale 1", &["cfg-scale", "dream"]),
        (LLADA, "--prompt a --top-k 3", &["top-k", "llada"]),
        (LLADA, "--prompt a --threshold 0", &["threshold is 0", "above 0"]),
        (LLADA, "--prompt a --threshold 1.5", &["threshold is 1.5", "at most 1"]),
        (LLADA, "--prompt a --threshold NaN", &["threshold is NaN"]),
        (LLADA, "--prompt a --factor 0", &["factor is 0"]),
        (LLADA, "--prompt a --threshold 0.9 --algorithm random", &["random", "by chance"]),
        (LLADA, "--prompt a --refresh 4", &["refresh", "--cache"]),
        (LLADA, "--prompt a --cache dual --refresh 0", &["refresh is 0"]),
        (LLADA, "--prompt a --cache dual --cfg-scale 1", &["cfg-scale"]),
        (LLADA, "--prompt a --cache dual --full-logits", &["every position"]),
        (DREAM, "--prompt a --grow true", &["Dream's plain loop"]),
        (DREAM, "--prompt a --threshold 0.9 --alg-temp 1", &["alg-temp"]),
        (LLADA, "--prompt a --isa mmx", &["mmx", "scalar"]),
        (LLADA, "--prompt a --threads 5000", &["threads", "5000"]),
        (LLADA, "--prompt a --mask-token 99999", &["99999", "2048"]),
        (LLADA, "--tokens 1,2048", &["2048", "position 1"]),
        (LLADA, "--prompt a --max-tokens 5000", &["4096", "context_length", "50"]),
        (LLADA, "--prompt [[0]] --holes", &["[[0]]"]),
        (LLADA, "--prompt-file /nowhere/prompt", &["/nowhere/prompt"]),
        (LLADA, "--messages /nowhere/messages", &["/nowhere/messages"]),
        (LLADA, "", &["standard input is empty"]),
    ];
    for (name, args, words) in cases {
        refused(&on(name, "run", args), 1, words);
    }
    refused(&run(["run", "--model", "/nowhere/m.gguf", "--prompt", "a"]), 1, &["/nowhere/m.gguf"]);
    refused(&run(["inspect", "/nowhere/m.gguf"]), 1, &["/nowhere/m.gguf"]);
    refused(&on(LLADA, "detokenize", "--tokens 1,9999"), 1, &["9999", "position 1"]);
    refused(&on(LLADA, "plan", "--rows 5000"), 1, &["5000", "4096"]);
    refused(&on(LLADA, "plan", "--threads 0"), 1, &["threads"]);
}

#[test]
fn what_a_later_version_has_says_so() {
    for command in ["profile", "serve", "batch", "doctor"] {
        let words = [command, "does not exist in this version"];
        refused(&run([command, "--anything", "x"]), 1, &words);
    }
    let ran = on(LLADA, "run", "--prompt a --device cuda");
    refused(&ran, 1, &["device", "does not exist in this version"]);
    let ran = on(LLADA, "run", "--prompt a --max-tokens 2 --cache none --device auto");
    assert_eq!(ran.status, 0, "{}", ran.err);
}

#[test]
fn too_many_threads_and_cpus_are_a_line_each() {
    let ran = on(LLADA, "run", "--prompt a --max-tokens 1 --threads 300");
    assert_eq!((ran.status, ran.err.lines().count()), (0, 1), "{}", ran.err);
    assert!(ran.err.contains("--threads 300 on"), "{}", ran.err);
    let ran = on(LLADA, "run", "--prompt a --max-tokens 1 --cpus 0-299");
    assert_eq!((ran.status, ran.err.lines().count()), (0, 1), "{}", ran.err);
    assert!(
        ran.err.contains("cannot pin threads to CPUs") && ran.err.contains("-299"),
        "{}",
        ran.err
    );
}

#[test]
fn help_and_version_are_results() {
    for (args, words) in [
        ("--help", "Commands:"),
        ("run --help", "--block-length"),
        ("tokenize --help", "--no-chat"),
        ("detokenize --help", "--tokens"),
        ("inspect --help", "path"),
        ("logits --help", "--rows"),
        ("plan --help", "--guidance"),
        ("bench --help", "--reps"),
    ] {
        let ran = run(args.split(' '));
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{args}");
        assert!(ran.text().contains("Usage: dllm-rt") && ran.text().contains(words), "{args}");
    }
    let version = run(["--version"]);
    let expected = format!("dllm-rt {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((version.status, version.text()), (0, expected.as_str()));
}

#[test]
fn paths_need_not_be_utf8() {
    let folder = folder("not-utf8");
    let name = OsString::from_vec(b"m\xff.gguf".to_vec());
    let path = folder.join(&name);
    std::fs::copy(model(LLADA), &path).unwrap();
    let arg = |text: &str| OsString::from(text);
    let inspected = run([arg("inspect"), path.clone().into()]);
    assert_eq!(inspected.status, 0, "{}", inspected.err);
    let ran = run([
        arg("run"),
        arg("--model"),
        path.into(),
        arg("--prompt"),
        arg("a"),
        arg("--max-tokens"),
        arg("2"),
        arg("--json"),
    ]);
    assert!(ran.json()["model"].as_str().unwrap().ends_with("m\u{fffd}.gguf"));
    refused(&run([arg("inspect"), folder.join("no").join(&name).into()]), 1, &["m\u{fffd}.gguf"]);
    // A prompt must be.
    refused(&run([arg("run"), arg("--prompt"), name]), 2, &["argument 3 is not UTF-8"]);
}

#[test]
fn a_closed_or_full_output_is_no_panic() {
    let model = model(LLADA);
    let spawn = |out: Stdio| {
        let mut command = program();
        command.arg("inspect").arg(&model).arg("--json").stdout(out).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut child = spawn(Stdio::piped());
    // Closed before anything is read: more is written than a pipe holds or it is found closed.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stderr, b"");
    assert_eq!(output.status.code(), Some(0));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = spawn(full.into()).wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("standard output"), "{message}");
}

#[test]
fn verbose_speaks_on_standard_error_alone() {
    let args = ["--prompt", "a b"];
    let quiet = on_with(LLADA, "run", "--max-tokens 6", &args);
    let ran = on_with(LLADA, "run", "--max-tokens 6 --verbose", &args);
    assert_eq!((quiet.status, quiet.err.as_str()), (0, ""));
    assert_eq!(ran.out, quiet.out);
    for word in ["gemm", "attention", "lm_head", "sampling", "other", "p99", "allocations", "arena"]
    {
        assert!(ran.err.contains(word), "{word:?} is not in {:?}", ran.err);
    }
}
