//! The program as a user meets it: exit statuses, streams, flags, JSON.

mod bench;
mod built_in;
mod chat;
mod ends;
mod eval;
mod faster;
mod interrupt;
mod json;
mod logits;
mod prompts;
mod reference;
mod same;
mod support;
mod tables;
mod usage;
