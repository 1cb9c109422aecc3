//! Ids to bytes, and which tokens are control tokens.

use std::collections::HashSet;

use super::bytes::Alphabet;
use super::parts::VocabParts;
use dllm_arena::{ByteTable, TableFull};

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
pub(super) enum TokenKind {
    /// Made by merging.
    Text,
    /// An added word: found in any text as it is written.
    Defined,
    /// Structure: found in a text only where control tokens are parsed.
    Control,
    /// Padding of the vocabulary.
    Unused,
}

/// The kind of token `id`. A token that the file types as text or as user-defined is a control
/// token all the same if the file names it as a special token or writes it like one: user text
/// must not be able to form it.
fn kind_of(parts: &VocabParts, id: usize) -> TokenKind {
    let text = &parts.tokens[id];
    let marker = is_marker(text);
    let special = [parts.bos_id, parts.eos_id, parts.eot_id, parts.mask_id, parts.pad_id];
    let named = special.contains(&Some(id as u32))
        || END_NAMES.iter().any(|name| name.as_bytes() == text.as_slice());
    match parts.token_types.get(id).copied().unwrap_or(TYPE_NORMAL) {
        TYPE_CONTROL | TYPE_UNKNOWN => TokenKind::Control,
        TYPE_USER_DEFINED if marker || named => TokenKind::Control,
        TYPE_USER_DEFINED => TokenKind::Defined,
        _ if marker && named => TokenKind::Control,
        TYPE_UNUSED => TokenKind::Unused,
        _ => TokenKind::Text,
    }
}

/// The kind of every token. A token that the file types as user-defined or unused is text if
/// merging can give it and its byte-level spelling differs from it as written: otherwise decoding
/// would not give back the bytes that it was made from. With `whole_words`, every token that
/// spells a word can be given without merging.
pub(super) fn kinds_of(parts: &VocabParts, whole_words: bool) -> Vec<TokenKind> {
    let alphabet = Alphabet::new();
    let mut kinds: Vec<TokenKind> = (0..parts.tokens.len()).map(|id| kind_of(parts, id)).collect();
    let mut merged: Option<HashSet<Vec<u8>>> = None;
    let mut spelled = Vec::new();
    for (kind, token) in kinds.iter_mut().zip(&parts.tokens) {
        let Ok(text) = std::str::from_utf8(token) else { continue };
        spelled.clear();
        let as_written = !alphabet.unspell(text, &mut spelled) || spelled == *token;
        if !matches!(kind, TokenKind::Defined | TokenKind::Unused) || text.is_empty() || as_written
        {
            continue;
        }
        let is_made = whole_words
            || text.chars().nth(1).is_none()
            || merged.get_or_insert_with(|| results(&parts.merges)).contains(token);
        if is_made {
            *kind = TokenKind::Text;
        }
    }
    kinds
}

/// What the merges give.
fn results(merges: &[Vec<u8>]) -> HashSet<Vec<u8>> {
    let join = |merge: &Vec<u8>| merge.iter().copied().filter(|byte| *byte != b' ').collect();
    merges.iter().map(join).collect()
}

/// The bytes and the kind of every token.
#[derive(Debug)]
pub(super) struct TokenTable {
    strings: ByteTable,
    kinds: Vec<TokenKind>,
}

impl TokenTable {
    /// `unspell` turns the byte-level spelling of a token into its bytes, false if it is none.
    pub(super) fn new(
        parts: &VocabParts,
        kinds: Vec<TokenKind>,
        unspell: impl Fn(&str, &mut Vec<u8>) -> bool,
    ) -> Result<TokenTable, TableFull> {
        let token_bytes: usize = parts.tokens.iter().map(Vec::len).sum();
        // Blocks double, a byte-level spelling is never shorter than its bytes, and the ends of
        // blocks stay unused.
        let mut strings = ByteTable::new(3 * token_bytes + (1 << 16));
        let mut bytes = Vec::new();
        for (id, (token, kind)) in parts.tokens.iter().zip(&kinds).enumerate() {
            let is_byte = parts.token_types.get(id) == Some(&TYPE_BYTE);
            let byte = byte_named(token).filter(|_| is_byte);
            let text = std::str::from_utf8(token).ok().filter(|_| *kind == TokenKind::Text);
            bytes.clear();
            if let Some(byte) = byte {
                bytes.push(byte);
            } else if !text.is_some_and(|text| unspell(text, &mut bytes)) {
                bytes.extend_from_slice(token);
            }
            strings.push(&bytes)?;
        }
        strings.seal();
        Ok(TokenTable { strings, kinds })
    }

    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// The bytes of token `id`.
    pub(super) fn bytes(&self, id: u32) -> Option<&[u8]> {
        ((id as usize) < self.len()).then(|| self.strings.get(id))
    }

    pub(super) fn kind(&self, id: u32) -> Option<TokenKind> {
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
