//! Text from a file, made safe to print.

use std::fmt;

/// Characters of a name or string that are shown before it is cut.
const SHOWN_MAX: usize = 96;

/// `text` in double quotes, control and format characters escaped, cut after 96 characters.
pub fn quoted(text: &str) -> impl fmt::Display + '_ {
    Quoted(text)
}

/// Bytes that should be UTF-8, shown as [`quoted`] shows text; invalid parts become U+FFFD.
pub fn quoted_bytes(bytes: &[u8]) -> String {
    // Four bytes a character and some more, so that the cut below is still seen.
    let shown = &bytes[..bytes.len().min(4 * SHOWN_MAX + 8)];
    quoted(&String::from_utf8_lossy(shown)).to_string()
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        f.write_str("\"")?;
        for c in chars.by_ref().take(SHOWN_MAX) {
            write!(f, "{}", Escaped(c))?;
        }
        f.write_str(if chars.next().is_some() { "\"..." } else { "\"" })
    }
}

struct Escaped(char);

impl fmt::Display for Escaped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // The only one that escape_debug escapes without need.
            '\'' => f.write_str("'"),
            // Bidirectional overrides and isolates reorder what follows them on the line.
            c @ ('\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                write!(f, "{}", c.escape_unicode())
            }
            c => write!(f, "{}", c.escape_debug()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let shown = quoted("a\u{1b}[31m\n\u{7f}\u{9b}\"\u{202e}é'").to_string();
        assert_eq!(shown, "\"a\\u{1b}[31m\\n\\u{7f}\\u{9b}\\\"\\u{202e}é'\"");
    }

    #[test]
    fn long_text_is_cut_and_said_to_be() {
        let shown = quoted(&"é".repeat(200)).to_string();
        assert_eq!(shown, format!("\"{}\"...", "é".repeat(SHOWN_MAX)));
        assert_eq!(quoted_bytes(&[b'x'; 1000]), format!("\"{}\"...", "x".repeat(SHOWN_MAX)));
        assert_eq!(quoted_bytes(b"ab\xff"), "\"ab\u{fffd}\"");
    }
}
