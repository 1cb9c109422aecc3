//! Ids to bytes, and which tokens are control tokens.

use std::collections::HashSet;

use super::VocabParts;
use super::bytes::Alphabet;

/// `tokenizer.ggml.token_type` values, as in the GGUF specification.
const TYPE_NORMAL: i32 = 1;
const TYPE_UNKNOWN: i32 = 2;
const TYPE_CONTROL: i32 = 3;
const TYPE_USER_DEFINED: i32 = 4;
const TYPE_UNUSED: i32 = 5;
const TYPE_BYTE: i32 = 6;

/// Tokens that end a text or a turn, by the names that published models give them.
pub(super) const END_NAMES: [&str; 6] =
    ["<|endoftext|>", "<|eot_id|>", "<|im_end|>", "<|role_end|>", "<|end_of_text|>", "<|end|>"];

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Made by merging.
    Text,
    /// Found as written in any text: an added word, no control token.
    Defined,
    /// Structure: found as written only where control tokens are looked for.
    Control,
    /// Padding of the vocabulary.
    Unused,
}

/// The kind of token `id`. Beside those that the file types so, a control token is one that the
/// file types as text or as user-defined, but that it names as a special token or writes like
/// one: user text must not be able to form it.
fn kind_of(parts: &VocabParts, id: usize) -> Kind {
    let text = &parts.tokens[id];
    let marker = is_marker(text);
    let special = [parts.bos_id, parts.eos_id, parts.eot_id, parts.mask_id, parts.pad_id];
    let named = special.contains(&Some(id as u32))
        || END_NAMES.iter().any(|name| name.as_bytes() == text.as_slice());
    match parts.token_types.get(id).copied().unwrap_or(TYPE_NORMAL) {
        TYPE_CONTROL | TYPE_UNKNOWN => Kind::Control,
        TYPE_USER_DEFINED if marker || named => Kind::Control,
        TYPE_USER_DEFINED => Kind::Defined,
        _ if marker && named => Kind::Control,
        TYPE_UNUSED => Kind::Unused,
        _ => Kind::Text,
    }
}

/// The kind of every token. One that the file types as added or unused, but that merging makes
/// from bytes that it does not say as written, is text: else what it was made from would not come
/// back. With `whole_words`, every spelling of a word is made without merging.
pub(super) fn kinds_of(parts: &VocabParts, whole_words: bool) -> Vec<Kind> {
    let alphabet = Alphabet::new();
    let mut kinds: Vec<Kind> = (0..parts.tokens.len()).map(|id| kind_of(parts, id)).collect();
    let mut merged: Option<HashSet<Vec<u8>>> = None;
    let mut spelled = Vec::new();
    for (kind, token) in kinds.iter_mut().zip(&parts.tokens) {
        let Ok(text) = std::str::from_utf8(token) else { continue };
        spelled.clear();
        let as_written = !alphabet.unspell(text, &mut spelled) || spelled == *token;
        if !matches!(kind, Kind::Defined | Kind::Unused) || text.is_empty() || as_written {
            continue;
        }
        let is_made = whole_words
            || text.chars().nth(1).is_none()
            || merged.get_or_insert_with(|| results(&parts.merges)).contains(token);
        if is_made {
            *kind = Kind::Text;
        }
    }
    kinds
}

/// What the merges give.
fn results(merges: &[Vec<u8>]) -> HashSet<Vec<u8>> {
    let join = |merge: &Vec<u8>| merge.iter().copied().filter(|byte| *byte != b' ').collect();
    merges.iter().map(join).collect()
}

/// The bytes of every token, one after the other.
#[derive(Debug, Default)]
pub(super) struct Table {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    kinds: Vec<Kind>,
}

impl Table {
    /// `unspell` turns the byte-level spelling of a token into its bytes, false if it is none.
    pub(super) fn new(
        parts: &VocabParts,
        kinds: Vec<Kind>,
        unspell: impl Fn(&str, &mut Vec<u8>) -> bool,
    ) -> Table {
        let mut table = Table { kinds, ..Table::default() };
        for (id, token) in parts.tokens.iter().enumerate() {
            let is_byte = parts.token_types.get(id) == Some(&TYPE_BYTE);
            let byte = byte_named(token).filter(|_| is_byte);
            let text = std::str::from_utf8(token).ok().filter(|_| table.kinds[id] == Kind::Text);
            if let Some(byte) = byte {
                table.bytes.push(byte);
            } else if !text.is_some_and(|text| unspell(text, &mut table.bytes)) {
                table.bytes.extend_from_slice(token);
            }
            table.ends.push(table.bytes.len());
        }
        table
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of token `id`.
    pub(super) fn bytes(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        let end = *self.ends.get(id)?;
        let start = id.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }

    pub(super) fn kind(&self, id: u32) -> Option<Kind> {
        self.kinds.get(id as usize).copied()
    }
}

/// Whether a token is written as markup: `<|...|>`, or the same with full-width bars.
fn is_marker(token: &[u8]) -> bool {
    let inner = |open: &str, close: &str| {
        let rest = token.strip_prefix(open.as_bytes());
        rest.and_then(|rest| rest.strip_suffix(close.as_bytes())).is_some_and(|i| !i.is_empty())
    };
    inner("<|", "|>") || inner("<\u{ff5c}", "\u{ff5c}>")
}

/// The byte of a token written `<0xAB>`.
fn byte_named(token: &[u8]) -> Option<u8> {
    let digits = token.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 2)?;
    u8::from_str_radix(digits, 16).ok()
}
