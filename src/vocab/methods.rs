//! The methods that Python's strings, lists and dictionaries have.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, FormatStyle, State, Value};

use super::operators::formatted;
use super::python::{Tuple, invalid, is_space, join, refused, replace};

/// Characters that a string is padded to.
const WIDTH_MAX: usize = 1000;

/// Arguments by place or name.
struct Args<'a> {
    placed: &'a [Value],
    named: Option<&'a Value>,
}

impl<'a> Args<'a> {
    fn new(args: &'a [Value]) -> Args<'a> {
        match args.split_last() {
            Some((named, placed)) if named.is_kwargs() => Args { placed, named: Some(named) },
            _ => Args { placed: args, named: None },
        }
    }

    fn get(&self, at: usize, name: &str) -> Option<Value> {
        let named = || self.named?.get_attr(name).ok();
        let value = self.placed.get(at).cloned().or_else(named)?;
        (!value.is_undefined() && !value.is_none()).then_some(value)
    }

    fn text(&self, at: usize, name: &str) -> Result<Option<String>, Error> {
        let Some(value) = self.get(at, name) else { return Ok(None) };
        let wrong = || invalid(format!("argument {name} must be a string, not {}", value.kind()));
        value.as_str().map(|text| Some(text.to_owned())).ok_or_else(wrong)
    }

    fn need(&self, at: usize, name: &str) -> Result<String, Error> {
        self.text(at, name)?.ok_or_else(|| invalid(format!("argument {name} is missing")))
    }

    fn int(&self, at: usize, name: &str) -> Result<Option<i64>, Error> {
        let Some(value) = self.get(at, name) else { return Ok(None) };
        let wrong = || invalid(format!("argument {name} must be a number, not {}", value.kind()));
        value.as_i64().map(Some).ok_or_else(wrong)
    }
}

/// The method `name` of a value.
pub(super) fn call(
    state: &State,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        return of_text(state, value, text, name, args);
    }
    match (value.kind(), name) {
        (ValueKind::Map, "items") => {
            let pair = |key: Value| -> Result<Value, Error> {
                let item = value.get_item(&key)?;
                Ok(Value::from_object(Tuple(vec![key, item])))
            };
            value.try_iter()?.map(pair).collect::<Result<Vec<Value>, Error>>().map(Value::from)
        }
        (ValueKind::Map, "copy") => Ok(value.clone()),
        (ValueKind::Seq, "index") => {
            let found = value.try_iter()?.position(|item| Some(&item) == args.first());
            found.map(Value::from).ok_or_else(|| invalid("the value is not in the list"))
        }
        _ => minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args),
    }
}

fn of_text(
    state: &State,
    value: &Value,
    text: &str,
    name: &str,
    list: &[Value],
) -> Result<Value, Error> {
    let args = Args::new(list);
    let strip = |start: bool, end: bool| -> Result<Value, Error> {
        let chars = args.text(0, "chars")?;
        Ok(Value::from(stripped(text, chars.as_deref(), start, end)))
    };
    Ok(match name {
        "strip" => return strip(true, true),
        "lstrip" => return strip(true, false),
        "rstrip" => return strip(false, true),
        "split" | "rsplit" => {
            let count = args.int(1, "maxsplit")?.and_then(|count| usize::try_from(count).ok());
            return split(text, args.text(0, "sep")?.as_deref(), count, name == "rsplit");
        }
        "partition" | "rpartition" => {
            let sep = args.need(0, "sep")?;
            let found = if name == "partition" { text.find(&sep) } else { text.rfind(&sep) };
            let parts = match found {
                Some(at) => [&text[..at], &sep, &text[at + sep.len()..]],
                None if name == "partition" => [text, "", ""],
                None => ["", "", text],
            };
            Value::from_object(Tuple(parts.into_iter().map(Value::from).collect()))
        }
        "splitlines" => splitlines(text, args.get(0, "keepends").is_some_and(|v| v.is_true())),
        "removeprefix" => Value::from(text.strip_prefix(&*args.need(0, "prefix")?).unwrap_or(text)),
        "removesuffix" => Value::from(text.strip_suffix(&*args.need(0, "suffix")?).unwrap_or(text)),
        "find" | "rfind" | "index" | "rindex" | "count" | "startswith" | "endswith" => {
            return search(text, name, &args);
        }
        "replace" => {
            let count = args.int(2, "count")?.and_then(|count| count.try_into().ok());
            return replace(text, &args.need(0, "old")?, &args.need(1, "new")?, count)
                .map(Value::from);
        }
        "join" => {
            let values = args.get(0, "iterable").ok_or_else(|| invalid("join of nothing"))?;
            return join(values, text, None).map(Value::from);
        }
        "format" => return formatted(FormatStyle::StrFormat, text, list).map(Value::from),
        "center" | "ljust" | "rjust" | "zfill" => return padded(text, name, &args),
        "title" => Value::from(titled(text)),
        "swapcase" => Value::from(text.chars().flat_map(swapped).collect::<String>()),
        "casefold" => Value::from(text.to_lowercase()),
        "expandtabs" => return Err(refused("the string method expandtabs")),
        _ if name.starts_with("is") => return is(text, name).map(Value::from),
        _ => {
            return minijinja_contrib::pycompat::unknown_method_callback(state, value, name, list);
        }
    })
}

