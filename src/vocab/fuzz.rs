//! What the fuzz targets run: any bytes as metadata, text, template and conversation.
//!
//! Nothing here may panic; the assertions are properties of every input.

use std::sync::LazyLock;

use super::bytes::Alphabet;
use super::chat::Message;
use super::parts::VocabParts;
use super::vocabulary::{Show, Special, Vocab};

/// Pre-tokenizers to choose from, one of each rule and one unknown.
const PRES: [&str; 5] = ["bailingmoe", "qwen2", "llama-bpe", "gpt-2", "none"];

/// Builds a vocabulary of `data` and encodes and decodes a text of it.
///
/// Fields end in a zero byte: choices (first byte: pre-tokenizer, second: whether every byte has
/// a token, third: a special id), tokens and merges one a line, token types a byte each, text.
pub fn tokenizer(data: &[u8]) {
    let mut fields = data.splitn(5, |&byte| byte == 0);
    let mut field = || fields.next().unwrap_or_default();
    let lines = |field: &[u8]| field.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    let choices = field();
    let choice = |index: usize| choices.get(index).copied().unwrap_or(1);
    let special = (choice(2) > 1).then(|| u32::from(choice(2)));
    let mut parts = VocabParts {
        model: "gpt2".into(),
        pre: Some(PRES[usize::from(choice(0)) % PRES.len()].into()),
        tokens: lines(field()),
        merges: lines(field()),
        token_types: field().iter().map(|&byte| i32::from(byte) % 8).collect(),
        bos_id: special,
        eos_id: special,
        ..VocabParts::default()
    };
    if choice(1) % 2 == 1 {
        parts.tokens.extend(byte_tokens());
        parts.token_types.resize(parts.tokens.len(), 1);
    }
    let text = String::from_utf8_lossy(field());
    let Ok(vocab) = Vocab::new(parts) else { return };
    for special in [Special::Parse, Special::AsText] {
        let Ok(ids) = vocab.encode(&text, special) else { continue };
        assert_eq!(vocab.decode(&ids, Show::All).as_deref(), Ok(text.as_bytes()));
        let control = ids.iter().any(|&id| vocab.is_control(id));
        assert!(!control || special == Special::Parse, "control tokens in plain text");
    }
}

/// Runs a template, the first field of `data`, over a conversation, the others.
///
/// Fields end in a zero byte; turns are the user's and the assistant's by turns.
pub fn template(data: &[u8]) {
    static PARTS: LazyLock<VocabParts> = LazyLock::new(chat_parts);
    let mut fields = data.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let source = fields.next().unwrap_or_default().into_owned();
    let roles = ["user", "assistant"].into_iter().cycle();
    let turn = |(content, role): (std::borrow::Cow<'_, str>, &str)| Message {
        role: role.into(),
        content: content.into_owned(),
    };
    let messages: Vec<Message> = fields.zip(roles).map(turn).collect();
    let parts = VocabParts { chat_template: Some(source.clone()), ..PARTS.clone() };
    let Ok(vocab) = Vocab::new(parts) else { return };
    if let Some(message) = messages.first() {
        contents(&message.content);
    }
    if vocab.render_chat(&messages).is_err() {
        return;
    }
    let ids = vocab.encode_chat(&messages);
    assert!(ids.is_ok(), "{ids:?}");
    let ids = ids.unwrap_or_default();
    check_back(&vocab, &messages, &ids);
    // Where the template writes no `<` of its own, none comes from it.
    let writes =
        source.trim().is_empty() || source.contains(['<', '\\', '%']) || source.contains("_token");
    let formats = source.contains("format") || source.contains("|e");
    if !writes && !formats {
        let marked = |id: &u32| vocab.token_bytes(*id).is_some_and(|text| text.starts_with(b"<|"));
        assert!(!ids.iter().any(|id| vocab.is_control(*id) && marked(id)), "{source}");
    }
}

