//! Values as Python prints them, and as its `json` module writes them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use minijinja::{Error, ErrorKind, Value};

/// Bytes of a text that a filter or an operator makes: conversations have fewer.
pub(super) const TEXT_BYTES_MAX: usize = 16 << 20;
/// Lists in lists that are written: each takes stack.
const DEPTH_MAX: usize = 200;

/// An error of a template.
pub(super) fn invalid(reason: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason)
}

pub(super) fn too_long(bytes_max: usize) -> Error {
    invalid(format!("a text grows beyond {bytes_max} bytes"))
}

/// White space to Python: Unicode's, and the separators of ASCII.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// A list that prints as a tuple.
#[derive(Debug)]
pub(super) struct Tuple(pub(super) Vec<Value>);

impl Object for Tuple {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.len())
    }
}

/// What `str(value)` gives.
pub(super) fn text_of(value: &Value) -> Result<String, Error> {
    let mut out = Capped::new(TEXT_BYTES_MAX);
    match value.as_str() {
        Some(text) => out.put(text)?,
        None => repr(value, 0, &mut out)?,
    }
    out.into_text()
}

/// Whether the engine itself would print the value otherwise.
pub(super) fn prints_otherwise(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable)
        || value.kind() == ValueKind::Number && !value.is_integer()
}

fn repr(value: &Value, depth: usize, out: &mut Capped) -> Result<(), Error> {
    check_depth(depth)?;
    match value.kind() {
        ValueKind::String => repr_text(value.as_str().unwrap_or_default(), out),
        ValueKind::Number if !value.is_integer() => out.put(&float(value)),
        ValueKind::Seq | ValueKind::Iterable => {
            let tuple = value.downcast_object_ref::<Tuple>();
            let close = match tuple {
                Some(Tuple(items)) if items.len() == 1 => ",)",
                Some(_) => ")",
                None => "]",
            };
            out.put(if tuple.is_some() { "(" } else { "[" })?;
            for (index, item) in value.try_iter()?.enumerate() {
                out.put(if index > 0 { ", " } else { "" })?;
                repr(&item, depth + 1, out)?;
            }
            out.put(close)
        }
        ValueKind::Map => {
            out.put("{")?;
            for (index, key) in value.try_iter()?.enumerate() {
                out.put(if index > 0 { ", " } else { "" })?;
                repr(&key, depth + 1, out)?;
                out.put(": ")?;
                repr(&value.get_item(&key)?, depth + 1, out)?;
            }
            out.put("}")
        }
        _ => out.put(&value.to_string()),
    }
}

