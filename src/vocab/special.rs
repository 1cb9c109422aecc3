//! Tokens that are found in a text as they are written, before it is cut into words.

use aho_corasick::{AhoCorasick, MatchKind};

use super::Fault;

/// A stretch of text, cut at the tokens that were looked for.
pub(super) enum Piece<'a> {
    Token(u32),
    Text(&'a str),
}

/// Finds a set of tokens in a text: the leftmost first, of those that start together the longest.
#[derive(Debug)]
pub(super) struct Finder {
    automaton: Option<AhoCorasick>,
    ids: Vec<u32>,
}

impl Finder {
    /// `tokens` in id order; empty ones are never found, of equal ones the first is.
    pub(super) fn new<'a>(tokens: impl Iterator<Item = (u32, &'a str)>) -> Result<Finder, Fault> {
        let (mut ids, mut texts) = (Vec::new(), Vec::new());
        for (id, text) in tokens.filter(|(_, text)| !text.is_empty()) {
            ids.push(id);
            texts.push(text);
        }
        if texts.is_empty() {
            return Ok(Finder { automaton: None, ids });
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&texts)
            .map_err(|error| Fault::Library(error.to_string()))?;
        Ok(Finder { automaton: Some(automaton), ids })
    }

    /// The id of the token that is written exactly `text`.
    pub(super) fn id_of(&self, text: &str) -> Option<u32> {
        let found = self.automaton.as_ref()?.find(text)?;
        let whole = found.start() == 0 && found.end() == text.len();
        whole.then(|| self.ids[found.pattern().as_usize()])
    }

    /// Cuts `text`; no piece of text is empty.
    pub(super) fn split<'a>(
        &self,
        text: &'a str,
        mut each: impl FnMut(Piece<'a>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut start = 0;
        for found in self.automaton.iter().flat_map(|automaton| automaton.find_iter(text)) {
            if start < found.start() {
                each(Piece::Text(&text[start..found.start()]))?;
            }
            each(Piece::Token(self.ids[found.pattern().as_usize()]))?;
            start = found.end();
        }
        if start < text.len() {
            each(Piece::Text(&text[start..]))?;
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
        let mut seen = Vec::new();
        finder
            .split("x<a>é<a><b><a", |piece| {
                seen.push(match piece {
                    Piece::Token(id) => id.to_string(),
                    Piece::Text(text) => text.to_owned(),
                });
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, ["x", "5", "9", "7", "<a"]);
    }
}
