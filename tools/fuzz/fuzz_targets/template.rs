//! Any bytes as a chat template and a conversation.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dllm_rt::vocab::fuzz::template(data));
