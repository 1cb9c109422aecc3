//! Words to token ids: byte-level BPE over the file's tokens and merges.

use std::borrow::Cow;
use std::collections::HashSet;

use tokenizers::models::bpe::{BPE, Merges, Vocab as TokenMap};
use tokenizers::{Model, NormalizedString};

use super::bytes::Alphabet;
use super::error::Error;
use super::pre::Pre;

/// Cuts plain text into words and merges their bytes into tokens.
#[derive(Debug)]
pub(super) struct Words {
    pre: Pre,
    model: BPE,
    alphabet: Alphabet,
    /// Whether a token spells the byte alone.
    spelled: [bool; 256],
}

impl Words {
    /// `tokens` are those that merging may give, in id order; of duplicates the first is used.
    /// `merges` are `left right`. A merge that gives a control token is dropped: text never
    /// becomes control tokens.
    pub(super) fn new<'a>(
        pre: Pre,
        tokens: impl Iterator<Item = (u32, &'a str)>,
        merges: &[Vec<u8>],
        control: impl Fn(&str) -> bool,
    ) -> Result<Words, Error> {
        let mut map = TokenMap::default();
        for (id, token) in tokens {
            map.entry(token.to_owned()).or_insert(id);
        }
        let alphabet = Alphabet::new();
        let mut spelled = [false; 256];
        for byte in 0..=255_u8 {
            let mut buffer = [0; 4];
            let key: &str = alphabet.char_of(byte).encode_utf8(&mut buffer);
            spelled[usize::from(byte)] = map.contains_key(key);
        }
        let merges = checked_merges(merges, &map, control)?;
        let model = BPE::builder()
            .vocab_and_merges(map, merges)
            .ignore_merges(pre.whole_words())
            .build()
            .map_err(|error| Error::Library(error.to_string()))?;
        Ok(Words { pre, model, alphabet, spelled })
    }

    /// The bytes that `token` spells, appended to `bytes`.
    pub(super) fn unspell(&self, token: &str, bytes: &mut Vec<u8>) -> bool {
        self.alphabet.unspell(token, bytes)
    }

    /// `text` as the rule normalizes it.
    pub(super) fn normalized<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.pre.composes() || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut composed = NormalizedString::from(text);
        Cow::Owned(composed.nfc().get().to_owned())
    }

    /// Appends the ids of plain text, in which nothing is a control token.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), Error> {
        let mut spelling = String::new();
        let mut start = 0;
        while start < text.len() {
            let end = self.pre.word_end(text, start);
            spelling.clear();
            for &byte in &text.as_bytes()[start..end] {
                if !self.spelled[usize::from(byte)] {
                    return Err(Error::ByteMissing { byte });
                }
                spelling.push(self.alphabet.char_of(byte));
            }
            let word = self.model.tokenize(&spelling);
            let word = word.map_err(|error| Error::Library(error.to_string()))?;
            ids.extend(word.iter().map(|token| token.id));
            start = end;
        }
        Ok(())
    }
}

/// Splits and checks merges; of duplicates the first, the most preferred, is used.
fn checked_merges(
    merges: &[Vec<u8>],
    map: &TokenMap,
    control: impl Fn(&str) -> bool,
) -> Result<Merges, Error> {
    let mut checked = Merges::with_capacity(merges.len());
    let mut seen = HashSet::with_capacity(merges.len());
    let mut joined = String::new();
    for (index, merge) in merges.iter().enumerate() {
        // The first line of a merges file, which some converters keep.
        if index == 0 && merge.starts_with(b"#version:") {
            continue;
        }
        let flaw = |reason| {
            let text = String::from_utf8_lossy(merge).into_owned();
            Error::Merge { index, text, reason }
        };
        let text = std::str::from_utf8(merge).map_err(|_| flaw("is not UTF-8"))?;
        let (left, right) = text.split_once(' ').ok_or_else(|| flaw("has no space"))?;
        if left.is_empty() || right.is_empty() || right.contains(' ') {
            return Err(flaw("is not two tokens with one space between"));
        }
        joined.clear();
        joined.extend([left, right]);
        let reason = if !map.contains_key(left) || !map.contains_key(right) {
            Some("names a token that the vocabulary lacks")
        } else if !map.contains_key(&joined) {
            Some("gives a token that the vocabulary lacks")
        } else {
            None
        };
        match reason {
            Some(_) if [left, right, &joined].into_iter().any(&control) => {}
            Some(reason) => return Err(flaw(reason)),
            None if seen.insert(text) => checked.push((left.to_owned(), right.to_owned())),
            None => {}
        }
    }
    Ok(checked)
}
