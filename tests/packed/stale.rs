//! Models that change, with and without showing it.

use crate::models;
use crate::support::{Folder, load, load_path};
use dllm_rt::gguf;
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// How long a change must be past before times are relied on, and a little more.
const SETTLED_AFTER: Duration = Duration::from_millis(3200);

/// Changes one byte of a tensor in place and sets the times that can be set to what they were.
/// Gives the byte's place.
fn change(path: &Path, tensor: &str) -> u64 {
    let gguf = gguf::open(path).unwrap();
    let tensor = gguf.tensor(tensor).unwrap();
    // Inside the codes of a block in the middle, so that the model stays a good one.
    let at = (tensor.offset + tensor.bytes / 144 / 2 * 144 + 77) as u64;
    let file = File::options().read(true).write(true).open(path).unwrap();
    let metadata = file.metadata().unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x55], at).unwrap();
    let times = FileTimes::new().set_accessed(metadata.accessed().unwrap());
    file.set_times(times.set_modified(metadata.modified().unwrap())).unwrap();
    assert_eq!(file.metadata().unwrap().modified().unwrap(), metadata.modified().unwrap());
    at
}

#[test]
fn a_changed_weight_is_noticed_though_the_times_were_put_back() {
    let folder = Folder::new("changed");
    let path = folder.copy(models::LLADA);
    std::thread::sleep(SETTLED_AFTER);
    let mut before = load_path(&path, Some(&folder.cache()));
    assert!(load_path(&path, Some(&folder.cache())).is_from_packed);
    for tensor in ["blk.0.attn_q.weight", "blk.1.ffn_up.weight"] {
        change(&path, tensor);
        let loaded = load_path(&path, Some(&folder.cache()));
        assert!(!loaded.is_from_packed, "{tensor}");
        loaded.says(&["is not used", "stale", "has changed"]);
        assert!(loaded.logits != before.logits, "{tensor}");
        assert!(loaded.logits == load_path(&path, None).logits, "{tensor}");
        let again = load_path(&path, Some(&folder.cache()));
        assert!(again.is_from_packed && again.logits == loaded.logits, "{tensor}");
        before = again;
    }
    folder.packed();
}

#[test]
fn other_times_of_the_same_content_are_noted() {
    let folder = Folder::new("touched");
    let path = folder.copy(models::DREAM);
    let plain = load_path(&path, Some(&folder.cache()));
    let said = |loaded: &crate::support::Loaded, words: &str| {
        assert!(loaded.is_from_packed && loaded.logits == plain.logits, "{:?}", loaded.notes);
        loaded.notes.iter().any(|note| note.contains(words))
    };
    // Its times are too young to be relied on, so they are not noted.
    assert!(!said(&load_path(&path, Some(&folder.cache())), "now has the times"));
    std::thread::sleep(SETTLED_AFTER);
    assert!(said(&load_path(&path, Some(&folder.cache())), "now has the times"));
    let noted = fs::read(folder.packed()).unwrap();
    assert!(!said(&load_path(&path, Some(&folder.cache())), "now has the times"));
    // A folder that cannot be written to is no hindrance.
    assert!(fs::read(folder.packed()).unwrap() == noted);
    File::open(&path)
        .unwrap()
        .set_times(FileTimes::new().set_modified(std::time::UNIX_EPOCH))
        .unwrap();
    std::thread::sleep(SETTLED_AFTER);
    assert!(said(&load_path(&path, Some(&folder.cache())), "now has the times"));
    assert!(fs::read(folder.packed()).unwrap() != noted);
    assert!(!said(&load_path(&path, Some(&folder.cache())), "now has the times"));
}

/// A file that is written to between opening it and the end of the load is not kept.
#[test]
fn a_model_that_changes_during_the_load_is_not_kept() {
    let folder = Folder::new("during");
    let path = folder.copy(models::LLADA);
    std::thread::sleep(SETTLED_AFTER);
    let options = dllm_rt::Options { packed_cache: Some(folder.cache()), ..Default::default() };
    let gguf = gguf::open(&path).unwrap();
    let mut is_changed = false;
    let mut progress = |_, _| {
        if !is_changed {
            change(&path, "blk.0.attn_q.weight");
            is_changed = true;
        }
    };
    let limits = crate::support::LIMITS;
    let engine = dllm_rt::Engine::load(&gguf, limits, &options, &mut progress).unwrap();
    let warnings = engine.warnings();
    assert!(warnings.iter().any(|w| w.contains("changed while it was loaded")), "{warnings:?}");
    assert_eq!(folder.kept().len(), 0);
    assert!(!load(&gguf, Some(&folder.cache())).is_from_packed);
    assert!(load(&gguf, Some(&folder.cache())).is_from_packed);
}