fn repr_text(text: &str, out: &mut Capped) -> Result<(), Error> {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut quoted = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c == quote => quoted.extend(['\\', c]),
            c if c < ' ' || ('\x7f'..'\u{a0}').contains(&c) || c == '\u{ad}' => {
                push_code(&mut quoted, format_args!("\\x{:02x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push(quote);
    out.put(&quoted)
}

fn push_code(text: &mut String, code: std::fmt::Arguments<'_>) {
    // Cannot fail: a string takes all that is written.
    let _ = text.write_fmt(code);
}

/// A float as Python's `repr` writes it: the shortest digits that give it back.
fn float(value: &Value) -> String {
    let Ok(number) = f64::try_from(value.clone()) else { return value.to_string() };
    if !number.is_finite() {
        return number.to_string().to_lowercase();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = number.to_string();
    if plain.contains('.') { plain } else { plain + ".0" }
}

/// How JSON is laid out.
pub(super) struct Json {
    pub(super) indent: Option<usize>,
    pub(super) comma: String,
    pub(super) colon: String,
    pub(super) sort_keys: bool,
    pub(super) ascii: bool,
}

impl Json {
    /// As Python's `json.dumps` writes it.
    pub(super) fn write(&self, value: &Value) -> Result<String, Error> {
        let mut out = Capped::new(TEXT_BYTES_MAX);
        self.value(value, 0, &mut out)?;
        out.into_text()
    }

    fn value(&self, value: &Value, depth: usize, out: &mut Capped) -> Result<(), Error> {
        check_depth(depth)?;
        match value.kind() {
            ValueKind::None => out.put("null"),
            ValueKind::Bool => out.put(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number if value.is_integer() => out.put(&value.to_string()),
            ValueKind::Number => out.put(&float(value)),
            ValueKind::String => out.put(&self.string(value.as_str().unwrap_or_default())),
            ValueKind::Seq | ValueKind::Iterable => {
                self.items(['[', ']'], value.try_iter()?.collect(), depth, out, |item, out| {
                    self.value(item, depth + 1, out)
                })
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    keys.sort();
                }
                self.items(['{', '}'], keys, depth, out, |key, out| {
                    let name = match key.kind() {
                        ValueKind::None => "null".into(),
                        ValueKind::Bool => key.to_string().to_lowercase(),
                        _ => key.to_string(),
                    };
                    out.put(&self.string(&name))?;
                    out.put(&self.colon)?;
                    self.value(&value.get_item(key)?, depth + 1, out)
                })
            }
            kind => Err(invalid(format!("tojson cannot write a value of type {kind}"))),
        }
    }

    fn items(
        &self,
        brackets: [char; 2],
        items: Vec<Value>,
        depth: usize,
        out: &mut Capped,
        write: impl Fn(&Value, &mut Capped) -> Result<(), Error>,
    ) -> Result<(), Error> {
        out.put(brackets[0].encode_utf8(&mut [0; 4]))?;
        for (index, item) in items.iter().enumerate() {
            out.put(if index > 0 { &self.comma } else { "" })?;
            self.line(depth + 1, out)?;
            write(item, out)?;
        }
        if !items.is_empty() {
            self.line(depth, out)?;
        }
        out.put(brackets[1].encode_utf8(&mut [0; 4]))
    }

    fn line(&self, depth: usize, out: &mut Capped) -> Result<(), Error> {
        let Some(indent) = self.indent else { return Ok(()) };
        out.put("\n")?;
        (0..depth).try_for_each(|_| out.put(&" ".repeat(indent)))
    }

    fn string(&self, text: &str) -> String {
        let mut quoted = String::from('"');
        for c in text.chars() {
            match c {
                '"' => quoted.push_str("\\\""),
                '\\' => quoted.push_str("\\\\"),
                '\n' => quoted.push_str("\\n"),
                '\r' => quoted.push_str("\\r"),
                '\t' => quoted.push_str("\\t"),
                '\x08' => quoted.push_str("\\b"),
                '\x0c' => quoted.push_str("\\f"),
                c if c < ' ' || self.ascii && c > '~' => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        push_code(&mut quoted, format_args!("\\u{unit:04x}"));
                    }
                }
                c => quoted.push(c),
            }
        }
        quoted.push('"');
        quoted
    }
}

fn check_depth(depth: usize) -> Result<(), Error> {
    if depth > DEPTH_MAX {
        return Err(invalid(format!("a value holds more than {DEPTH_MAX} lists in each other")));
    }
    Ok(())
}

/// Text that refuses to grow beyond a limit.
pub(super) struct Capped {
    bytes: Vec<u8>,
    bytes_max: usize,
    full: bool,
}

impl Capped {
    pub(super) fn new(bytes_max: usize) -> Capped {
        Capped { bytes: Vec::new(), bytes_max, full: false }
    }

    /// Whether something did not fit.
    pub(super) fn full(&self) -> bool {
        self.full
    }

    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(super) fn put(&mut self, text: &str) -> Result<(), Error> {
        self.write_all(text.as_bytes()).map_err(|_| too_long(self.bytes_max))
    }

    pub(super) fn into_text(self) -> Result<String, Error> {
        if self.full {
            return Err(too_long(self.bytes_max));
        }
        String::from_utf8(self.bytes).map_err(|error| invalid(error.to_string()))
    }
}

impl std::io::Write for Capped {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        if data.len() > self.bytes_max - self.bytes.len() {
            self.full = true;
            return Err(std::io::Error::from(std::io::ErrorKind::StorageFull));
        }
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The texts of `values`, or of an attribute of each, with `joiner` between them.
pub(super) fn join(values: Value, joiner: &str, attribute: Option<&str>) -> Result<String, Error> {
    let mut text = Capped::new(TEXT_BYTES_MAX);
    for (index, value) in values.try_iter()?.enumerate() {
        text.put(if index > 0 { joiner } else { "" })?;
        let value = attribute.map_or_else(|| Ok(value.clone()), |name| value.get_attr(name))?;
        match value.as_str() {
            Some(part) => text.put(part)?,
            None => text.put(&text_of(&value)?)?,
        }
    }
    text.into_text()
}

/// `text` with `to` for the first `count` occurrences of `from`, or for all.
pub(super) fn replace(
    text: &str,
    from: &str,
    to: &str,
    count: Option<usize>,
) -> Result<String, Error> {
    let count = text.matches(from).count().min(count.unwrap_or(usize::MAX));
    if count.saturating_mul(to.len()).saturating_add(text.len()) > TEXT_BYTES_MAX {
        return Err(too_long(TEXT_BYTES_MAX));
    }
    Ok(text.replacen(from, to, count))
}

/// What is refused, and why.
pub(super) fn refused(what: &str) -> Error {
    invalid(format!("{what} is refused: it could take all memory or time"))
}
