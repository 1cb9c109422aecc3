//! Texts and ids of llama.cpp's tokenizer, which tokens are found in a text, and time.

use dllm_rt::vocab::{Error, Show, Special, Vocab, VocabParts, parts_from_gguf};
use serde_json::Value;

use super::support::*;

#[test]
fn reference_cases_are_exact_both_ways() {
    let cases = data("cases");
    for (pre, file) in RULES {
        let vocab = vocab(file, pre);
        check_cases(pre, &vocab, &cases[pre]);
    }
}

#[test]
fn reference_files_are_exact_both_ways() {
    let folder = format!("{}/../shared/reference/tokenizer", env!("CARGO_MANIFEST_DIR"));
    if !std::path::Path::new(&folder).exists() {
        println!("skipped: no {folder}");
        return;
    }
    for (pre, _) in RULES {
        let gguf = dllm_rt::gguf::open(format!("{folder}/{pre}.gguf").as_ref()).unwrap();
        let start = std::time::Instant::now();
        let vocab = Vocab::new(parts_from_gguf(&gguf).unwrap()).unwrap();
        println!("{pre}: {} tokens in {:?}", vocab.token_count(), start.elapsed());
        let cases = std::fs::read_to_string(format!("{folder}/{pre}.cases.json")).unwrap();
        let cases: Value = serde_json::from_str(&cases).unwrap();
        check_cases(pre, &vocab, &cases["cases"]);
    }
}

fn check_cases(pre: &str, vocab: &Vocab, cases: &Value) {
    let cases = cases.as_array().unwrap();
    assert!(cases.len() > 50);
    for case in cases {
        let text = case["text"].as_str().unwrap();
        let special = if case["special"] == true { Special::Parse } else { Special::AsText };
        let got = vocab.encode(text, special).unwrap();
        assert_eq!(got, ids(&case["ids"]), "{pre}: {text:?} {special:?}");
        let back = vocab.decode(&got, Show::All).unwrap();
        assert_eq!(back, text.as_bytes(), "{pre}: {text:?}");
    }
}

#[test]
fn decoding_shows_or_leaves_out_control_tokens() {
    let vocab = vocab("qwen2", "qwen2");
    let tokens = vocab.encode("<|im_start|>Hello<|im_end|>", Special::Parse).unwrap();
    assert_eq!(vocab.decode_text(&tokens, Show::TextOnly).unwrap(), "Hello");
    assert_eq!(vocab.decode_text(&tokens, Show::All).unwrap(), "<|im_start|>Hello<|im_end|>");
    let half = vocab.encode("é", Special::AsText).unwrap();
    assert_eq!(vocab.decode_text(&half, Show::All).unwrap(), "é");
    let said = vocab.decode(&[0, 151667], Show::All).unwrap_err();
    assert_eq!(said, Error::TokenRange { index: 1, id: 151667, count: 151667 });
}

#[test]
fn user_defined_tokens_are_found_always_and_control_tokens_when_asked() {
    let parts = small(&[("=>", 4), ("<c>", 3), ("=>>", 4), ("<|u|>", 4)], &[]);
    let vocab = Vocab::new(parts).unwrap();
    let byte = |c: char| c as u32 - 33;
    let plain: Vec<u32> = "<c>".chars().map(byte).collect();
    assert_eq!(vocab.encode("=>", Special::AsText).unwrap(), [256]);
    assert_eq!(vocab.encode("=>>=>", Special::Parse).unwrap(), [258, 256]);
    assert_eq!(vocab.encode("<c>", Special::AsText).unwrap(), plain);
    assert_eq!(vocab.encode("<c>", Special::Parse).unwrap(), [257]);
    // Written as markup: user text must not form it, whatever the file types it as.
    assert_eq!(vocab.encode("<|u|>", Special::AsText).unwrap().len(), 5);
    assert_eq!(vocab.encode("<|u|>", Special::Parse).unwrap(), [259]);
    assert_eq!(vocab.decode(&[256, 257], Show::TextOnly).unwrap(), b"=>");
}

#[test]
fn a_control_token_is_never_made_by_merging() {
    let parts = small(&[("ab", 3), ("cd", 1)], &["a b", "c d"]);
    for pre in ["gpt-2", "llama-bpe"] {
        let vocab = Vocab::new(VocabParts { pre: Some(pre.into()), ..parts.clone() }).unwrap();
        assert_eq!(vocab.encode("ab", Special::AsText).unwrap().len(), 2, "{pre}");
        assert_eq!(vocab.encode("cd", Special::AsText).unwrap(), [257], "{pre}");
    }
}

#[test]
fn long_and_repetitive_texts_take_linear_time() {
    let texts = ["a", " ", "\n", "\n \t", "1", "!", "'", "é中 ", "The quick brown fox. ", "<|"];
    for (pre, file) in RULES {
        let vocab = vocab(file, pre);
        for text in texts {
            let text = text.repeat(100_000 / text.len());
            let start = std::time::Instant::now();
            let tokens = vocab.encode(&text, Special::Parse).unwrap();
            assert_eq!(vocab.decode(&tokens, Show::All).unwrap(), text.as_bytes());
            assert!(start.elapsed().as_secs() < 5, "{pre} {:?}", &text[..4]);
        }
    }
}
