//! Every part of a packed file damaged: it is refused, the load goes on, and the file is mended.

use crate::models;
use crate::support::{Folder, Loaded, load};
use dllm_rt::gguf::Gguf;
use std::fs;
use std::path::PathBuf;

const HEADER_BYTES: usize = 4096;

struct Case {
    folder: Folder,
    gguf: Gguf,
    path: PathBuf,
    sound: Vec<u8>,
    logits: Vec<u32>,
}

impl Case {
    fn new(name: &str) -> Case {
        let folder = Folder::new(name);
        let gguf = models::open(models::LLADA);
        let logits = load(&gguf, None).logits;
        load(&gguf, Some(&folder.cache()));
        let path = folder.packed();
        let sound = fs::read(&path).unwrap();
        Case { folder, gguf, path, sound, logits }
    }

    fn load(&self) -> Loaded {
        load(&self.gguf, Some(&self.folder.cache()))
    }

    /// What is said of the file with these bytes, having seen that it is refused and mended.
    fn refused(&self, bytes: &[u8], what: &str) -> String {
        fs::write(&self.path, bytes).unwrap();
        let loaded = self.load();
        assert!(!loaded.is_from_packed, "{what}");
        assert!(loaded.logits == self.logits, "{what}");
        let said: Vec<_> = loaded.warnings.iter().chain(&loaded.notes).collect();
        let [refused, written] = said[..] else { panic!("{what}: {said:?}") };
        // Damage is said to everybody, and a change of the model to those who ask.
        assert_eq!(loaded.warnings.is_empty(), refused.contains("stale"), "{what}: {said:?}");
        assert!(refused.contains("is not used: "), "{what}: {refused}");
        assert!(written.contains("was written"), "{what}: {written}");
        assert!(fs::read(&self.path).unwrap() == self.sound, "{what}");
        refused.clone()
    }

    fn flipped(&self, at: usize) -> Vec<u8> {
        let mut bytes = self.sound.clone();
        bytes[at] ^= 1 << (at % 8);
        bytes
    }

    /// Bytes before the weights.
    fn weights_start(&self) -> usize {
        // One hash a chunk; the embedding's chunks tell how many there are in all.
        let table: Vec<usize> = (HEADER_BYTES..self.sound.len()).step_by(8).collect();
        let embedding = self.gguf.data(self.gguf.tensor("token_embd.weight").unwrap());
        let starts = |at: &&usize| self.sound[**at..].starts_with(embedding);
        *table.iter().find(starts).unwrap()
    }
}

#[test]
fn a_flipped_bit_anywhere_is_found() {
    let case = Case::new("flipped");
    for at in (0..96).chain([100, 2000, HEADER_BYTES - 9]).chain(HEADER_BYTES - 8..HEADER_BYTES) {
        let said = case.refused(&case.flipped(at), &format!("header, byte {at}"));
        let want = if at < 8 { "no packed file" } else { "damaged in its header" };
        assert!(said.contains(want), "byte {at}: {said}");
    }
    let start = case.weights_start();
    assert!(start > HEADER_BYTES + 8 * 10);
    for at in (HEADER_BYTES..start).step_by(17).chain([start - 1]) {
        let said = case.refused(&case.flipped(at), &format!("table, byte {at}"));
        assert!(said.contains("damaged in its table"), "byte {at}: {said}");
    }
    let (end, step) = (case.sound.len(), (case.sound.len() - start) / 61);
    for at in (start..end).step_by(step).chain([start + 1, end - 1]) {
        let said = case.refused(&case.flipped(at), &format!("weights, byte {at}"));
        assert!(said.contains("damaged in `"), "byte {at}: {said}");
    }
}

#[test]
fn a_file_of_another_length_is_found() {
    let case = Case::new("length");
    let (start, end) = (case.weights_start(), case.sound.len());
    for len in [0, 1, 7, 8, HEADER_BYTES - 1, HEADER_BYTES, start - 1, start, end / 2, end - 1] {
        let said = case.refused(&case.sound[..len], &format!("cut at {len}"));
        let want = if len < HEADER_BYTES { "no packed file" } else { "bytes instead of" };
        assert!(said.contains(want), "{len}: {said}");
    }
    let longer = [&case.sound[..], &[0]].concat();
    assert!(case.refused(&longer, "longer").contains("bytes instead of"));
    let zeroed = [&case.sound[..start], &vec![0; end - start]].concat();
    assert!(case.refused(&zeroed, "a hole for weights").contains("damaged in `"));
}

/// Chunks that are sound in themselves, in each other's place.
#[test]
fn exchanged_chunks_are_found() {
    let case = Case::new("exchanged");
    let (start, chunk) = (case.weights_start(), 512 << 10);
    let mut bytes = case.sound.clone();
    let (first, second) = bytes[start..].split_at_mut(chunk);
    first.swap_with_slice(&mut second[..chunk]);
    assert!(bytes != case.sound);
    assert!(case.refused(&bytes, "exchanged").contains("damaged in `token_embd.weight`"));
}

/// Sound files of other models, and what is no file.
#[test]
fn what_is_something_else_is_not_used() {
    let case = Case::new("else");
    let other = Folder::new("else-other");
    for name in [models::LLADA_Q8, models::DREAM] {
        load(&models::open(name), Some(&other.cache()));
    }
    for path in other.kept() {
        let said = case.refused(&fs::read(path).unwrap(), "another model's");
        assert!(said.contains("for another model"), "{said}");
    }
    fs::remove_file(&case.path).unwrap();
    fs::create_dir(&case.path).unwrap();
    let loaded = case.load();
    assert!(!loaded.is_from_packed && loaded.logits == case.logits);
    loaded.says(&["is not used", "no regular file"]);
    loaded.says(&["was not written", "cannot give it its name"]);
    assert_eq!(case.folder.kept(), std::slice::from_ref(&case.path));
}
