//! The tokenizer and the chat templates against ids and texts that were worked out elsewhere.
//!
//! `tests/data/tokenizer` is written by `tools/tokenizer_data.py`; the cases are those of
//! llama.cpp's tokenizer, confirmed by Hugging Face's, over reduced vocabularies.

use dllm_rt::vocab::{Fault, Message, Show, Special, Vocab, VocabParts};
use proptest::prelude::*;
use serde_json::Value;

const RULES: [(&str, &str); 4] = [
    ("bailingmoe", "gpt2"),
    ("gpt-2", "gpt2"),
    ("llama-bpe", "gpt2"),
    ("qwen2", "qwen2"),
];

fn data(name: &str) -> Value {
    let path = format!(
        "{}/tests/data/tokenizer/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A reduced vocabulary; the slots of tokens that were left out hold short placeholders.
fn parts(file: &str, pre: &str) -> VocabParts {
    let json = data(&format!("vocab-{file}"));
    let count = json["count"].as_u64().unwrap() as usize;
    let mut parts = VocabParts {
        model: "gpt2".into(),
        pre: Some(pre.into()),
        architecture: if file == "qwen2" { "dream" } else { "llada" }.into(),
        tokens: (0..count)
            .map(|id| format!("\u{2423}{id}").into_bytes())
            .collect(),
        token_types: vec![5; count],
        merges: strings(&json["merges"])
            .into_iter()
            .map(String::into_bytes)
            .collect(),
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

fn vocab(file: &str, pre: &str) -> Vocab {
    Vocab::new(parts(file, pre)).unwrap()
}

fn strings(value: &Value) -> Vec<String> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_str().unwrap().to_owned())
        .collect()
}

fn ids(value: &Value) -> Vec<u32> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_u64().unwrap() as u32)
        .collect()
}

fn turns(value: &Value) -> Vec<Message> {
    let turn = |pair: &Value| {
        let [role, content] = strings(pair).try_into().unwrap();
        Message { role, content }
    };
    value.as_array().unwrap().iter().map(turn).collect()
}

fn user(content: &str) -> Message {
    Message {
        role: "user".into(),
        content: content.into(),
    }
}

#[test]
fn reference_cases_are_exact_both_ways() {
    let cases = data("cases");
    for (pre, file) in RULES {
        let vocab = vocab(file, pre);
        for case in cases[pre].as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            let special = if case["special"] == true {
                Special::Parse
            } else {
                Special::AsText
            };
            let got = vocab.encode(text, special).unwrap();
            assert_eq!(got, ids(&case["ids"]), "{pre}: {text:?} {special:?}");
            let back = vocab.decode(&got, Show::All).unwrap();
            assert_eq!(back, text.as_bytes(), "{pre}: {text:?}");
        }
    }
}

#[test]
fn conversations_are_exact_and_control_tokens_in_them_are_text() {
    for case in data("chat").as_array().unwrap() {
        let architecture = case["architecture"].as_str().unwrap();
        let (file, pre) = if architecture == "dream" {
            ("qwen2", "qwen2")
        } else {
            ("gpt2", "bailingmoe")
        };
        let messages = turns(&case["messages"]);
        let template = case["template"].as_str().unwrap().to_owned();
        for chat_template in [Some(template), None] {
            let label = format!("{messages:?} own template: {}", chat_template.is_some());
            let vocab = Vocab::new(VocabParts {
                chat_template,
                ..parts(file, pre)
            })
            .unwrap();
            assert_eq!(
                vocab.render_chat(&messages).unwrap(),
                case["text"],
                "{label}"
            );
            let got = vocab.encode_chat(&messages).unwrap();
            assert_eq!(got, ids(&case["ids"]), "{label}");
            let back = vocab.decode_text(&got, Show::All).unwrap();
            assert_eq!(back, case["text"].as_str().unwrap(), "{label}");
        }
    }
}

#[test]
fn templates_render_as_jinja2_renders_them() {
    for case in data("templates").as_array().unwrap() {
        let mut parts = parts("gpt2", "gpt-2");
        let (bos, eos) = (parts.tokens.len() as u32, parts.tokens.len() as u32 + 1);
        parts.tokens.extend([b"<s>".to_vec(), b"</s>".to_vec()]);
        parts.token_types.extend([3, 3]);
        (parts.bos_id, parts.eos_id) = (Some(bos), Some(eos));
        parts.chat_template = Some(case["template"].as_str().unwrap().to_owned());
        let rendered = Vocab::new(parts)
            .unwrap()
            .render_chat(&turns(&case["messages"]));
        match case["text"].as_str() {
            Some(text) => assert_eq!(rendered.as_deref(), Ok(text), "{}", case["name"]),
            None => assert!(matches!(rendered, Err(Fault::Template(_))), "{rendered:?}"),
        }
    }
}

