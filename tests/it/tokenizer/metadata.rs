//! What a file says of its tokenizer: keys, limits, oddities, errors.

use dllm_rt::vocab::{Error, Show, Special, Vocab, VocabParts, parts_from_gguf};

use super::support::*;

#[test]
fn metadata_keys_are_read_and_missed_by_name() {
    let base = small(&[("ab", 1), ("<m>", 3), ("<e>", 3)], &["a b"]);
    let all = || {
        vec![
            ("general.architecture", Field::Text("dream")),
            ("tokenizer.ggml.model", Field::Text("gpt2")),
            ("tokenizer.ggml.pre", Field::Text("qwen2")),
            ("tokenizer.ggml.tokens", Field::Texts(base.tokens.clone())),
            ("tokenizer.ggml.token_type", Field::Ints(base.token_types.clone())),
            ("tokenizer.ggml.merges", Field::Texts(base.merges.clone())),
            ("tokenizer.ggml.bos_token_id", Field::Id(1)),
            ("tokenizer.ggml.eos_token_id", Field::Id(258)),
            ("tokenizer.ggml.eot_token_id", Field::Id(3)),
            ("tokenizer.ggml.mask_token_id", Field::Id(257)),
            ("tokenizer.ggml.padding_token_id", Field::Id(4)),
            ("tokenizer.ggml.add_bos_token", Field::Flag(true)),
            ("tokenizer.chat_template", Field::Text("{{ messages[0].content }}")),
        ]
    };
    let read = |keys: &[(&str, Field)]| {
        parts_from_gguf(&dllm_rt::gguf::Gguf::from_bytes(gguf_bytes(keys)).unwrap())
    };
    let vocab = Vocab::new(read(&all()).unwrap()).unwrap();
    assert_eq!(vocab.encode_chat(&[user("ab")]).unwrap(), [1, 256]);
    assert_eq!((vocab.bos_id(), vocab.eos_id(), vocab.eot_id()), (Some(1), Some(258), Some(3)));
    assert_eq!((vocab.mask_id(), vocab.pad_id()), (Some(257), Some(4)));
    assert_eq!(vocab.end_ids(), [3, 258]);
    for left_out in 0..all().len() {
        let mut keys = all();
        let (key, _) = keys.remove(left_out);
        let needed = key.ends_with("model")
            || key.ends_with("architecture")
            || key.ends_with("tokens")
            || key.ends_with("merges");
        match read(&keys) {
            Ok(parts) => assert!(!needed && Vocab::new(parts).is_ok(), "{key}"),
            Err(error) => assert!(needed && error.to_string().contains(key), "{key}: {error}"),
        }
    }
    let mut keys = all();
    keys[1].1 = Field::Text("llama");
    assert_eq!(read(&keys).unwrap_err(), Error::Model { found: "llama".into() });
    keys[1].1 = Field::Id(3);
    assert!(read(&keys).unwrap_err().to_string().contains("tokenizer.ggml.model"));
}

/// A GGUF file with these keys and no tensors, little-endian, version 3.
fn gguf_bytes(keys: &[(&str, Field)]) -> Vec<u8> {
    let mut file = b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    let string = |file: &mut Vec<u8>, text: &[u8]| {
        file.extend((text.len() as u64).to_le_bytes());
        file.extend(text);
    };
    file.extend((keys.len() as u64).to_le_bytes());
    for (key, field) in keys {
        string(&mut file, key.as_bytes());
        match field {
            Field::Id(id) => file.extend([4_u32, *id].map(u32::to_le_bytes).concat()),
            Field::Flag(flag) => file.extend([7, 0, 0, 0, u8::from(*flag)]),
            Field::Text(text) => {
                file.extend(8_u32.to_le_bytes());
                string(&mut file, text.as_bytes());
            }
            Field::Texts(texts) => {
                file.extend([9_u32, 8].map(u32::to_le_bytes).concat());
                file.extend((texts.len() as u64).to_le_bytes());
                texts.iter().for_each(|text| string(&mut file, text));
            }
            Field::Ints(ints) => {
                file.extend([9_u32, 5].map(u32::to_le_bytes).concat());
                file.extend((ints.len() as u64).to_le_bytes());
                file.extend(ints.iter().flat_map(|int| int.to_le_bytes()));
            }
        }
    }
    file
}

