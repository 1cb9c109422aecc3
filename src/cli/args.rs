//! Values of arguments. The parser reads `str`, so an argument that is not UTF-8 travels through
//! it in hexadecimal behind a NUL, which no argument can hold, and is restored where it is a path.

use argh::FromArgValue;
use dllm_rt::team::cpus;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// An argument as the parser may see it.
pub fn escape(arg: OsString) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    arg.into_string().unwrap_or_else(|raw| format!("\0{}", hex(raw.as_bytes())))
}

/// Whether [`escape`] had to change it.
pub fn is_escaped(arg: &str) -> bool {
    arg.starts_with('\0')
}

/// A message as one line that does nothing to a terminal.
pub fn one_line(message: &str) -> String {
    let words: Vec<&str> = message.split(char::is_control).filter(|w| !w.is_empty()).collect();
    words.join(" ")
}

/// The path of a file, in any encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePath(pub PathBuf);

impl FromArgValue for FilePath {
    fn from_arg_value(value: &str) -> Result<FilePath, String> {
        let Some(hex) = value.strip_prefix('\0') else {
            return if value.is_empty() {
                Err("is empty; give a path".into())
            } else {
                Ok(FilePath(value.into()))
            };
        };
        let byte = |pair: &[u8; 2]| {
            let digits = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(digits, 16).ok()
        };
        let bytes: Option<Vec<u8>> = hex.as_bytes().as_chunks::<2>().0.iter().map(byte).collect();
        let bytes = bytes.ok_or_else(|| String::from("holds a NUL"))?;
        Ok(FilePath(OsString::from_vec(bytes).into()))
    }
}

/// Text, which must be UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub String);

impl FromArgValue for Text {
    fn from_arg_value(value: &str) -> Result<Text, String> {
        if is_escaped(value) { Err("is not UTF-8".into()) } else { Ok(Text(value.into())) }
    }
}

/// Numbers separated by commas: token ids or positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids(pub Vec<u32>);

impl FromArgValue for Ids {
    fn from_arg_value(value: &str) -> Result<Ids, String> {
        if value.trim().is_empty() {
            return Ok(Ids::default());
        }
        let number = |(at, item): (usize, &str)| {
            let shown: String = item.trim().chars().take(40).collect();
            let wrong = format!("item {} (`{}`)", at + 1, one_line(&shown));
            item.trim()
                .parse()
                .map_err(|_| format!("{wrong} is no number from 0 to 4294967295; write `1,2,3`"))
        };
        value.split(',').enumerate().map(number).collect::<Result<_, _>>().map(Ids)
    }
}

/// CPU numbers and ranges, like `0,2-5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(pub Vec<usize>);

impl FromArgValue for Cpus {
    fn from_arg_value(value: &str) -> Result<Cpus, String> {
        cpus::parse_list(value).map(Cpus)
    }
}

/// `auto`, `on` or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockMode(pub dllm_rt::Lock);

impl FromArgValue for LockMode {
    fn from_arg_value(value: &str) -> Result<LockMode, String> {
        use dllm_rt::Lock;
        match value {
            "auto" => Ok(LockMode(Lock::Auto)),
            "on" => Ok(LockMode(Lock::On)),
            "off" => Ok(LockMode(Lock::Off)),
            _ => Err("it must be auto, on or off".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_not_utf8_come_back() {
        let raw = OsString::from_vec(b"a\xff/\xc3".to_vec());
        let escaped = escape(raw.clone());
        assert!(is_escaped(&escaped));
        assert_eq!(FilePath::from_arg_value(&escaped).unwrap().0, PathBuf::from(raw));
        assert!(Text::from_arg_value(&escaped).is_err());
        assert_eq!(escape("plain é".into()), "plain é");
    }

    #[test]
    fn ids_are_read_and_refused_by_item() {
        assert_eq!(Ids::from_arg_value(" 1, 2 ,3").unwrap().0, [1, 2, 3]);
        assert_eq!(Ids::from_arg_value("").unwrap().0, [] as [u32; 0]);
        for (bad, named) in [
            ("1,x,3", "item 2 (`x`)"),
            ("1,,3", "item 2 (``)"),
            ("1,2,", "item 3"),
            ("-1", "item 1 (`-1`)"),
            ("4294967296", "item 1"),
        ] {
            let message = Ids::from_arg_value(bad).unwrap_err();
            assert!(message.contains(named), "{bad}: {message}");
        }
    }

    #[test]
    fn messages_become_one_line() {
        assert_eq!(one_line("a\nb\x1b[2Jc"), "a b [2Jc");
    }
}