/// `text` without the characters at its ends that are among `chars`, or white space.
pub(super) fn stripped<'a>(text: &'a str, chars: Option<&str>, start: bool, end: bool) -> &'a str {
    let goes = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    let text = if start { text.trim_start_matches(goes) } else { text };
    if end { text.trim_end_matches(goes) } else { text }
}

fn split(text: &str, sep: Option<&str>, count: Option<usize>, right: bool) -> Result<Value, Error> {
    let limit = count.map_or(usize::MAX, |count| count.saturating_add(1));
    let parts: Vec<&str> = match sep {
        Some("") => return Err(invalid("empty separator")),
        Some(sep) if right => {
            let mut parts: Vec<&str> = text.rsplitn(limit, sep).collect();
            parts.reverse();
            parts
        }
        Some(sep) => text.splitn(limit, sep).collect(),
        None if right => {
            let mut parts = Vec::new();
            let mut rest = text.trim_end_matches(is_space);
            while !rest.is_empty() {
                let at = if parts.len() + 1 >= limit { None } else { rest.rfind(is_space) };
                let start =
                    at.map_or(0, |at| at + rest[at..].chars().next().map_or(0, char::len_utf8));
                parts.push(&rest[start..]);
                rest = rest[..at.unwrap_or(0)].trim_end_matches(is_space);
            }
            parts.reverse();
            parts
        }
        None => {
            let mut parts = Vec::new();
            let mut rest = text.trim_start_matches(is_space);
            while !rest.is_empty() {
                let end = if parts.len() + 1 >= limit { None } else { rest.find(is_space) };
                let end = end.unwrap_or(rest.len());
                parts.push(&rest[..end]);
                rest = rest[end..].trim_start_matches(is_space);
            }
            parts
        }
    };
    Ok(parts.into_iter().map(Value::from).collect())
}