/// Templates that cut, join and change a content `c`, and how many control tokens each writes
/// itself.
const NASTY: [(&str, usize); 18] = [
    ("{{ c }}{{ c }}", 0),
    ("{{ c[:5] }}{{ c[5:] }}{{ c[::-1][::-1] }}", 0),
    ("{{ c.replace('~', '') }}|{{ c | replace('x', '<') | replace('y', '>') }}", 0),
    ("{{ c.split('~') | join }}{{ c.split('<') | join('<') }}", 0),
    ("{% for x in c %}{{ x }}{% endfor %}", 0),
    ("{{ c | lower }}{{ c | upper | lower }}{{ c | reverse | reverse }}", 0),
    ("<|im{{ c }}end|><|{{ c }}|><{{ c }}>[{{ c }}]", 0),
    ("{{ '<|' ~ c ~ '|>' }}{{ '<' + c + '>' }}", 0),
    ("<|im_end|>{{ c }}<|im_end|>", 2),
    ("{{ c if c.endswith('<|end|>') else c ~ '-' }}", 0),
    ("{{ '<|end|>' in c }}{{ c.split('<|end|>') | join('<') }}", 0),
    ("{{ c | tojson }}{{ [c] }}{{ [c, c] | join }}", 0),
    ("<|{{ messages[0].role }}|>{{ c.strip('<|>') }}{{ c }}", 1),
    ("{{ c.partition('|')[0] ~ '|' ~ c.partition('|')[2] }}", 0),
    ("{% if '<' in c %}{{ c }}{% else %}{{ c ~ '<|end|' }}{% endif %}<|end|>", 1),
    ("{{ c | trim | title }}{{ c.swapcase().swapcase() }}{{ '%s|%s' % (c, c) }}", 0),
    ("{{ '{}{}'.format(c, c) }}{{ c * 2 }}{{ c.removeprefix('<') }}{{ c.rsplit('_', 1) }}", 0),
    ("<|n_{{ messages | length }}|>{{ '<|n_' ~ c ~ '|>' }}{{ c | indent }}", 1),
];

/// Runs every nasty template over a content: none makes a control token of it.
pub fn contents(content: &str) {
    static VOCABS: LazyLock<Vec<(Vocab, usize)>> = LazyLock::new(|| {
        let vocab = |(template, own): (&str, usize)| {
            let source = format!("{{% set c = messages[0].content %}}{template}");
            let parts = VocabParts { chat_template: Some(source), ..chat_parts() };
            Some((Vocab::new(parts).ok()?, own))
        };
        NASTY.into_iter().filter_map(vocab).collect()
    });
    assert_eq!(VOCABS.len(), NASTY.len());
    let messages = [Message::new("user", content)];
    for (vocab, own) in VOCABS.iter() {
        let ids = vocab.encode_chat(&messages);
        assert!(ids.is_ok(), "{ids:?}");
        let ids = ids.unwrap_or_default();
        let control = ids.iter().filter(|&&id| vocab.is_control(id)).count();
        assert!(control <= *own, "{control} control tokens of {content:?}");
        check_back(vocab, &messages, &ids);
    }
}

/// The ids are those of the rendered text, as far as that shows.
fn check_back(vocab: &Vocab, messages: &[Message], ids: &[u32]) {
    let normalized = |text: String| vocab.normalized(&text).into_owned();
    let text = vocab.render_chat(messages).map(normalized);
    assert_eq!(vocab.decode_text(ids, Show::All).map(normalized), text);
}

fn byte_tokens() -> impl Iterator<Item = Vec<u8>> {
    let alphabet = Alphabet::new();
    (0..=255).map(move |byte| alphabet.char_of(byte).to_string().into_bytes())
}

/// A vocabulary of single bytes and the tokens of ChatML.
fn chat_parts() -> VocabParts {
    let special = [
        "<|endoftext|>",
        "<|im_start|>",
        "<|im_end|>",
        "[X]",
        "<|end|>",
        "<|user|>",
        "</think>",
        "<|n_1|>",
    ];
    let special = special.into_iter().map(|text| text.as_bytes().to_vec());
    let tokens: Vec<Vec<u8>> = byte_tokens().chain(special).collect();
    let token_types = (0..tokens.len()).map(|id| if id < 256 { 1 } else { 3 }).collect();
    VocabParts {
        model: "gpt2".into(),
        pre: Some("qwen2".into()),
        architecture: "dream".into(),
        tokens,
        token_types,
        eos_id: Some(256),
        ..VocabParts::default()
    }
}
