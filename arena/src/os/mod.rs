//! What is asked of the system: files, pages, amounts of memory, and what a thread has used.

pub mod available;
pub mod count;
pub mod file;
pub mod pages;
