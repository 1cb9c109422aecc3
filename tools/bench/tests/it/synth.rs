//! `synth` writes whole files or none, and says what cannot be.

use crate::{folder, program, run};
use dllm_rt::gguf;
use dllm_rt::model::Network;
use std::path::Path;

fn synth(arguments: &str, out: &Path) -> (Option<i32>, String) {
    let mut command = program("synth");
    let (status, _, error) = run(command.args(arguments.split_whitespace()).arg("--out").arg(out));
    (status, error)
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
    let (status, error) = synth(&format!("{sizes} --vocab 300 --type q8_0 --context 99"), &out);
    assert_eq!(status, Some(0), "{error}");
    assert_eq!(names(&folder), ["model.gguf"]);
    let config = Network::from_gguf(&gguf::open(&out).unwrap()).unwrap().config;
    assert_eq!((config.architecture.name(), config.layers, config.width), ("dream", 1, 512));
    assert_eq!((config.heads, config.kv_heads, config.ff_width), (8, 2, 768));
    assert_eq!((config.vocab, config.context), (300, 99));
}

#[test]
fn what_cannot_be_is_refused_by_name_and_leaves_nothing() {
    let folder = folder("refused");
    let out = folder.join("model.gguf");
    for (arguments, expected, words) in [
        ("--shape nope", 1, "llada-8b"),
        ("--arch gpt", 1, "llama"),
        ("--type q9", 1, "Q4_K_M"),
        ("--shape tiny --heads 3", 1, "heads is 3"),
        ("--shape tiny --width 320 --heads 5 --kv-heads 5", 1, "320 columns"),
        ("--layers many", 2, "--layers"),
    ] {
        let (status, error) = synth(arguments, &out);
        assert_eq!(status, Some(expected), "{arguments}: {error}");
        assert!(error.contains(words), "{arguments}: {error}");
    }
    for out in [folder.join("no").join("model.gguf"), folder.clone()] {
        let (status, error) = synth("--shape tiny", &out);
        assert_eq!(status, Some(1), "{error}");
        assert!(error.contains(&out.display().to_string()), "{error}");
    }
    assert_eq!(names(&folder), [] as [&str; 0]);
    assert!(!folder.with_extension("part").exists());
}
