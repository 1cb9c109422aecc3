//! Vocabularies and test data.

use dllm_rt::vocab::{Message, Vocab, VocabParts};
use serde_json::Value;

pub const RULES: [(&str, &str); 4] =
    [("bailingmoe", "gpt2"), ("gpt-2", "gpt2"), ("llama-bpe", "gpt2"), ("qwen2", "qwen2")];

pub fn data(name: &str) -> Value {
    let path = format!("{}/tests/data/tokenizer/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A reduced vocabulary; the slots of tokens that were left out hold short placeholders.
pub fn parts(file: &str, pre: &str) -> VocabParts {
    let json = data(&format!("vocab-{file}"));
    let count = json["count"].as_u64().unwrap() as usize;
    let mut parts = VocabParts {
        model: "gpt2".into(),
        pre: Some(pre.into()),
        architecture: if file == "qwen2" { "dream" } else { "llada" }.into(),
        tokens: (0..count).map(|id| format!("\u{2423}{id}").into_bytes()).collect(),
        token_types: vec![5; count],
        merges: strings(&json["merges"]).into_iter().map(String::into_bytes).collect(),
        bos_id: json["bos_token_id"].as_u64().map(|id| id as u32),
        eos_id: json["eos_token_id"].as_u64().map(|id| id as u32),
        mask_id: json["mask_token_id"].as_u64().map(|id| id as u32),
        ..VocabParts::default()
    };
    for row in json["tokens"].as_array().unwrap() {
        let id = row[0].as_u64().unwrap() as usize;
        parts.tokens[id] = row[1].as_str().unwrap().into();
        parts.token_types[id] = row[2].as_i64().unwrap() as i32;
    }
    parts
}

pub fn vocab(file: &str, pre: &str) -> Vocab {
    Vocab::new(parts(file, pre)).unwrap()
}

pub fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
}

pub fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect()
}

pub fn turns(value: &Value) -> Vec<Message> {
    let turn = |pair: &Value| {
        let [role, content] = strings(pair).try_into().unwrap();
        Message { role, content }
    };
    value.as_array().unwrap().iter().map(turn).collect()
}

pub fn user(content: &str) -> Message {
    Message { role: "user".into(), content: content.into() }
}

/// One character per byte token, then the given ones.
pub fn small(more: &[(&str, i32)], merges: &[&str]) -> VocabParts {
    let base = parts("gpt2", "gpt-2");
    let mut small = VocabParts {
        model: "gpt2".into(),
        pre: Some("gpt-2".into()),
        tokens: base.tokens[..256].to_vec(),
        token_types: vec![1; 256],
        merges: merges.iter().map(|merge| merge.as_bytes().to_vec()).collect(),
        ..VocabParts::default()
    };
    for (text, kind) in more {
        small.tokens.push(text.as_bytes().to_vec());
        small.token_types.push(*kind);
    }
    small
}

/// Vocabularies that the property tests share, built once.
pub fn shared(file: &str, pre: &str) -> &'static Vocab {
    use std::sync::{LazyLock, Mutex};
    type Built = Vec<(String, &'static Vocab)>;
    static BUILT: LazyLock<Mutex<Built>> = LazyLock::new(Default::default);
    let mut built = BUILT.lock().unwrap();
    if let Some((_, vocab)) = built.iter().find(|(name, _)| name == pre) {
        return vocab;
    }
    let vocab: &'static Vocab = Box::leak(Box::new(vocab(file, pre)));
    built.push((pre.to_owned(), vocab));
    vocab
}
