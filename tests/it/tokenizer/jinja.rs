//! Chat templates against jinja2, as `tools/template_cases.py` wrote down what it renders.

use dllm_rt::vocab::{Error, Special, Vocab, VocabParts};
use serde_json::Value;

use super::support::*;

#[test]
fn constructs_and_whole_templates_render_as_jinja2_renders_them() {
    let cases = data("jinja");
    let cases = cases.as_array().unwrap();
    assert!(cases.len() > 200);
    let mut wrong = Vec::new();
    for case in cases {
        let rendered = render(case);
        let fine = match case["text"].as_str() {
            Some(text) => rendered.as_deref() == Ok(text),
            None => matches!(rendered, Err(Error::Template(_))),
        };
        if !fine {
            let (name, text) = (case["name"].as_str().unwrap(), &case["text"]);
            wrong.push(format!("{name}\n  {rendered:?}\n  {text}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// A vocabulary with the control tokens that the templates write, and the case's template.
fn vocab_of(case: &Value) -> Vocab {
    let tokens = [
        "<s>",
        "</s>",
        "<|im_start|>",
        "<|im_end|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
        "<start_of_turn>",
        "<end_of_turn>",
        "<|user|>",
        "<|system|>",
        "<|assistant|>",
        "<|end|>",
        "<|question|>",
        "<think>",
        "</think>",
        "[INST]",
        "[/INST]",
    ];
    let mut parts = small(&tokens.map(|token| (token, 3)), &[]);
    (parts.bos_id, parts.eos_id) = (Some(256), Some(257));
    let chat_template = Some(case["template"].as_str().unwrap().to_owned());
    Vocab::new(VocabParts { chat_template, ..parts }).unwrap()
}

fn render(case: &Value) -> Result<String, Error> {
    vocab_of(case).render_chat(&turns(&case["messages"]))
}

#[test]
fn all_control_tokens_are_tokens_where_contents_can_have_none() {
    let (cases, mut found) = (data("jinja"), 0);
    for case in cases.as_array().unwrap() {
        let messages = turns(&case["messages"]);
        let Some(text) = case["text"].as_str() else { continue };
        if messages.iter().any(|message| message.content.contains(['<', '['])) {
            continue;
        }
        let vocab = vocab_of(case);
        let ids = vocab.encode_chat(&messages).unwrap();
        assert_eq!(ids, vocab.encode(text, Special::Parse).unwrap(), "{}", case["name"]);
        found += ids.iter().filter(|&&id| vocab.is_control(id)).count();
    }
    assert!(found > 150, "{found}");
}

#[test]
fn a_template_from_elsewhere_takes_the_place_of_the_file_s() {
    let mut vocab = Vocab::new(small(&[], &[])).unwrap();
    assert!(vocab.render_chat(&[user("hi")]).is_err());
    vocab.set_chat_template("{{ messages[0].content }}!".into());
    assert_eq!(vocab.render_chat(&[user("hi")]).unwrap(), "hi!");
}
