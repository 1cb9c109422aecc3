//! What a prompt is, and its token ids. In its text `[[n]]` may stand for n tokens to fill in
//! place.

use crate::denoise::CANVAS_MAX;
use crate::error::Error;
use crate::vocab::{Message, Special, Vocab};

/// What a canvas begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// Token ids as they are; the mask token among them is a hole.
    Ids(Vec<u32>),
    /// Text as it is, after a BOS where the file asks for one.
    Text {
        /// The text.
        text: String,
        /// Whether control tokens written in it are tokens.
        special: Special,
    },
    /// Turns of a conversation, for the chat template.
    Chat(Vec<Message>),
}

impl Prompt {
    /// The user's turn of a new conversation.
    pub fn user(content: &str) -> Prompt {
        Prompt::Chat(vec![Message::new("user", content)])
    }

    /// The token ids; with a `mask`, `[[n]]` in the text stands for n of it.
    ///
    /// # Errors
    /// A text or conversation that cannot be encoded, a hole of no token or of more than any canvas
    /// has.
    pub fn encode(&self, vocab: &Vocab, mask: Option<u32>) -> Result<Vec<u32>, Error> {
        match (self, mask) {
            (Prompt::Ids(ids), _) => Ok(ids.clone()),
            (Prompt::Text { text, special }, None) => Ok(vocab.encode_prompt(text, *special)?),
            (Prompt::Text { text, special }, Some(mask)) => holes(vocab, text, *special, mask),
            (Prompt::Chat(turns), None) => Ok(vocab.encode_chat(turns)?),
            (Prompt::Chat(turns), Some(mask)) => chat(vocab, turns, mask),
        }
    }
}

/// The contents of turns that have holes.
pub(super) fn turns_with_holes(prompt: &Prompt) -> Result<Vec<String>, Error> {
    let Prompt::Chat(turns) = prompt else { return Ok(Vec::new()) };
    let mut contents = Vec::new();
    for Message { content, .. } in turns {
        if pieces(content)?.len() > 1 {
            contents.push(content.clone());
        }
    }
    Ok(contents)
}

/// Contents of turns, a line between two, with the texts that their holes were filled with. Holes
/// that follow each other are one.
pub(super) fn filled<'a>(
    contents: &[String],
    mut texts: impl Iterator<Item = &'a str>,
) -> Result<String, Error> {
    let mut lines = Vec::new();
    for content in contents {
        let (mut line, mut is_in_hole) = (String::new(), false);
        for piece in pieces(content)? {
            match piece {
                Piece::Hole(_) if is_in_hole => {}
                Piece::Hole(_) => line.push_str(texts.next().unwrap_or_default()),
                Piece::Text(text) => line.push_str(text),
            }
            is_in_hole = matches!(piece, Piece::Hole(_)) || is_in_hole && piece == Piece::Text("");
        }
        lines.push(line);
    }
    Ok(lines.join("\n"))
}

fn holes(vocab: &Vocab, text: &str, special: Special, mask: u32) -> Result<Vec<u32>, Error> {
    let mut ids = Vec::new();
    for (index, piece) in pieces(text)?.into_iter().enumerate() {
        match piece {
            // The first piece is a text, if an empty one; a BOS comes before it.
            Piece::Text(text) if index == 0 => ids = vocab.encode_prompt(text, special)?,
            Piece::Text(text) => ids.extend(vocab.encode(text, special)?),
            Piece::Hole(count) => ids.extend(std::iter::repeat_n(mask, count)),
        }
    }
    Ok(ids)
}

