//! A model, a folder for its packed file, and loads from both.

use crate::models;
use dllm_rt::gguf::{self, Gguf};
use dllm_rt::{Engine, Limits, Options};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder of its own for each test, gone when dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packed").join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// A copy of a model of the tree.
    pub fn copy(&self, model: &str) -> PathBuf {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/models");
        let path = self.0.join(format!("{model}.gguf"));
        fs::copy(tree.join(format!("{model}.gguf")), &path).unwrap();
        path
    }

    /// Where packed files are kept.
    pub fn cache(&self) -> PathBuf {
        self.0.join("cache")
    }

    /// All that is kept, by name.
    pub fn kept(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache()).unwrap();
        let mut kept: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        kept.sort();
        kept
    }

    /// The only file that is kept.
    pub fn packed(&self) -> PathBuf {
        let kept = self.kept();
        assert_eq!(kept.len(), 1, "{kept:?}");
        kept[0].clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub const LIMITS: Limits = Limits { logits: true, ..Limits::new(16, 16, 2) };

/// How a load went and what the model then says.
pub struct Loaded {
    pub logits: Vec<u32>,
    pub is_from_packed: bool,
    pub notes: Vec<String>,
    pub warnings: Vec<String>,
}

impl Loaded {
    /// That something is said, once, with all these words.
    pub fn says(&self, words: &[&str]) {
        let said = self.notes.iter().chain(&self.warnings);
        let found = said.filter(|line| words.iter().all(|word| line.contains(word))).count();
        assert_eq!(found, 1, "{words:?}: {:?} {:?}", self.notes, self.warnings);
    }
}

pub fn load(gguf: &Gguf, cache: Option<&Path>) -> Loaded {
    load_within(gguf, cache, LIMITS)
}

pub fn load_within(gguf: &Gguf, cache: Option<&Path>, limits: Limits) -> Loaded {
    let options = Options { packed_cache: cache.map(Path::to_owned), ..Options::default() };
    let mut reports: Vec<(usize, usize)> = Vec::new();
    let mut progress = |done, total| reports.push((done, total));
    let mut engine = Engine::load(gguf, limits, &options, &mut progress).unwrap();
    assert!(reports.iter().all(|(done, total)| done <= total), "{reports:?}");
    let ids: Vec<u32> = (0..10).map(|i| 100 + 37 * i).chain([models::MASK; 3]).collect();
    let rows: Vec<u32> = (0..ids.len() as u32).collect();
    let logits = engine.logits(&ids, &rows).unwrap();
    let logits = logits.rows().flatten().map(|value| value.to_bits()).collect();
    let report = engine.load_report();
    let lock = |warning: &&String| !warning.contains("RLIMIT_MEMLOCK");
    Loaded {
        logits,
        is_from_packed: report.is_from_packed,
        notes: report.notes.clone(),
        warnings: engine.warnings().iter().filter(lock).cloned().collect(),
    }
}

/// Opens the model anew and loads it.
pub fn load_path(path: &Path, cache: Option<&Path>) -> Loaded {
    load(&gguf::open(path).unwrap(), cache)
}
