//! Interned names.

use dllm_arena::{Meta, MetaFull};

#[test]
fn the_same_text_is_the_same_name() {
    let mut meta = Meta::new(1 << 20);
    let texts: Vec<String> = (0..2000).map(|at| format!("blk.{at}.attn_q.weight")).collect();
    let names: Vec<_> = texts.iter().map(|text| meta.intern(text).unwrap()).collect();
    for (text, &name) in texts.iter().zip(&names) {
        assert_eq!(meta.intern(text), Ok(name));
        assert_eq!(meta.get(name), text);
    }
    let mut different = names.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), names.len());
    let empty = meta.intern("").unwrap();
    assert_eq!(meta.get(empty), "");
    assert!(meta.bytes() >= texts.iter().map(String::len).sum());
}

#[test]
fn nothing_is_added_once_sealed() {
    let mut meta = Meta::new(1 << 16);
    let name = meta.intern("output.weight").unwrap();
    meta.seal();
    let bytes = meta.bytes();
    let sealed = Err(MetaFull { limit: 1 << 16, sealed: true });
    assert_eq!(meta.intern("token_embd.weight"), sealed);
    assert_eq!(meta.intern("output.weight"), sealed);
    assert_eq!((meta.get(name), meta.bytes()), ("output.weight", bytes));
}

#[test]
fn the_limit_holds() {
    let mut meta = Meta::new(10_000);
    let full = (0..).find_map(|at| meta.intern(&format!("{at:0100}")).err()).unwrap();
    assert_eq!(full, MetaFull { limit: 10_000, sealed: false });
    assert!(full.to_string().contains("10000"));
    assert!(meta.bytes() <= 10_000);
    assert!(meta.intern(&"x".repeat(20_000)).is_err());
}

#[test]
fn names_are_read_from_several_threads() {
    let mut meta = Meta::new(1 << 16);
    let name = meta.intern("general.architecture").unwrap();
    meta.seal();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(meta.get(name), "general.architecture"));
        }
    });
}