fn chat(vocab: &Vocab, turns: &[Message], mask: u32) -> Result<Vec<u32>, Error> {
    // The model's own turn that has holes is the one being written: the template opens it, and
    // nothing closes it.
    if let Some((last, before)) = turns.split_last()
        && last.role == "assistant"
        && let pieces = pieces(&last.content)?
        && pieces.len() > 1
    {
        let mut ids = match before {
            [] => {
                return Err(Error::Hole(
                    "the first turn is the assistant's: put another before it".into(),
                ));
            }
            before => chat(vocab, before, mask)?,
        };
        for piece in pieces {
            match piece {
                Piece::Text(text) => ids.extend(vocab.encode_normalized(text, Special::AsText)?),
                Piece::Hole(count) => ids.extend(std::iter::repeat_n(mask, count)),
            }
        }
        return Ok(ids);
    }
    let marker = ('\u{e000}'..='\u{f8ff}')
        .find(|marker| turns.iter().all(|turn| !turn.content.contains(*marker)))
        .ok_or_else(|| Error::Hole("the messages use every private-use character".into()))?;
    let mut marked = turns.to_vec();
    for turn in &mut marked {
        turn.content = mark(&turn.content, marker)?;
    }
    Ok(vocab.encode_chat_holes(&marked, marker, mask)?)
}

/// A text with each hole as so many times `marker`.
fn mark(text: &str, marker: char) -> Result<String, Error> {
    let mut marked = String::new();
    for piece in pieces(text)? {
        match piece {
            Piece::Text(text) => marked.push_str(text),
            Piece::Hole(count) => marked.extend(std::iter::repeat_n(marker, count)),
        }
    }
    Ok(marked)
}

/// A piece of a text with holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    /// So many masks.
    Hole(usize),
}

/// Cuts a text at its holes. Brackets around anything but digits are text.
fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Error> {
    let mut pieces = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(open) = text[from..].find("[[").map(|at| from + at) {
        let digits = text[open + 2..].bytes().take_while(u8::is_ascii_digit).count();
        let end = open + 2 + digits;
        if digits == 0 || !text[end..].starts_with("]]") {
            from = open + 1;
            continue;
        }
        pieces.push(Piece::Text(&text[start..open]));
        pieces.push(Piece::Hole(size(&text[open + 2..end])?));
        (start, from) = (end + 2, end + 2);
    }
    pieces.push(Piece::Text(&text[start..]));
    Ok(pieces)
}

fn size(digits: &str) -> Result<usize, Error> {
    let count = digits.parse().unwrap_or(usize::MAX);
    if (1..=CANVAS_MAX as usize).contains(&count) {
        return Ok(count);
    }
    let shown: String = digits.chars().take(20).collect();
    Err(Error::Hole(format!("hole [[{shown}]] must be of 1 to {CANVAS_MAX} tokens")))
}

#[cfg(test)]
mod tests {
    use super::Piece::{Hole, Text};
    use super::*;

    #[test]
    fn holes_are_cut_out() {
        assert_eq!(pieces("a[[3]]b").unwrap(), [Text("a"), Hole(3), Text("b")]);
        assert_eq!(
            pieces("[[1]][[12]]").unwrap(),
            [Text(""), Hole(1), Text(""), Hole(12), Text("")]
        );
        assert_eq!(pieces("[[[2]]]").unwrap(), [Text("["), Hole(2), Text("]")]);
        assert_eq!(mark("é[[2]]!", '#').unwrap(), "é##!");
    }

    #[test]
    fn holes_are_filled_in_order() {
        let contents = ["a[[2]] b[[1]][[3]]c".to_owned(), "[[1]]".to_owned()];
        let text = filled(&contents, ["X", "Y", "Z"].into_iter()).unwrap();
        assert_eq!(text, "aX bYc\nZ");
    }

    #[test]
    fn other_brackets_are_text() {
        for text in ["", "[[]]", "[[x]]", "[[ 3 ]]", "[[3]", "[3]]", "[[-1]]", "[["] {
            assert_eq!(pieces(text).unwrap(), [Text(text)]);
        }
    }

    #[test]
    fn impossible_holes_are_refused() {
        for text in ["[[0]]", "[[1048577]]", "[[99999999999999999999999]]"] {
            assert!(pieces(text).is_err(), "{text}");
        }
    }
}
