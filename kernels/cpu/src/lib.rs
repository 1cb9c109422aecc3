//! CPU operators over plain slices; knows nothing of models or files.
