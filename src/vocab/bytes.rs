//! The byte-level alphabet: GPT-2 writes each byte as one printable character.
//!
//! Source: the published GPT-2 encoder. Bytes that print in Latin-1 stand for themselves; the
//! 68 others (controls, space, 0x7f to 0xa0, 0xad) become U+0100, U+0101, ... in byte order.

/// First character that stands for a byte that does not print.
const SHIFTED_FIRST: u32 = 0x100;
/// Bytes that do not print in Latin-1.
const SHIFTED_COUNT: usize = 68;

/// Both directions of the byte-level alphabet.
#[derive(Clone, Debug)]
pub(super) struct Alphabet {
    char_of: [char; 256],
    shifted: [u8; SHIFTED_COUNT],
}

impl Alphabet {
    pub(super) fn new() -> Alphabet {
        let mut alphabet = Alphabet { char_of: ['\0'; 256], shifted: [0; SHIFTED_COUNT] };
        let mut shifted_len = 0;
        for byte in 0..=255_u8 {
            alphabet.char_of[usize::from(byte)] = if prints(byte) {
                char::from(byte)
            } else {
                alphabet.shifted[shifted_len] = byte;
                let code = SHIFTED_FIRST + shifted_len as u32;
                shifted_len += 1;
                char::from_u32(code).unwrap_or('\0')
            };
        }
        alphabet
    }

    /// The character that stands for `byte`.
    pub(super) fn char_of(&self, byte: u8) -> char {
        self.char_of[usize::from(byte)]
    }

    /// The byte that `character` stands for, if it is in the alphabet.
    pub(super) fn byte_of(&self, character: char) -> Option<u8> {
        let code = u32::from(character);
        match u8::try_from(code) {
            Ok(byte) => prints(byte).then_some(byte),
            Err(_) => self.shifted.get((code - SHIFTED_FIRST) as usize).copied(),
        }
    }

    /// Appends the bytes that `text` spells; false (and nothing appended) if some character
    /// is not in the alphabet.
    pub(super) fn unspell(&self, text: &str, bytes: &mut Vec<u8>) -> bool {
        let start = bytes.len();
        for character in text.chars() {
            match self.byte_of(character) {
                Some(byte) => bytes.push(byte),
                None => {
                    bytes.truncate(start);
                    return false;
                }
            }
        }
        true
    }
}

fn prints(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_is_a_bijection_with_the_known_landmarks() {
        let alphabet = Alphabet::new();
        for byte in 0..=255_u8 {
            assert_eq!(alphabet.byte_of(alphabet.char_of(byte)), Some(byte));
        }
        assert_eq!(alphabet.char_of(b' '), '\u{120}');
        assert_eq!(alphabet.char_of(b'\n'), '\u{10a}');
        assert_eq!(alphabet.char_of(0xad), '\u{143}');
        assert_eq!(alphabet.byte_of(' '), None);
        assert_eq!(alphabet.byte_of('\u{144}'), None);
        assert_eq!(alphabet.byte_of('\u{10ffff}'), None);
    }
}
