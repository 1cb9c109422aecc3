//! CPU operators over plain slices; knows nothing of models or files.

pub mod decode;
pub mod dtype;
pub mod pack;
