//! The model that is part of the program.

use super::support::run;
use std::collections::BTreeMap;

/// The most bytes that the model may add to the program.
const MODEL_BYTES_MAX: u64 = 12_000_000;

fn says(prompt: &str) -> String {
    let ran = run(["run", "--prompt", prompt]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.err.is_empty(), "{}", ran.err);
    ran.text().to_owned()
}

#[test]
fn it_answers_where_no_model_is_named() {
    assert_eq!(says("What is the capital of France?"), "Paris\n");
    let json = run(["run", "--json", "--prompt", "What is the capital of France?"]).json();
    assert_eq!(json["model"], "built-in demonstration model");
    assert_eq!(json["arch"], "llada");
    assert_eq!(json["finish_reason"], "stop");
    assert_eq!(json["counters"]["allocations"], 0);
}

#[test]
fn every_command_knows_it() {
    let tokens = run(["tokenize", "--json", "--prompt", "Spell OAK."]).json();
    let ids: Vec<u32> = serde_json::from_value(tokens["tokens"].clone()).unwrap();
    let list = ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let text = run(["detokenize", "--json", "--tokens", &list]).json();
    assert!(text["text"].as_str().unwrap().contains("Spell OAK."), "{text}");
    assert!(run(["plan"]).text().contains("built-in demonstration model"));
    let logits = run(["logits", "--tokens", &list, "--rows", "0", "--out", "-"]);
    assert_eq!((logits.status, logits.out.len()), (0, 4 * 2048), "{}", logits.err);
}

#[test]
fn it_has_the_types_that_a_q4_k_m_file_has() {
    let json = run(["inspect", "--json"]).json();
    assert_eq!(json["metadata"]["general.architecture"], "llada", "{json}");
    let layers = json["metadata"]["llada.block_count"].as_u64().unwrap();
    let mut by_type: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for tensor in json["tensors"].as_array().unwrap() {
        let text = |key: &str| tensor[key].as_str().unwrap().to_owned();
        by_type.entry(text("type")).or_default().push(text("name"));
    }
    assert_eq!(by_type.keys().collect::<Vec<_>>(), ["F32", "Q4_K", "Q6_K"]);
    assert!(by_type["F32"].iter().all(|name| name.ends_with("_norm.weight")));
    let finer = &by_type["Q6_K"];
    assert!(finer.contains(&"output.weight".to_owned()));
    let part = |end: &str| finer.iter().filter(|name| name.contains(end)).count() as u64;
    // Half of the layers.
    assert_eq!((part("attn_v"), part("ffn_down")), (layers / 2, layers / 2));
    assert_eq!(finer.len() as u64, 1 + layers);
    assert!(json["file_bytes"].as_u64().unwrap() <= MODEL_BYTES_MAX);
}
