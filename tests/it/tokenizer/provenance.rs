//! Templates see messages as they are; control tokens in messages are text all the same.

use dllm_rt::vocab::{Message, Show, Vocab, VocabParts, fuzz};
use proptest::prelude::*;

use super::support::*;

const TOKENS: [&str; 9] = [
    "<|im_start|>",
    "<|im_end|>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
    "<think>",
    "</think>",
    "[INST]",
    "<|n_1|>",
];

/// Single bytes and the control tokens above, in this order from id 256 on.
fn vocab_of(template: &str) -> Vocab {
    let tokens: Vec<(&str, i32)> = TOKENS.iter().map(|text| (*text, 3)).collect();
    let chat_template = Some(template.to_owned());
    Vocab::new(VocabParts { chat_template, ..small(&tokens, &[]) }).unwrap()
}

/// The rendered text, and its control tokens as they are written.
fn rendered(template: &str, talk: &[Message]) -> (String, Vec<&'static str>) {
    let vocab = vocab_of(template);
    let ids = vocab.encode_chat(talk).unwrap();
    let text = vocab.render_chat(talk).unwrap();
    assert_eq!(vocab.decode_text(&ids, Show::All).unwrap(), text);
    let control = ids.iter().filter(|&&id| vocab.is_control(id));
    (text, control.map(|&id| TOKENS[id as usize - 256]).collect())
}

#[test]
fn a_template_sees_the_text_as_it_is() {
    let cases = [
        ("{{ m.content.split('</think>')[-1] }}", "<think>x</think>y", "y"),
        ("{{ '</think>' in m.content }}", "a</think>", "True"),
        ("{{ m.content.startswith('[INST]') }}", "[INST] a", "True"),
        ("{{ m.content | replace('<|end|>', '-') }}", "a<|end|>b", "a-b"),
        ("{{ m.content == '<|end|>' }}", "<|end|>", "True"),
        ("{{ m.content.strip('<>') }}", "<a>", "a"),
        ("{{ m.content | length }} {{ m.content[1:5] }}", "<|end|>", "7 |end"),
        ("{{ m.content.find('|>') }}", "<|end|>", "5"),
        ("{{ {'<|end|>': 'yes'}[m.content] }}", "<|end|>", "yes"),
    ];
    for (template, content, text) in cases {
        let template = format!("{{% set m = messages[0] %}}{template}");
        assert_eq!(rendered(&template, &[user(content)]), (text.into(), vec![]), "{template}");
    }
}

#[test]
fn the_template_s_own_tokens_are_found_however_it_writes_them() {
    let cases: [(&str, &[&str]); 9] = [
        ("<|im_start|>{{ c }}<|im_end|>", &["<|im_start|>", "<|im_end|>"]),
        ("{{ '<|im_start|>' + c ~ '<|im_end|>' }}", &["<|im_start|>", "<|im_end|>"]),
        ("{{ '\\x3c|im_start|>' }}{{ \"<|im_end|>\\n\" }}", &["<|im_start|>", "<|im_end|>"]),
        ("{{ '<|' ~ r ~ '|>' ~ c ~ '<|end|>' }}", &["<|user|>", "<|end|>"]),
        ("<|{{ r }}|>{{ c.split('</think>')[-1] }}<|end|>", &["<|user|>", "<|end|>"]),
        ("<|{% if r == 'user' %}assistant{% endif %}|>{{ c.strip('<') }}", &["<|assistant|>"]),
        ("{% set e = '<|end|>' %}{{ c ~ e }}{% if 'zz' in c %}{{ e }}{% endif %}", &["<|end|>"]),
        ("<|n_{{ messages | length }}|>{{ c }}", &["<|n_1|>"]),
        ("[INST]{{ c.replace('</think>', '') | upper }}", &["[INST]"]),
    ];
    for content in ["plain", "<think>a</think>b", "<|im_end|>", "<|end|><|user|>[INST]", "<<>>"] {
        for (template, tokens) in cases {
            let template = format!(
                "{{% set c = messages[0].content %}}{{% set r = messages[0].role %}}{template}"
            );
            let (_, found) = rendered(&template, &[user(content)]);
            assert_eq!(found, tokens, "{template} {content}");
        }
    }
}

#[test]
fn reasoning_templates_keep_their_tokens_and_drop_the_reasoning() {
    let template = "{% for m in messages %}<|im_start|>{{ m.role }}\n\
        {% if m.role == 'assistant' and '</think>' in m.content %}\
        {{ '<think>' ~ m.content.split('</think>')[0].split('<think>')[-1].strip() ~ '</think>' }}\
        {{ m.content.split('</think>')[-1].lstrip('\n') }}{% else %}{{ m.content }}{% endif %}\
        <|im_end|>\n{% endfor %}";
    let talk = [
        user("Is </think> a token?"),
        Message::new("assistant", "<think>\nhm\n</think>\n\n<|im_end|>no"),
    ];
    let (text, tokens) = rendered(template, &talk);
    let start = "<|im_start|>user\nIs </think> a token?<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(text, format!("{start}<think>hm</think><|im_end|>no<|im_end|>\n"));
    let own = ["<|im_start|>", "<|im_end|>", "<|im_start|>", "<think>", "</think>", "<|im_end|>"];
    assert_eq!(tokens, own);
}

/// Pieces of control tokens.
const CONTENT: &str =
    r"([<|>\[\]/~_xy]|<\|im_end\|>|<\|end\|>|</?think>|[|]end|IM_|user|INST|n_1){0,8}";

#[test]
fn contents_alone_never_make_a_control_token() {
    let contents = [
        "<|im_end|>",
        "_",
        "_end|",
        "im_end",
        "<|im~_e~nd|>",
        "x|endy|end|>",
        "<|END|>",
        "user",
        "end",
        "|end|",
        "INST",
        "/think",
        "think",
        "\u{f0000}|im_end|\u{f0001}<>",
        "<|end|",
        "<|end|>",
    ];
    for content in contents {
        fuzz::contents(content);
    }
}

proptest! {
    #[test]
    fn no_content_makes_a_control_token(content in CONTENT) {
        fuzz::contents(&content);
    }
}
