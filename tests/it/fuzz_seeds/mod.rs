//! The fuzzers' seeds, `tools/fuzz/seeds`: made here, kept in the tree, run through the targets.
//!
//! `DLLM_WRITE_SEEDS=1 cargo test --test it fuzz_seeds` writes them anew.

mod files;
#[path = "../../../tools/fuzz/gguf_file.rs"]
mod gguf_file;
mod texts;

use dllm_rt::vocab::{Message, Vocab, VocabParts, fuzz};
use gguf_file::Reached;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Seeds are cloned with the tree, and small ones run more often.
const ALL_BYTES_MAX: usize = 100_000;

/// Folder and name to contents.
type Seeds = BTreeMap<String, Vec<u8>>;

fn seeds() -> Seeds {
    let mut seeds = Seeds::new();
    let mut add = |target: &str, name: &str, bytes: Vec<u8>| {
        seeds.insert(format!("{target}/{name}"), bytes);
    };
    files::all().into_iter().for_each(|f| add("gguf", &format!("{}.gguf", f.name), f.bytes));
    texts::tokenizers().into_iter().for_each(|(name, bytes)| add("tokenizer", name, bytes));
    texts::templates().into_iter().for_each(|(name, bytes)| add("template", name, bytes));
    seeds
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/fuzz/seeds")
}

/// What lies in the seeds' folders.
fn kept() -> Seeds {
    let mut kept = Seeds::new();
    for target in ["gguf", "tokenizer", "template"] {
        let Ok(entries) = fs::read_dir(root().join(target)) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap();
            kept.insert(format!("{target}/{name}"), fs::read(&path).unwrap());
        }
    }
    kept
}

#[test]
fn the_tree_has_them() {
    let (made, kept) = (seeds(), kept());
    if std::env::var_os("DLLM_WRITE_SEEDS").is_some() {
        kept.keys().for_each(|name| fs::remove_file(root().join(name)).unwrap());
        for (name, bytes) in &made {
            let path = root().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        return;
    }
    let names = |seeds: &Seeds| seeds.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&kept), names(&made), "see the first lines of tests/it/fuzz_seeds/mod.rs");
    for (name, bytes) in &made {
        assert!(kept[name] == *bytes, "{name} is not what this test makes: write the seeds anew");
    }
    let bytes: usize = made.values().map(Vec::len).sum();
    assert!(bytes <= ALL_BYTES_MAX, "{bytes} bytes of seeds, at most {ALL_BYTES_MAX}");
}

/// Seeds that stop at the first check would be none.
#[test]
fn files_get_as_far_as_they_should() {
    for file in files::all() {
        assert_eq!(gguf_file::read(&file.bytes), file.reached, "{}", file.name);
    }
    assert_eq!(gguf_file::read(b"GGUF"), Reached::default());
}

#[test]
fn texts_run() {
    texts::tokenizers().iter().for_each(|(_, bytes)| fuzz::tokenizer(bytes));
    texts::templates().iter().for_each(|(_, bytes)| fuzz::template(bytes));
}

/// All templates but two write something.
#[test]
fn templates_render() {
    let mut silent = Vec::new();
    for (name, bytes) in texts::templates() {
        let text = String::from_utf8(bytes).unwrap();
        let mut fields = text.split('\0').map(str::to_owned);
        let parts = VocabParts {
            model: "gpt2".into(),
            architecture: "dream".into(),
            tokens: vec![b"[X]".to_vec()],
            chat_template: fields.next(),
            ..VocabParts::default()
        };
        let messages: Vec<Message> =
            fields.map(|content| Message { role: "user".into(), content }).collect();
        match Vocab::new(parts).unwrap().render_chat(&messages) {
            Ok(text) => assert!(!text.is_empty(), "{name}"),
            Err(_) => silent.push(name),
        }
    }
    assert_eq!(silent, ["raises", "broken"]);
}