#[test]
fn a_template_that_cuts_and_joins_contents_cannot_make_a_control_token() {
    let templates = [
        "{% for m in messages %}{{ m.content }}{% endfor %}",
        "{% for m in messages %}{{ m.content | replace('~', '') }}{% endfor %}",
        "{% for m in messages %}{{ m.content.split('~') | join }}{% endfor %}",
        "{% for m in messages %}{% for c in m.content %}{{ c }}{% endfor %}{% endfor %}",
        "{% for m in messages %}{{ m.content | lower | reverse | reverse }}{% endfor %}",
        "{{ messages | map(attribute='content') | join }}",
        "<|im{% for m in messages %}{{ m.content }}{% endfor %}end|>",
    ];
    let talks = [
        vec![user("<|im_end|>")],
        vec![user("<|im_"), user("end|>")],
        vec![user("<|im~_e~nd|>")],
        vec![user("<|IM_END|>")],
        vec![user("<|IM_"), user("end|"), user("><"), user("|im_end|>")],
        vec![user("_end|>")],
        vec![user("\u{f0000}|im_end|\u{f0001}<>")],
    ];
    for template in templates {
        let chat_template = Some(template.to_owned());
        let vocab = Vocab::new(VocabParts {
            chat_template,
            ..parts("qwen2", "qwen2")
        })
        .unwrap();
        for talk in &talks {
            let got = vocab.encode_chat(talk).unwrap();
            assert!(
                !got.iter().any(|&id| vocab.is_control(id)),
                "{template} {talk:?} {got:?}"
            );
            let text = vocab.render_chat(talk).unwrap();
            assert_eq!(vocab.decode_text(&got, Show::All).unwrap(), text);
        }
    }
}

#[test]
fn a_hostile_template_ends_with_an_error() {
    let hostile = [
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
        "{% for i in range(1000) %}{{ 'x' * 100000 }}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ 'x' * 1000000000000 }}",
        "{% include 'other' %}",
        "{{ messages[99].content.x }}",
        "{{ strftime_now('%Q%') }}",
        "{{ nothing() }}",
        "{{ 1 // 0 }}",
        "{% set x = %}",
    ];
    let nested = format!("{}1{}", "{{ (".repeat(5000), ") }}".repeat(5000));
    let deep = format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000));
    let long = "x".repeat(2 << 20);
    for template in hostile.into_iter().chain([&*nested, &*deep, &*long]) {
        let chat_template = Some(template.to_owned());
        let vocab = Vocab::new(VocabParts {
            chat_template,
            ..parts("qwen2", "qwen2")
        })
        .unwrap();
        let error = vocab.encode_chat(&[user("hi")]).unwrap_err();
        assert!(
            error.to_string().contains("tokenizer.chat_template"),
            "{error}"
        );
    }
}

#[test]
fn a_bos_comes_once_and_only_where_asked_for() {
    let hello = vocab("gpt2", "bailingmoe")
        .encode("Hello", Special::AsText)
        .unwrap();
    let bos = 50257;
    let with_bos: Vec<u32> = [bos].into_iter().chain(hello.iter().copied()).collect();
    for (add_bos, plain) in [
        (None, &hello),
        (Some(false), &hello),
        (Some(true), &with_bos),
    ] {
        let mut parts = VocabParts {
            add_bos,
            ..parts("gpt2", "bailingmoe")
        };
        let vocab = Vocab::new(parts.clone()).unwrap();
        assert_eq!(
            &vocab.encode_prompt("Hello", Special::AsText).unwrap(),
            plain
        );
        let marked = vocab
            .encode_prompt("<|startoftext|>Hello", Special::Parse)
            .unwrap();
        assert_eq!(marked, with_bos);
        let chat = vocab.encode_chat(&[user("Hello")]).unwrap();
        assert_eq!(chat.iter().filter(|&&id| id == bos).count(), 1);
        assert_eq!(chat[0], bos);

        parts.chat_template = Some("{{ messages[0].content }}".into());
        let vocab = Vocab::new(parts).unwrap();
        assert_eq!(&vocab.encode_chat(&[user("Hello")]).unwrap(), plain);
    }
}

#[test]
fn ends_and_named_tokens_are_known() {
    let dream = vocab("qwen2", "qwen2");
    assert_eq!(dream.end_ids(), [151643, 151645]);
    assert_eq!(
        (dream.eos_id(), dream.eot_id()),
        (Some(151643), Some(151645))
    );
    assert_eq!(dream.mask_id(), Some(151666));
    assert_eq!(dream.control_id("<|im_start|>"), Some(151644));
    assert_eq!(dream.control_id("<|im_start|>x"), None);
    assert_eq!(dream.control_id("Hello"), None);
    assert_eq!(dream.token_count(), 151667);
    let llada = vocab("gpt2", "bailingmoe");
    assert_eq!(llada.end_ids(), [50256, 50261]);
    assert!(llada.is_end(50261) && !llada.is_end(50258) && llada.is_control(50258));
    assert_eq!(llada.eot_id(), Some(50261));
}

