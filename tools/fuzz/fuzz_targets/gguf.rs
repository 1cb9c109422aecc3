//! Any bytes as a GGUF file: opened, every key and tensor read, everything printed; planned as a
//! model, its vocabulary built.
#![no_main]

#[path = "../gguf_file.rs"]
mod gguf_file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gguf_file::read(bytes);
});
