//! Tokens that are found in a text as they are written, before it is cut into words.

use aho_corasick::{AhoCorasick, MatchKind};

use super::error::Error;

/// Finds a set of tokens in a text: the leftmost first, of those that start together the longest.
#[derive(Debug)]
pub(super) struct Finder {
    automaton: Option<AhoCorasick>,
    ids: Vec<u32>,
    texts: Vec<String>,
}

impl Finder {
    /// `tokens` in id order; empty ones are never found, of duplicates the first is.
    pub(super) fn new<'a>(tokens: impl Iterator<Item = (u32, &'a str)>) -> Result<Finder, Error> {
        let (mut ids, mut texts) = (Vec::new(), Vec::new());
        for (id, text) in tokens.filter(|(_, text)| !text.is_empty()) {
            ids.push(id);
            texts.push(text.to_owned());
        }
        if texts.is_empty() {
            return Ok(Finder { automaton: None, ids, texts: Vec::new() });
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&texts)
            .map_err(|error| Error::Library(error.to_string()))?;
        Ok(Finder { automaton: Some(automaton), ids, texts })
    }

    /// The id of the token that is written exactly `text`.
    pub(super) fn id_of(&self, text: &str) -> Option<u32> {
        let found = self.automaton.as_ref()?.find(text)?;
        let whole = found.start() == 0 && found.end() == text.len();
        whole.then(|| self.ids[found.pattern().as_usize()])
    }

    /// What the tokens are written as.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    /// Where tokens stand in `text`.
    pub(super) fn ranges(&self, text: &str) -> Vec<std::ops::Range<usize>> {
        let found = self.automaton.iter().flat_map(|automaton| automaton.find_iter(text));
        found.map(|found| found.range()).collect()
    }

    /// Appends the ids of the tokens in `text`; `encode` appends those of the text between them,
    /// which is never empty.
    pub(super) fn split(
        &self,
        text: &str,
        ids: &mut Vec<u32>,
        mut encode: impl FnMut(&str, &mut Vec<u32>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut start = 0;
        for found in self.automaton.iter().flat_map(|automaton| automaton.find_iter(text)) {
            if start < found.start() {
                encode(&text[start..found.start()], ids)?;
            }
            ids.push(self.ids[found.pattern().as_usize()]);
            start = found.end();
        }
        if start < text.len() {
            encode(&text[start..], ids)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leftmost_then_the_longest_is_found() {
        let tokens = [(5, "<a>"), (6, ""), (7, "<a><b>"), (8, "<a>"), (9, "é")];
        let finder = Finder::new(tokens.into_iter()).unwrap();
        let (mut ids, mut texts) = (Vec::new(), Vec::new());
        let between = |text: &str, ids: &mut Vec<u32>| {
            ids.push(99);
            texts.push(text.to_owned());
            Ok(())
        };
        finder.split("x<a>é<a><b><a", &mut ids, between).unwrap();
        assert_eq!((ids, texts), (vec![99, 5, 9, 7, 99], vec!["x".to_owned(), "<a".to_owned()]));
    }
}