#[test]
fn decoding_shows_or_leaves_out_control_tokens() {
    let vocab = vocab("qwen2", "qwen2");
    let tokens = vocab
        .encode("<|im_start|>Hello<|im_end|>", Special::Parse)
        .unwrap();
    assert_eq!(vocab.decode_text(&tokens, Show::TextOnly).unwrap(), "Hello");
    assert_eq!(
        vocab.decode_text(&tokens, Show::All).unwrap(),
        "<|im_start|>Hello<|im_end|>"
    );
    let half = vocab.encode("é", Special::AsText).unwrap();
    assert_eq!(vocab.decode_text(&half, Show::All).unwrap(), "é");
    let said = vocab.decode(&[0, 151667], Show::All).unwrap_err();
    assert_eq!(
        said,
        Fault::TokenRange {
            index: 1,
            id: 151667,
            count: 151667
        }
    );
}

/// One character per byte token, then the given ones.
fn small(more: &[(&str, i32)], merges: &[&str]) -> VocabParts {
    let base = parts("gpt2", "gpt-2");
    let mut small = VocabParts {
        model: "gpt2".into(),
        pre: Some("gpt-2".into()),
        tokens: base.tokens[..256].to_vec(),
        token_types: vec![1; 256],
        merges: merges
            .iter()
            .map(|merge| merge.as_bytes().to_vec())
            .collect(),
        ..VocabParts::default()
    };
    for (text, kind) in more {
        small.tokens.push(text.as_bytes().to_vec());
        small.token_types.push(*kind);
    }
    small
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
        let vocab = Vocab::new(VocabParts {
            pre: Some(pre.into()),
            ..parts.clone()
        })
        .unwrap();
        assert_eq!(
            vocab.encode("ab", Special::AsText).unwrap().len(),
            2,
            "{pre}"
        );
        assert_eq!(vocab.encode("cd", Special::AsText).unwrap(), [257], "{pre}");
    }
}

#[test]
fn harmless_oddities_are_let_through() {
    let mut parts = small(
        &[("ab", 1), ("ab", 1), ("", 3), ("", 1), ("<0x41>", 6)],
        &["a b"],
    );
    parts.merges.push(b"a b".to_vec());
    parts.merges.insert(0, b"#version: 0.2".to_vec());
    parts.tokens.push(vec![0xff, 0xfe]);
    parts.token_types.push(3);
    let vocab = Vocab::new(parts).unwrap();
    assert_eq!(vocab.encode("ab", Special::Parse).unwrap(), [256]);
    assert_eq!(
        vocab.decode(&[257, 258, 259, 260, 261], Show::All).unwrap(),
        b"abA\xff\xfe"
    );
    assert_eq!(
        vocab.decode_text(&[261], Show::All).unwrap(),
        "\u{fffd}\u{fffd}"
    );
}

#[test]
fn what_is_wrong_is_named() {
    let said = |change: fn(&mut VocabParts)| {
        let mut parts = small(&[("ab", 1)], &["a b"]);
        change(&mut parts);
        Vocab::new(parts).unwrap_err().to_string()
    };
    let cases: [(&str, fn(&mut VocabParts)); 12] = [
        ("tokenizer.ggml.model is \"llama\"", |p| {
            p.model = "llama".into()
        }),
        ("tokenizer.ggml.pre is \"tekken\"", |p| {
            p.pre = Some("tekken".into())
        }),
        ("tokenizer.ggml.pre is missing", |p| p.pre = None),
        ("tokenizer.ggml.tokens has 0", |p| p.tokens.clear()),
        ("tokenizer.ggml.token_type has 3", |p| {
            p.token_types.truncate(3)
        }),
        ("tokenizer.ggml.mask_token_id is 257", |p| {
            p.mask_id = Some(257)
        }),
        ("tokenizer.ggml.bos_token_id is 4294967295", |p| {
            p.bos_id = Some(u32::MAX)
        }),
        ("token 7 has 5000 bytes", |p| p.tokens[7] = vec![b'x'; 5000]),
        ("merge 1 (\"ab\") has no space", |p| {
            p.merges.push(b"ab".to_vec())
        }),
        ("merge 1 (\"a b c\") is not two tokens", |p| {
            p.merges.push(b"a b c".to_vec())
        }),
        ("merge 1 (\"ab ab\") gives a token", |p| {
            p.merges.push(b"ab ab".to_vec())
        }),
        ("merge 1 (\"xyz b\") names a token", |p| {
            p.merges.push(b"xyz b".to_vec())
        }),
    ];
    for (expected, change) in cases {
        let said = said(change);
        assert!(said.contains(expected), "{said}");
    }
    let mut parts = small(&[], &[]);
    parts.tokens.remove(0);
    parts.token_types.remove(0);
    let said = Vocab::new(parts)
        .unwrap()
        .encode("a!", Special::AsText)
        .unwrap_err();
    assert_eq!(said, Fault::ByteMissing { byte: b'!' });
}

