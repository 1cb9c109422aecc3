//! After load nothing reads the file: it may be cut, overwritten or gone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "it/common/models.rs"]
mod models;

use dllm_rt::{Engine, Limits, Options, gguf};
use std::fs::{self, File};

/// The canvas after every step of a few samplers.
fn canvases(engine: &mut Engine) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    for settings in models::every_sampler(engine.kind()).iter().take(3) {
        models::run(engine, settings, |_, ids| all.push(ids.to_vec()));
    }
    all
}

#[test]
fn a_file_cut_under_a_loaded_model_does_no_harm() {
    let folder = std::env::temp_dir().join(format!("dllm-rt-after-load-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for name in models::ALL {
        let want = canvases(&mut models::load(name, 2, None));
        let path = folder.join("model.gguf");
        let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/models");
        fs::copy(format!("{tree}/{name}.gguf"), &path).unwrap();
        let file = gguf::open(&path).unwrap();
        let limits = Limits { logits: true, guidance: true, ..Limits::new(96, 96, 2) };
        let mut engine = Engine::load(&file, limits, &Options::default(), &mut |_, _| ()).unwrap();
        // Reading a mapped page beyond the end of its file ends the process.
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert_eq!(canvases(&mut engine), want, "{name}");
    }
    fs::remove_dir_all(&folder).unwrap();
}
