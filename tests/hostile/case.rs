//! What a case is.

/// The command that meets the fault first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// `inspect FILE`: the fault is in the GGUF layer.
    Inspect,
    /// `tokenize --model FILE TEXT`: it is in the tokenizer or the chat template.
    Tokenize,
    /// `logits --model FILE --tokens 1,2,3`: it is in the model.
    Logits,
}

/// One broken file, or a model of several of which one is.
pub struct Case {
    pub name: String,
    pub via: Via,
    /// Names and bytes; the first one is opened.
    pub files: Vec<(String, Vec<u8>)>,
    /// What the message must contain: the thing that is wrong.
    pub expected: String,
}

impl Case {
    pub fn new(name: &str, via: Via, bytes: Vec<u8>, expected: &str) -> Self {
        let files = vec![("model.gguf".to_owned(), bytes)];
        Self { name: name.to_owned(), via, files, expected: expected.to_owned() }
    }

    pub fn inspect(name: &str, bytes: Vec<u8>, expected: &str) -> Self {
        Self::new(name, Via::Inspect, bytes, expected)
    }

    pub fn tokenize(name: &str, bytes: Vec<u8>, expected: &str) -> Self {
        Self::new(name, Via::Tokenize, bytes, expected)
    }

    pub fn logits(name: &str, bytes: Vec<u8>, expected: &str) -> Self {
        Self::new(name, Via::Logits, bytes, expected)
    }
}
