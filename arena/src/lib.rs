//! All memory of dllm-rt and the unsafe code that goes with it.