#[test]
fn a_file_without_a_template_needs_a_known_architecture_and_its_tokens() {
    let error = |architecture: &str| {
        let mut parts = small(&[("<|im_end|>", 3)], &[]);
        parts.architecture = architecture.into();
        Vocab::new(parts)
            .unwrap()
            .encode_chat(&[user("hi")])
            .unwrap_err()
            .to_string()
    };
    assert!(error("llama").contains("none is known for architecture \"llama\""));
    assert!(error("dream").contains("needs the control token <|im_start|>"));
    let odd = Message {
        role: "robot".into(),
        content: String::new(),
    };
    let said = vocab("qwen2", "qwen2")
        .encode_chat(&[user("hi"), odd])
        .unwrap_err();
    assert!(
        said.to_string()
            .starts_with("messages[1]: role is \"robot\""),
        "{said}"
    );
}

#[test]
fn long_and_repetitive_texts_take_linear_time() {
    let texts = [
        "a",
        " ",
        "\n",
        "\n \t",
        "1",
        "!",
        "'",
        "é中 ",
        "The quick brown fox. ",
        "<|",
    ];
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

proptest! {
    #[test]
    fn any_text_comes_back_byte_for_byte(text in "\\PC*|[ \\t\\r\\n'a-z0-9<|>_é中]{0,60}") {
        for (pre, file) in [("bailingmoe", "gpt2"), ("llama-bpe", "gpt2"), ("gpt-2", "gpt2")] {
            let vocab = shared(file, pre);
            for special in [Special::Parse, Special::AsText] {
                let tokens = vocab.encode(&text, special).unwrap();
                prop_assert_eq!(vocab.decode(&tokens, Show::All).unwrap(), text.as_bytes());
            }
            let plain = vocab.encode(&text, Special::AsText).unwrap();
            prop_assert!(!plain.iter().any(|&id| vocab.is_control(id)));
        }
    }

    #[test]
    fn contents_never_add_control_tokens(
        contents in prop::collection::vec("([<|>\\[\\] _\n]|<\\|eot_id\\|>|[a-z]{1,3}){0,12}", 1..4),
    ) {
        let vocab = shared("gpt2", "bailingmoe");
        let messages: Vec<Message> = contents.iter().map(|text| user(text)).collect();
        let tokens = vocab.encode_chat(&messages).unwrap();
        let control = tokens.iter().filter(|&&id| vocab.is_control(id)).count();
        prop_assert_eq!(control, 1 + 3 * messages.len() + 2);
        let text = vocab.render_chat(&messages).unwrap();
        prop_assert_eq!(vocab.decode_text(&tokens, Show::All).unwrap(), text);
    }

    #[test]
    fn random_parts_never_panic(
        tokens in prop::collection::vec("[ab\u{120}<|>]{0,3}", 0..40),
        types in prop::collection::vec(-1..8_i32, 0..40),
        merges in prop::collection::vec("[ab< ]{0,2} ?[ab]{0,2}", 0..20),
        special in prop::option::of(0..40_u32),
        pre in prop::sample::select(vec!["gpt-2", "qwen2", "llama-bpe", "bailingmoe", "x"]),
        template in prop::option::of("(\\{\\{|\\}\\}|\\{%|%\\}|for m in messages|m.content|[a-z ~+*|]){0,12}"),
        text in "[ab <|>\\n]{0,30}",
    ) {
        let parts = VocabParts {
            model: "gpt2".into(),
            pre: Some(pre.into()),
            tokens: tokens.into_iter().map(String::into_bytes).collect(),
            token_types: types,
            merges: merges.into_iter().map(String::into_bytes).collect(),
            bos_id: special,
            eos_id: special,
            chat_template: template,
            ..VocabParts::default()
        };
        let types = VocabParts { token_types: Vec::new(), ..parts.clone() };
        let merges = VocabParts { merges: Vec::new(), ..types.clone() };
        for parts in [parts, types, merges] {
            let Ok(vocab) = Vocab::new(parts) else { continue };
            for special in [Special::Parse, Special::AsText] {
                if let Ok(tokens) = vocab.encode(&text, special) {
                    prop_assert_eq!(vocab.decode(&tokens, Show::All).unwrap(), text.as_bytes());
                }
            }
            let _ = vocab.encode_chat(&[user(&text)]);
        }
    }
}

/// Vocabularies that the property tests share, built once.
fn shared(file: &str, pre: &str) -> &'static Vocab {
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
