//! Any bytes as a GGUF file: opened, every key and tensor read, everything printed.
#![no_main]

use std::io;

use dllm_rt::gguf::{Gguf, inspect};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(gguf) = Gguf::from_bytes(bytes.to_vec()) else { return };
    for tensor in gguf.tensors() {
        assert_eq!(gguf.data(tensor).len(), tensor.bytes);
    }
    for key in gguf.keys() {
        let _ = (gguf.u32(key), gguf.f32(key), gguf.str(key), gguf.bool(key));
        let _ = gguf.strings(key).map(Iterator::count);
        let _ = gguf.i32s(key).map(Iterator::count);
        let _ = gguf.f32s(key).map(Iterator::count);
    }
    let _ = inspect::write_text(&gguf, &mut io::sink());
    let _ = inspect::write_json(&gguf, &mut io::sink());
    let _ = gguf.hash();
});
