//! The same tensors under an architecture that ik_llama.cpp knows.
//!
//! It knows neither `llada` nor `dream`, but `llama` and `qwen2` have the same tensors and the same
//! arithmetic once the causal mask is off. Their names are as long, so the twin of a file is a
//! copy with some bytes of its metadata changed.

use dllm_bench::Error;
use dllm_rt::gguf::Gguf;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Architectures and their twins, of the same length.
const TWINS: &[(&str, &str)] = &[("llada", "llama"), ("dream", "qwen2")];
/// GGUF's number of the type string.
const STRING: u32 = 8;
const ARCHITECTURE: &str = "general.architecture";

/// The architecture to call `arch` by for ik_llama.cpp, where it needs another.
pub fn of(arch: &str) -> Option<&'static str> {
    TWINS.iter().find(|(from, _)| *from == arch).map(|(_, to)| *to)
}

/// Writes the twin of the model at `path` to `out`.
pub fn write(path: &Path, gguf: &Gguf, arch: &str, to: &str, out: &Path) -> Result<(), Error> {
    if gguf.part_count() != 1 {
        return Err(Error::Argument("a split file has no twin: merge its parts first".into()));
    }
    fs::copy(path, out).map_err(Error::io(out))?;
    let header_bytes = gguf.tensors().iter().map(|tensor| tensor.offset).min().unwrap_or(0);
    let mut header = vec![0; header_bytes];
    let file = File::options().read(true).write(true).open(out).map_err(Error::io(out))?;
    file.read_exact_at(&mut header, 0).map_err(Error::io(out))?;
    rename(&mut header, &gguf.keys().collect::<Vec<_>>(), arch, to)?;
    file.write_all_at(&header, 0).map_err(Error::io(out))
}

/// Changes the architecture and the beginning of every key that is named after it.
fn rename(header: &mut [u8], keys: &[&str], arch: &str, to: &str) -> Result<(), Error> {
    let prefix = format!("{arch}.");
    for key in keys.iter().filter(|key| key.starts_with(&prefix)) {
        let at = only(header, &string(key), key)? + size_of::<u64>();
        header[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    let key = [string(ARCHITECTURE), STRING.to_le_bytes().to_vec()].concat();
    let entry = [key.clone(), string(arch)].concat();
    let at = only(header, &entry, ARCHITECTURE)? + key.len() + size_of::<u64>();
    header[at..at + to.len()].copy_from_slice(to.as_bytes());
    Ok(())
}

/// Text as GGUF has it: its length, then its bytes.
fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

/// Where the only occurrence of `wanted` begins.
fn only(header: &[u8], wanted: &[u8], key: &str) -> Result<usize, Error> {
    let mut places =
        header.windows(wanted.len()).enumerate().filter(|(_, window)| *window == wanted);
    match (places.next(), places.next()) {
        (Some((at, _)), None) => Ok(at),
        (None, _) => Err(Error::Argument(format!("key `{key}` is not in the file's header"))),
        _ => Err(Error::Argument(format!("key `{key}` is twice in the file's header"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_are_as_long() {
        assert!(TWINS.iter().all(|(from, to)| from.len() == to.len()));
        assert_eq!((of("llada"), of("dream"), of("llama")), (Some("llama"), Some("qwen2"), None));
    }

    #[test]
    fn an_ambiguous_header_is_refused() {
        let key = string("llada.block_count");
        let architecture = [string(ARCHITECTURE), vec![8, 0, 0, 0], string("llada")].concat();
        let mut header = [architecture.clone(), key.clone()].concat();
        rename(&mut header, &["llada.block_count"], "llada", "llama").unwrap();
        assert!(header.ends_with(b"llama.block_count"));
        let mut twice = [architecture, key.clone(), key].concat();
        assert!(rename(&mut twice, &["llada.block_count"], "llada", "llama").is_err());
        assert!(rename(&mut [], &[], "llada", "llama").is_err());
    }
}
