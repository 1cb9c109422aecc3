//! The program writes whole files or none, and says what cannot be.

use dllm_rt::{Model, gguf};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn run(arguments: &str, out: &Path) -> (Output, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dllm-synth"));
    let output = command.args(arguments.split_whitespace()).arg("--out").arg(out).output().unwrap();
    let error = String::from_utf8(output.stderr.clone()).unwrap();
    (output, error)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_file_is_written_whole_and_over_an_older_one() {
    let folder = folder("whole");
    let out = folder.join("model.gguf");
    std::fs::write(&out, "older").unwrap();
    let sizes = "--shape tiny --arch dream --layers 1 --width 512 --heads 8 --kv-heads 2 --ff 768";
    let (output, error) = run(&format!("{sizes} --vocab 300 --type q8_0 --context 99"), &out);
    assert!(output.status.success(), "{error}");
    assert_eq!(names(&folder), ["model.gguf"]);
    let config = Model::from_gguf(&gguf::open(&out).unwrap()).unwrap().config;
    assert_eq!((config.architecture.name(), config.layers, config.width), ("dream", 1, 512));
    assert_eq!((config.heads, config.kv_heads, config.ff_width), (8, 2, 768));
    assert_eq!((config.vocab, config.context), (300, 99));
}

#[test]
fn what_cannot_be_is_refused_by_name_and_leaves_nothing() {
    let folder = folder("refused");
    let out = folder.join("model.gguf");
    for (arguments, status, words) in [
        ("--shape nope", 1, "llada-8b"),
        ("--arch gpt", 1, "llama"),
        ("--type q9", 1, "Q4_K_M"),
        ("--shape tiny --heads 3", 1, "heads is 3"),
        ("--shape tiny --width 320 --heads 5 --kv-heads 5", 1, "320 columns"),
        ("--layers many", 2, "--layers"),
    ] {
        let (output, error) = run(arguments, &out);
        assert_eq!(output.status.code(), Some(status), "{arguments}: {error}");
        assert!(error.contains(words), "{arguments}: {error}");
    }
    for out in [folder.join("no").join("model.gguf"), folder.clone()] {
        let (output, error) = run("--shape tiny", &out);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(&out.display().to_string()), "{error}");
    }
    assert_eq!(names(&folder), [] as [&str; 0]);
    assert!(!folder.with_extension("part").exists());
}
