//! A place in a part's bytes that moves only over bytes that are there.

use std::fmt;

use super::error::Error;

/// What names a thing in an error; formatted only when there is one.
pub trait What: fmt::Display + Copy {}

impl<T: fmt::Display + Copy> What for T {}

/// Reads little-endian values one after the other; a read past the end is an
/// [`Error::Truncated`] that names what was read.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at byte `at` of `bytes`, or at their end if that is earlier.
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at: at.min(bytes.len()) }
    }

    /// Offset of the next byte.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Bytes from here to the end.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `count` bytes; `what` names them in the error.
    pub fn take(&mut self, count: u64, what: impl What) -> Result<&'a [u8], Error> {
        let (at, has) = (self.at, self.left());
        let truncated =
            || Error::Truncated { what: what.to_string(), at, needs: count, has: has as u64 };
        let len = usize::try_from(count).map_err(|_| truncated())?;
        let taken = self.bytes[self.at..].get(..len).ok_or_else(truncated)?;
        self.at += len;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self, what: impl What) -> Result<[u8; N], Error> {
        let taken = self.take(N as u64, what)?;
        let mut array = [0; N];
        array.copy_from_slice(taken);
        Ok(array)
    }

    /// The next 32-bit number.
    pub fn u32(&mut self, what: impl What) -> Result<u32, Error> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// The next 64-bit number.
    pub fn u64(&mut self, what: impl What) -> Result<u64, Error> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// The next 64-bit number, which counts something and is at most `max`.
    pub fn count(&mut self, max: u64, what: impl What) -> Result<u64, Error> {
        let at = self.at;
        let found = self.u64(what)?;
        if found > max {
            return Err(Error::TooLarge { what: what.to_string(), at, found, max });
        }
        Ok(found)
    }

    /// The next string: a 64-bit length, then as many bytes; at most `max` of them.
    pub fn string(&mut self, max: u64, what: impl What) -> Result<&'a [u8], Error> {
        let at = self.at;
        let found = self.u64(what)?;
        if found > max {
            let what = format!("length of the {what}");
            return Err(Error::TooLarge { what, at, found, max });
        }
        self.take(found, what)
    }

    /// The next string as a name: UTF-8 and not empty.
    pub fn name(&mut self, max: u64, what: impl What) -> Result<&'a str, Error> {
        let at = self.at;
        match std::str::from_utf8(self.string(max, what)?) {
            Ok(name) if !name.is_empty() => Ok(name),
            _ => Err(Error::Name { what: what.to_string(), at }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stop_at_the_end_and_say_where() {
        let bytes = [1, 0, 0, 0, 9];
        let mut cursor = Cursor::new(&bytes, 0);
        assert_eq!(cursor.u32("count"), Ok(1));
        let error = Error::Truncated { what: "size".into(), at: 4, needs: 8, has: 1 };
        assert_eq!(cursor.u64("size"), Err(error));
        assert_eq!(cursor.take(1, "tail"), Ok(&[9][..]));
        assert_eq!(cursor.left(), 0);
        assert_eq!(Cursor::new(&bytes, 99).left(), 0);
    }

    #[test]
    fn a_string_longer_than_the_file_or_the_cap_is_refused() {
        let mut bytes = 5u64.to_le_bytes().to_vec();
        bytes.extend(b"abcd");
        let short = Cursor::new(&bytes, 0).string(10, "name").unwrap_err();
        assert!(short.to_string().contains("needs 5 bytes, 4 are there"), "{short}");
        let long = Cursor::new(&bytes, 0).string(4, "name").unwrap_err();
        let expected = "the length of the name at byte 0 is 5; at most 4 is accepted";
        assert_eq!(long.to_string(), expected);
        let huge = u64::MAX.to_le_bytes();
        assert!(Cursor::new(&huge, 0).string(u64::MAX, "name").is_err());
    }
}
