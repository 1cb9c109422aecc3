//! Any bytes as a tokenizer's metadata and a text.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dllm_rt::vocab::fuzz::tokenizer(data));