fn splitlines(text: &str, keep: bool) -> Value {
    let breaks = |c: char| {
        matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e')
            || matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let (mut lines, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(breaks) {
        let one = rest[at..].chars().next().map_or(1, char::len_utf8);
        let bytes = if rest[at..].starts_with("\r\n") { 2 } else { one };
        lines.push(Value::from(&rest[..if keep { at + bytes } else { at }]));
        rest = &rest[at + bytes..];
    }
    if !rest.is_empty() {
        lines.push(Value::from(rest));
    }
    Value::from(lines)
}

/// The methods that look for texts between two places, which are counted in characters.
fn search(text: &str, name: &str, args: &Args<'_>) -> Result<Value, Error> {
    let chars = text.chars().count();
    let place = |value: Option<i64>, other: usize| match value {
        None => other,
        Some(at) if at < 0 => chars.saturating_sub(at.unsigned_abs() as usize),
        Some(at) => (at as usize).min(chars),
    };
    let (start, end) = (place(args.int(1, "start")?, 0), place(args.int(2, "end")?, chars));
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    let inside = text.get(byte(start)..byte(end)).unwrap_or_default();
    if matches!(name, "startswith" | "endswith") {
        let first = args.get(0, "prefix").ok_or_else(|| invalid(format!("{name} of nothing")))?;
        let wanted: Vec<Value> = match first.as_str() {
            Some(_) => vec![first],
            None => first.try_iter()?.collect(),
        };
        let mut fits = false;
        for value in &wanted {
            let wrong = || invalid(format!("{name} takes strings, not {}", value.kind()));
            let part = value.as_str().ok_or_else(wrong)?;
            let here = if name == "startswith" {
                inside.starts_with(part)
            } else {
                inside.ends_with(part)
            };
            fits |= here;
        }
        return Ok(Value::from(fits));
    }
    let sub = args.need(0, "sub")?;
    if name == "count" {
        // The library looks for the empty string for ever.
        let count =
            if sub.is_empty() { inside.chars().count() + 1 } else { inside.matches(&sub).count() };
        return Ok(Value::from(count));
    }
    let right = name.starts_with('r');
    let found = if right { inside.rfind(&sub) } else { inside.find(&sub) };
    match found {
        Some(at) => Ok(Value::from(start + inside[..at].chars().count())),
        None if name.ends_with("find") => Ok(Value::from(-1)),
        None => Err(invalid("substring not found")),
    }
}

fn padded(text: &str, name: &str, args: &Args<'_>) -> Result<Value, Error> {
    let width = args.int(0, "width")?.map_or(0, |width| usize::try_from(width).unwrap_or(0));
    let fill = args.text(1, "fillchar")?.unwrap_or_else(|| " ".into());
    pad(text, name, width, &fill).map(Value::from)
}

/// `text` filled up to `width` characters: to its left, its right, or both.
pub(super) fn pad(text: &str, name: &str, width: usize, fill: &str) -> Result<String, Error> {
    if width > WIDTH_MAX {
        return Err(refused(&format!("{name} to {width} characters")));
    }
    let missing = width.saturating_sub(text.chars().count());
    let (left, right) = match name {
        "ljust" => (0, missing),
        // As Python does it: the odd one goes left where the width is odd too.
        "center" => {
            let left = missing / 2 + (missing & width & 1);
            (left, missing - left)
        }
        _ => (missing, 0),
    };
    if name == "zfill" {
        let (sign, rest) = text.split_at(usize::from(text.starts_with(['-', '+'])));
        return Ok(format!("{sign}{}{rest}", "0".repeat(left)));
    }
    Ok(format!("{}{text}{}", fill.repeat(left), fill.repeat(right)))
}

/// Each run of letters with a capital first.
fn titled(text: &str) -> String {
    let mut inside = false;
    let mut titled = String::with_capacity(text.len());
    for c in text.chars() {
        if inside {
            titled.extend(c.to_lowercase());
        } else {
            titled.extend(c.to_uppercase());
        }
        inside = c.is_alphabetic();
    }
    titled
}

fn swapped(c: char) -> Vec<char> {
    if c.is_uppercase() { c.to_lowercase().collect() } else { c.to_uppercase().collect() }
}

fn is(text: &str, name: &str) -> Result<bool, Error> {
    let all = |fits: fn(char) -> bool| !text.is_empty() && text.chars().all(fits);
    let has = |fits: fn(char) -> bool| text.chars().any(fits);
    Ok(match name {
        "islower" => has(char::is_lowercase) && !has(char::is_uppercase),
        "isupper" => has(char::is_uppercase) && !has(char::is_lowercase),
        "isspace" => all(is_space),
        "isdigit" | "isnumeric" | "isdecimal" => all(char::is_numeric),
        "isalnum" => all(char::is_alphanumeric),
        "isalpha" => all(char::is_alphabetic),
        "isascii" => text.is_ascii(),
        "istitle" => has(char::is_alphabetic) && titled(text) == text,
        _ => return Err(Error::from(ErrorKind::UnknownMethod)),
    })
}