enum Field {
    Id(u32),
    Flag(bool),
    Text(&'static str),
    Texts(Vec<Vec<u8>>),
    Ints(Vec<i32>),
}

#[test]
fn harmless_oddities_are_let_through() {
    let mut parts = small(&[("ab", 1), ("ab", 1), ("", 3), ("", 1), ("<0x41>", 6)], &["a b"]);
    parts.merges.push(b"a b".to_vec());
    parts.merges.insert(0, b"#version: 0.2".to_vec());
    parts.tokens.push(vec![0xff, 0xfe]);
    parts.token_types.push(3);
    let vocab = Vocab::new(parts).unwrap();
    assert_eq!(vocab.encode("ab", Special::Parse).unwrap(), [256]);
    assert_eq!(vocab.decode(&[257, 258, 259, 260, 261], Show::All).unwrap(), b"abA\xff\xfe");
    assert_eq!(vocab.decode_text(&[261], Show::All).unwrap(), "\u{fffd}\u{fffd}");
}

type Change = fn(&mut VocabParts);

#[test]
fn what_is_wrong_is_named() {
    let said = |change: Change| {
        let mut parts = small(&[("ab", 1)], &["a b"]);
        change(&mut parts);
        Vocab::new(parts).unwrap_err().to_string()
    };
    let cases: [(&str, Change); 12] = [
        ("tokenizer.ggml.model is \"llama\"", |p| p.model = "llama".into()),
        ("tokenizer.ggml.pre is \"tekken\"", |p| p.pre = Some("tekken".into())),
        ("tokenizer.ggml.pre is missing", |p| p.pre = None),
        ("tokenizer.ggml.tokens has 0", |p| p.tokens.clear()),
        ("tokenizer.ggml.token_type has 3", |p| p.token_types.truncate(3)),
        ("tokenizer.ggml.mask_token_id is 257", |p| p.mask_id = Some(257)),
        ("tokenizer.ggml.bos_token_id is 4294967295", |p| p.bos_id = Some(u32::MAX)),
        ("token 7 has 5000 bytes", |p| p.tokens[7] = vec![b'x'; 5000]),
        ("merge 1 (\"ab\") has no space", |p| p.merges.push(b"ab".to_vec())),
        ("merge 1 (\"a b c\") is not two tokens", |p| p.merges.push(b"a b c".to_vec())),
        ("merge 1 (\"ab ab\") gives a token", |p| p.merges.push(b"ab ab".to_vec())),
        ("merge 1 (\"xyz b\") names a token", |p| p.merges.push(b"xyz b".to_vec())),
    ];
    for (expected, change) in cases {
        let said = said(change);
        assert!(said.contains(expected), "{said}");
    }
    let mut parts = small(&[], &[]);
    parts.tokens.remove(0);
    parts.token_types.remove(0);
    let said = Vocab::new(parts).unwrap().encode("a!", Special::AsText).unwrap_err();
    assert_eq!(said, Error::ByteMissing { byte: b'!' });
}

#[test]
fn ends_and_named_tokens_are_known() {
    let dream = vocab("qwen2", "qwen2");
    assert_eq!(dream.end_ids(), [151643, 151645]);
    assert_eq!((dream.eos_id(), dream.eot_id()), (Some(151643), Some(151645)));
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
fn what_nothing_uses_may_be_wrong_and_is_said() {
    let mut parts = small(&[("ab", 1)], &["a b"]);
    parts.pad_id = Some(257);
    let vocab = Vocab::new(parts).unwrap();
    assert_eq!(vocab.pad_id(), None);
    let [said] = vocab.warnings() else { panic!("{:?}", vocab.warnings()) };
    assert!(said.starts_with("tokenizer.ggml.padding_token_id is 257, but"), "{said}");
    assert!(Vocab::new(small(&[], &[])).unwrap().warnings().is_empty());
}

#[test]
fn an_open_pre_tokenizer_is_settled_by_the_architecture_and_said() {
    for open in ["default", ""] {
        let mut parts = VocabParts { pre: Some(open.into()), ..small(&[], &[]) };
        let said = Vocab::new(parts.clone()).unwrap_err().to_string();
        assert!(said.contains("tokenizer.ggml.pre is missing"), "{said}");
        for (architecture, rule) in [("dream", "qwen2"), ("llada", "bailingmoe")] {
            parts.architecture = architecture.into();
            let vocab = Vocab::new(parts.clone()).unwrap();
            let [said] = vocab.warnings() else { panic!("{:?}", vocab.warnings()) };
            assert!(said.contains(&format!("{rule:?} is assumed")), "{said}");
        }
    }
}

#[test]
fn the_rule_of_llama_3_means_a_bos_where_the_file_does_not_say() {
    for (pre, add_bos, expected) in [
        ("llama-bpe", None, true),
        ("llama3", None, true),
        ("pixtral", None, true),
        ("llama-bpe", Some(false), false),
        ("gpt-2", None, false),
        ("qwen2", None, false),
        ("gpt-2", Some(true), true),
    ] {
        let pre = Some(pre.into());
        let parts = VocabParts { pre, add_bos, bos_id: Some(256), ..small(&[("<s>", 3)], &[]) };
        let ids = Vocab::new(parts).unwrap().encode_prompt("a", Special::AsText).unwrap();
        assert_eq!(ids[0] == 256, expected, "{add_bos:?}");
    }
}

#[test]
fn decomposed_text_is_composed_where_the_published_tokenizer_does_it() {
    let decomposed = "<|im_end|>\u{338} e\u{301} \u{1100}\u{1161}";
    for (pre, composes) in [("qwen2", true), ("deepseek-r1-qwen", false), ("bailingmoe", false)] {
        let (pre, tokens) = (Some(pre.into()), [("<|im_end|>", 3)]);
        let chat_template = Some("<|im_end|>{{ messages[0].content }}".into());
        let vocab = VocabParts { pre, chat_template, ..small(&tokens, &[]) };
        let vocab = Vocab::new(vocab).unwrap();
        // A mark after a control token belongs to no character before it.
        let composed = "<|im_end|>\u{338} \u{e9} \u{ac00}";
        let expected = if composes { composed } else { decomposed };
        let prompt = vocab.encode_normalized(decomposed, Special::Parse).unwrap();
        assert_eq!(vocab.decode_text(&prompt, Show::All).unwrap(), expected);
        assert_eq!(prompt[0], 256);
        let content = decomposed.strip_prefix("<|im_end|>").unwrap();
        assert_eq!(vocab.encode_chat(&[user(content)]).unwrap(), prompt);
        assert_eq!(vocab.render_chat(&[user(content)]).unwrap(), decomposed);
        // As it is, without a prompt's preparation.
        let plain = vocab.encode(decomposed, Special::Parse).unwrap();
        assert_eq!(vocab.decode_text(&plain, Show::All).unwrap(), decomposed);
        // Text without a chat is taken as it is.
        let plain = vocab.encode_prompt(decomposed, Special::Parse).unwrap();
        assert!(plain.ends_with(&vocab.encode(decomposed, Special::Parse).unwrap()));
        assert_eq!(vocab.normalized("e\u{301}") == "\u{e9}", composes);
    }
}
