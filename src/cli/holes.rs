//! Holes in a prompt's text: `[[n]]` stands for n tokens to fill in place.

use crate::cli::failure::Failure;
use dllm_rt::denoise::CANVAS_MAX;

/// A piece of a text with holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text as it is.
    Text(&'a str),
    /// So many masks.
    Hole(usize),
}

/// Cuts a text at its holes. Brackets around anything but digits are text.
///
/// # Errors
/// A hole of no token, or of more than any canvas has.
pub fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Failure> {
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

/// A text with its holes as so many times `marker`.
///
/// # Errors
/// As [`pieces`].
pub fn marked(text: &str, marker: char) -> Result<String, Failure> {
    let mut marked = String::new();
    for piece in pieces(text)? {
        match piece {
            Piece::Text(text) => marked.push_str(text),
            Piece::Hole(count) => marked.extend(std::iter::repeat_n(marker, count)),
        }
    }
    Ok(marked)
}

fn size(digits: &str) -> Result<usize, Failure> {
    let count = digits.parse().unwrap_or(usize::MAX);
    if (1..=CANVAS_MAX as usize).contains(&count) {
        return Ok(count);
    }
    let shown: String = digits.chars().take(20).collect();
    Err(Failure::Hole(format!("hole [[{shown}]] must be of 1 to {CANVAS_MAX} tokens")))
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
        assert_eq!(marked("é[[2]]!", '#').unwrap(), "é##!");
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
