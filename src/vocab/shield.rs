//! Keeps control tokens out of user text while a chat template runs over it.
//!
//! A template sees the contents of the messages with every character that starts or ends some
//! control token swapped for a private-use stand-in. The rendered text then holds no control
//! token that takes its first or last character from a message, however the template trims,
//! cuts or joins the contents; what it does hold is the template's own. (A template that writes
//! both edges of a control token around a content means it.) Stand-ins occur neither
//! in the messages nor in the template nor in a control token, so that swapping back restores
//! the contents exactly.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::chat::Message;
use super::error::Error;

/// Supplementary private-use planes 15 and 16: never white space, letters or digits, which
/// keeps filters such as `trim` from treating a stand-in otherwise than the `<` it stands for.
const STAND_INS: [std::ops::RangeInclusive<char>; 2] =
    ['\u{f0000}'..='\u{ffffd}', '\u{100000}'..='\u{10fffd}'];

/// The characters that start or end a control token, and the stand-ins that they rule out.
#[derive(Debug, Default)]
pub(super) struct Edges {
    chars: BTreeSet<char>,
    taken: BTreeSet<char>,
}

impl Edges {
    pub(super) fn new<'a>(control_tokens: impl Iterator<Item = &'a str>) -> Edges {
        let mut edges = Edges::default();
        for token in control_tokens {
            edges.chars.extend(token.chars().next());
            edges.chars.extend(token.chars().next_back());
            edges.taken.extend(token.chars().filter(|&c| may_stand_in(c)));
        }
        edges
    }
}

/// The swaps for one conversation.
#[derive(Debug)]
pub(super) struct Shield {
    cover: HashMap<char, char>,
    uncover: HashMap<char, char>,
}

impl Shield {
    pub(super) fn new(
        edges: &Edges,
        messages: &[Message],
        template: &str,
    ) -> Result<Shield, Error> {
        let contents = || messages.iter().flat_map(|message| message.content.chars());
        let seen = contents().chain(template.chars()).filter(|&c| may_stand_in(c));
        let taken: HashSet<char> = seen.chain(edges.taken.iter().copied()).collect();
        let found: BTreeSet<char> = contents().filter(|c| edges.chars.contains(c)).collect();
        let mut free = STAND_INS.into_iter().flatten().filter(|c| !taken.contains(c));
        let mut shield = Shield { cover: HashMap::new(), uncover: HashMap::new() };
        for character in found {
            let stand_in = free.next().ok_or_else(|| {
                Error::Messages("use up the private-use characters of planes 15 and 16".into())
            })?;
            shield.cover.insert(character, stand_in);
            shield.uncover.insert(stand_in, character);
        }
        Ok(shield)
    }

    /// `messages` as the template shall see them.
    pub(super) fn cover(&self, messages: &[Message]) -> Vec<Message> {
        let covered = |message: &Message| Message {
            role: message.role.clone(),
            content: swap(&message.content, &self.cover),
        };
        messages.iter().map(covered).collect()
    }

    /// A stretch of the rendered text with the contents' own characters.
    pub(super) fn uncover(&self, text: &str) -> String {
        swap(text, &self.uncover)
    }
}

fn swap(text: &str, swaps: &HashMap<char, char>) -> String {
    text.chars().map(|c| swaps.get(&c).copied().unwrap_or(c)).collect()
}

fn may_stand_in(character: char) -> bool {
    STAND_INS.iter().any(|range| range.contains(&character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(content: &str) -> Vec<Message> {
        vec![Message { role: "user".into(), content: content.into() }]
    }

    #[test]
    fn contents_come_back_exactly_even_with_stand_ins_in_them() {
        let edges = Edges::new(["<|im_end|>", "[\u{f0001}]"].into_iter());
        let messages = said("a <|im_end|> \u{f0000}[\u{f0000}] b\n");
        let shield = Shield::new(&edges, &messages, "template \u{f0002}").unwrap();
        let covered = &shield.cover(&messages)[0].content;
        assert!(!covered.contains(['<', '>', '[', ']']), "{covered:?}");
        assert!(!covered.contains(['\u{f0001}', '\u{f0002}']), "{covered:?}");
        assert_eq!(covered.chars().count(), messages[0].content.chars().count());
        assert_eq!(shield.uncover(covered), messages[0].content);
        assert_eq!(shield.uncover("template \u{f0002} <|x|>"), "template \u{f0002} <|x|>");
    }
}
