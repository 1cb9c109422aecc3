//! Properties of random texts, conversations and metadata.

use dllm_rt::vocab::{Message, Show, Special, Vocab, VocabParts, fuzz};
use proptest::prelude::*;

use super::support::*;

/// Pieces of control tokens and of words.
const CONTENT: &str = r"([<|>\[\] _\n]|<\|eot_id\|>|[a-z]{1,3}){0,12}";
/// Pieces of Jinja.
const TEMPLATE: &str = r"(\{\{|\}\}|\{%|%\}|for m in messages|m.content|[a-z ~+*|]){0,12}";

proptest! {
    #[test]
    fn fuzz_targets_hold_on_random_bytes(
        head in prop::collection::vec(any::<u8>(), 3),
        fields in prop::collection::vec("[ab\u{120}<|>\n ]{0,12}", 4),
        noise in prop::collection::vec(any::<u8>(), 0..200),
        template in TEMPLATE,
        contents in prop::collection::vec(CONTENT, 0..3),
    ) {
        let fields = fields.into_iter().map(String::into_bytes);
        let fields: Vec<Vec<u8>> = [head].into_iter().chain(fields).collect();
        fuzz::tokenizer(&fields.join(&0));
        fuzz::tokenizer(&noise);
        fuzz::template(&noise);
        let fields: Vec<String> = [template].into_iter().chain(contents).collect();
        fuzz::template(fields.join("\0").as_bytes());
    }

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
        contents in prop::collection::vec(CONTENT, 1..4),
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
        template in prop::option::of(TEMPLATE),
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
