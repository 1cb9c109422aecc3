//! What `inspect` shows of a file.
