//! The tokenizer and the chat templates against ids and texts that were worked out elsewhere.
//!
//! `tests/data/tokenizer` is written by `tools/tokenizer_data.py`; the cases are those of
//! llama.cpp's tokenizer, confirmed by Hugging Face's, over reduced vocabularies.

mod cases;
mod chat;
mod jinja;
mod metadata;
mod provenance;
mod random;
mod support;
