//! Values of arguments. The parser reads `str`, so an argument that is not UTF-8 travels through
//! it in hexadecimal behind a NUL, which no argument can hold, and is restored where it is a path.

use argh::FromArgValue;
use dllm_rt::backend::cpu::threads::cpus;
use dllm_rt::synth::Types;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
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

/// The key of the random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    pub seed: u64,
    /// Whether it was left to chance, so that the user must be told of it.
    pub is_drawn: bool,
}

impl FromArgValue for Seed {
    fn from_arg_value(value: &str) -> Result<Seed, String> {
        if value == "random" {
            // The standard library's hashers have random keys. 32 bits can be read and typed.
            let drawn = RandomState::new().build_hasher().finish() >> 32;
            return Ok(Seed { seed: drawn, is_drawn: true });
        }
        let wrong = |_| "must be a number from 0 to 18446744073709551615, or `random`".to_owned();
        Ok(Seed { seed: value.parse().map_err(wrong)?, is_drawn: false })
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

/// Items of a list at most: each is measured with each of the others.
const ITEMS_MAX: usize = 64;
/// Characters shown of an item that cannot be read.
const SHOWN_CHARS_MAX: usize = 40;

/// Numbers from 1 on, in the order given, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts(pub Vec<usize>);

impl FromArgValue for Counts {
    fn from_arg_value(value: &str) -> Result<Counts, String> {
        let count = |item: &str| match item.parse::<usize>() {
            Ok(0) => Err("is 0; give at least 1".to_owned()),
            Ok(count) => Ok(count),
            Err(_) => Err("is no number; write `1,2`".to_owned()),
        };
        list(value, count).map(Counts)
    }
}

/// Types of weights, in the order given, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeList(pub Vec<Types>);

impl FromArgValue for TypeList {
    fn from_arg_value(value: &str) -> Result<TypeList, String> {
        let types = |item: &str| match item.parse::<Types>() {
            Ok(types) => Ok(types),
            Err(fault) => Err(format!("is none: {fault}")),
        };
        list(value, types).map(TypeList)
    }
}

fn list<T: PartialEq>(
    value: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut items = Vec::new();
    for (at, item) in value.split(',').map(str::trim).enumerate() {
        if at == ITEMS_MAX {
            return Err(format!("has more than {ITEMS_MAX} items"));
        }
        let shown: String = item.chars().take(SHOWN_CHARS_MAX).collect();
        let named = |why| format!("item {} (`{}`) {why}", at + 1, one_line(&shown));
        let item = parse(item).map_err(named)?;
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(items)
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
    use dllm_cpu::dtype::Dtype;

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
        assert_eq!(Seed::from_arg_value("7"), Ok(Seed { seed: 7, is_drawn: false }));
        let drawn = [(); 2].map(|()| Seed::from_arg_value("random").unwrap());
        assert!(drawn[0].is_drawn && drawn[0].seed != drawn[1].seed);
        assert!(Seed::from_arg_value("-1").unwrap_err().contains("random"));
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

    #[test]
    fn lists_are_read_and_refused_by_item() {
        assert_eq!(Counts::from_arg_value("2, 1,2").unwrap().0, [2, 1]);
        for (bad, named) in
            [("", "item 1"), ("1,,2", "item 2"), ("1,0", "item 2 (`0`) is 0"), ("x", "(`x`)")]
        {
            let said = Counts::from_arg_value(bad).unwrap_err();
            assert!(said.contains(named), "{bad}: {said}");
        }
        let types = TypeList::from_arg_value("q4_k_m,Q8_0").unwrap().0;
        assert_eq!(types, [Types::Q4KM, Types::One(Dtype::Q8_0)]);
        let said = TypeList::from_arg_value("Q4_K,Q9_K").unwrap_err();
        assert!(said.contains("item 2 (`Q9_K`)") && said.contains("Q6_K"), "{said}");
        assert!(Counts::from_arg_value(&"1,".repeat(70)).is_err());
    }
}
