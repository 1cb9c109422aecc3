//! The same bits from the model and from its packed file.

use crate::models;
use crate::support::{Folder, LIMITS, load, load_path, load_within};
use dllm_rt::Limits;
use dllm_rt::gguf::{self, Gguf};
use std::fs;

#[test]
fn a_packed_file_gives_the_same_bits() {
    for name in models::ALL {
        let folder = Folder::new(&format!("same-{name}"));
        let gguf = models::open(name);
        let plain = load(&gguf, None);
        assert!(!plain.is_from_packed && plain.notes.is_empty() && plain.warnings.is_empty());
        let first = load(&gguf, Some(&folder.cache()));
        assert!(!first.is_from_packed);
        first.says(&["was written"]);
        let second = load(&gguf, Some(&folder.cache()));
        assert!(second.is_from_packed);
        second.says(&["was loaded", folder.packed().to_str().unwrap()]);
        for loaded in [first, second] {
            assert!(loaded.logits == plain.logits, "{name}");
            assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        }
    }
}

/// The rotary tables are the canvas's, everything else is the model's.
#[test]
fn one_file_serves_all_canvases_and_threads() {
    let folder = Folder::new("canvases");
    let gguf = models::open(models::DREAM);
    let plain = load(&gguf, None);
    load(&gguf, Some(&folder.cache()));
    for (rows, threads, guidance) in [(13, 1, false), (100, 3, true), (512, 2, false)] {
        let limits = Limits { logits: true, guidance, ..Limits::new(rows, 16, threads) };
        let loaded = load_within(&gguf, Some(&folder.cache()), limits);
        assert!(loaded.is_from_packed && loaded.logits == plain.logits, "{limits:?}");
    }
    folder.packed();
}

#[test]
fn models_share_a_folder() {
    let folder = Folder::new("share");
    let plain = models::ALL.map(|name| load(&models::open(name), None).logits);
    for is_from_packed in [false, true] {
        for (name, plain) in models::ALL.iter().zip(&plain) {
            let loaded = load(&models::open(name), Some(&folder.cache()));
            assert_eq!(loaded.is_from_packed, is_from_packed);
            assert!(loaded.logits == *plain, "{name}");
        }
        assert_eq!(folder.kept().len(), models::ALL.len());
    }
}

/// Neither the path nor the kind of source counts, but the content does.
#[test]
fn the_model_may_be_anywhere() {
    let folder = Folder::new("anywhere");
    let plain = load(&models::open(models::LLADA), Some(&folder.cache()));
    let copy = folder.copy(models::LLADA);
    let bytes = || Gguf::from_bytes(fs::read(&copy).unwrap()).unwrap();
    for gguf in [gguf::open(&copy).unwrap(), bytes(), bytes(), models::open(models::LLADA)] {
        let loaded = load(&gguf, Some(&folder.cache()));
        assert!(loaded.is_from_packed, "{:?}", loaded.notes);
        assert!(loaded.logits == plain.logits);
    }
    folder.packed();
}

#[test]
fn bytes_in_memory_can_be_kept() {
    let folder = Folder::new("bytes");
    let copy = folder.copy(models::LLADA);
    let open = || Gguf::from_bytes(fs::read(&copy).unwrap()).unwrap();
    assert!(!load(&open(), Some(&folder.cache())).is_from_packed);
    assert!(load(&open(), Some(&folder.cache())).is_from_packed);
    assert!(load_path(&copy, Some(&folder.cache())).is_from_packed);
}

#[test]
fn a_fault_of_the_model_is_the_same_and_nothing_is_kept() {
    let folder = Folder::new("fault");
    let path = folder.copy(models::LLADA_Q8);
    let gguf = gguf::open(&path).unwrap();
    let tensor = gguf.tensor("blk.1.ffn_up.weight").unwrap().clone();
    let mut bytes = fs::read(&path).unwrap();
    // The scale of the third row's first block.
    let at = tensor.offset + 2 * tensor.row_bytes();
    bytes[at..at + 2].copy_from_slice(&0x7c00u16.to_le_bytes());
    let gguf = Gguf::from_bytes(bytes).unwrap();
    let fault = |cache: Option<std::path::PathBuf>| {
        let options = dllm_rt::Options { packed_cache: cache, ..Default::default() };
        let loaded = dllm_rt::Engine::load(&gguf, LIMITS, &options, &mut |_, _| ());
        loaded.err().unwrap().to_string()
    };
    let plain = fault(None);
    assert!(plain.contains("blk.1.ffn_up.weight") && plain.contains('2'), "{plain}");
    assert_eq!(fault(Some(folder.cache())), plain);
    assert_eq!(folder.kept().len(), 0);
}
