//! Text from a file, made safe to print.

use std::fmt;

/// Characters of a name or string that are shown before it is cut.
const SHOWN_MAX: usize = 96;

/// `text` in double quotes, control and format characters escaped, cut after 96 characters.
pub fn quoted(text: &str) -> impl fmt::Display + '_ {
    Escaped { text, quote: "\"", chars_max: SHOWN_MAX }
}

/// `text` in double quotes, control and format characters escaped, all of it: a path is of use
/// only whole.
pub fn quoted_whole(text: &str) -> impl fmt::Display + '_ {
    Escaped { text, quote: "\"", chars_max: usize::MAX }
}

/// Bytes that should be UTF-8, shown as [`quoted`] shows text; invalid parts become U+FFFD.
pub fn quoted_bytes(bytes: &[u8]) -> String {
    // Four bytes a character and some more, so that the cut below is still seen.
    let shown = &bytes[..bytes.len().min(4 * SHOWN_MAX + 8)];
    quoted(&String::from_utf8_lossy(shown)).to_string()
}

/// `text` as [`quoted`] shows it, without the quotes.
pub fn plain(text: &str) -> impl fmt::Display + '_ {
    Escaped { text, quote: "", chars_max: SHOWN_MAX }
}

/// Whether `c` could move the cursor, start a terminal's control sequence or reorder the line.
pub fn is_hostile(c: char) -> bool {
    // Bidirectional marks, overrides and isolates are no control characters to Rust.
    let bidirectional =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || bidirectional
}

struct Escaped<'a> {
    text: &'a str,
    quote: &'static str,
    chars_max: usize,
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.text.char_indices().nth(self.chars_max).map(|(end, _)| end);
        f.write_str(self.quote)?;
        escape(&self.text[..cut.unwrap_or(self.text.len())], f)?;
        f.write_str(self.quote)?;
        f.write_str(if cut.is_some() { "..." } else { "" })
    }
}

fn escape(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for c in text.chars() {
        match c {
            // Never confusing, and common in prose.
            '\'' => f.write_str("'")?,
            c if is_hostile(c) && !c.is_control() => write!(f, "{}", c.escape_unicode())?,
            c => write!(f, "{}", c.escape_debug())?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let shown = quoted("a\u{1b}[31m\n\u{7f}\u{9b}\"\u{202e}é'").to_string();
        assert_eq!(plain("a\nb").to_string(), "a\\nb");
        assert_eq!(shown, "\"a\\u{1b}[31m\\n\\u{7f}\\u{9b}\\\"\\u{202e}é'\"");
    }

    #[test]
    fn long_text_is_cut_and_said_to_be() {
        let shown = quoted(&"é".repeat(200)).to_string();
        assert_eq!(shown, format!("\"{}\"...", "é".repeat(SHOWN_MAX)));
        assert_eq!(
            quoted_whole(&"é\n".repeat(90)).to_string(),
            format!("\"{}\"", "é\\n".repeat(90))
        );
        assert_eq!(quoted_bytes(&[b'x'; 1000]), format!("\"{}\"...", "x".repeat(SHOWN_MAX)));
        assert_eq!(quoted_bytes(b"ab\xff"), "\"ab\u{fffd}\"");
    }
}
