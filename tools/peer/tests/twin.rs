//! A model's twin is the same file under another architecture's name.

use dllm_peer::twin;
use dllm_rt::gguf;
use std::path::Path;

#[test]
fn a_twin_differs_in_the_architecture_alone() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/models");
    let pairs = [("llada-tiny-sharp-Q4_K_M", "llada"), ("dream-tiny-sharp-Q4_K_M", "dream")];
    for (name, arch) in pairs {
        let folder = tempfile::tempdir().unwrap();
        let (path, out) = (models.join(format!("{name}.gguf")), folder.path().join("twin.gguf"));
        let file = gguf::open(&path).unwrap();
        let to = twin::of(arch).unwrap();
        twin::write(&path, &file, arch, to, &out).unwrap();
        let copy = gguf::open(&out).unwrap();
        assert_eq!(copy.str("general.architecture").unwrap(), to);
        assert_eq!(copy.tensors(), file.tensors());
        let renamed: Vec<String> = file.keys().map(|key| rename(key, arch, to)).collect();
        assert!(renamed.iter().any(|key| *key == format!("{to}.block_count")));
        assert_eq!(copy.keys().collect::<Vec<_>>(), renamed);
        for (key, new) in file.keys().zip(&renamed).filter(|(_, n)| *n != "general.architecture") {
            assert_eq!(format!("{:?}", file.get(key)), format!("{:?}", copy.get(new)), "{key}");
        }
        let (old, new) = (std::fs::read(&path).unwrap(), std::fs::read(&out).unwrap());
        let data = file.tensors().iter().map(|tensor| tensor.offset).min().unwrap();
        assert!(old.len() == new.len() && old[data..] == new[data..]);
    }
}

fn rename(key: &str, arch: &str, to: &str) -> String {
    key.strip_prefix(&format!("{arch}.")).map_or(key.into(), |rest| format!("{to}.{rest}"))
}
