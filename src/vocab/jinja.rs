//! The template engine's set-up: filters, functions and methods that templates call.
//!
//! Instructions are counted, so none may do much: what takes a width or a count is refused, and
//! texts that a filter makes of others are capped.

use std::borrow::Cow;
use std::io::{self, Write};

use minijinja::value::{Rest, from_args};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value};

/// Nested calls of macros: published templates nest two or three, and each takes stack.
const RECURSION_MAX: usize = 40;
/// Bytes of a text that a filter joins, replaces in or writes: conversations have fewer.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Bytes of a format of the date: published ones have about ten.
const TIME_FORMAT_BYTES_MAX: usize = 100;
/// Filters that write as many spaces or lists as they are told, or the insides of anything.
const FILTERS_REFUSED: &[&str] = &["slice", "batch", "format", "indent", "center", "pprint"];
/// Methods of strings that do so; the engine knows only some of them.
const METHODS_REFUSED: &[&str] = &["format", "center", "ljust", "rjust", "zfill", "expandtabs"];

/// Jinja as chat templates use it, without what makes much of little in one instruction.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_recursion_limit(RECURSION_MAX);
    environment.set_unknown_method_callback(method);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.add_filter("tojson", to_json);
    environment.add_filter("join", join);
    environment.add_filter("replace", |text: Cow<str>, from: Cow<str>, to: Cow<str>| {
        replace(&text, &from, &to, None)
    });
    environment.add_filter("string", string);
    for filter in FILTERS_REFUSED {
        environment.add_filter(*filter, move |_: Rest<Value>| -> Result<Value, Error> {
            Err(refused(&format!("the filter {filter}")))
        });
    }
    environment.remove_global("debug");
    environment
}

/// The methods that Python's values have.
fn method(state: &State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let Some(text) = value.as_str() else {
        return minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args);
    };
    match name {
        name if METHODS_REFUSED.contains(&name) => {
            Err(refused(&format!("the string method {name}")))
        }
        // The library looks for the empty string for ever.
        "count" if args.first().and_then(Value::as_str) == Some("") => {
            Err(refused("count of an empty string"))
        }
        "join" => {
            let (values,): (Value,) = from_args(args)?;
            join(values, Some(text.into())).map(Value::from)
        }
        "replace" => {
            let (from, to, count): (&str, &str, Option<i64>) = from_args(args)?;
            replace(text, from, to, count.and_then(|count| count.try_into().ok())).map(Value::from)
        }
        _ => minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args),
    }
}

fn join(values: Value, joiner: Option<Cow<str>>) -> Result<String, Error> {
    let joiner = joiner.unwrap_or_default();
    let mut text = Capped::new(TEXT_BYTES_MAX);
    for (index, value) in values.try_iter()?.enumerate() {
        let joiner = if index > 0 { &*joiner } else { "" };
        write!(text, "{joiner}{value}").map_err(|_| too_long(TEXT_BYTES_MAX))?;
    }
    text.into_text()
}

fn replace(text: &str, from: &str, to: &str, count: Option<usize>) -> Result<String, Error> {
    let count = text.matches(from).count().min(count.unwrap_or(usize::MAX));
    if count.saturating_mul(to.len()).saturating_add(text.len()) > TEXT_BYTES_MAX {
        return Err(too_long(TEXT_BYTES_MAX));
    }
    Ok(text.replacen(from, to, count))
}

fn string(value: Value) -> Result<Value, Error> {
    if value.as_str().is_some() {
        return Ok(value);
    }
    let mut text = Capped::new(TEXT_BYTES_MAX);
    write!(text, "{value}").map_err(|_| too_long(TEXT_BYTES_MAX))?;
    text.into_text().map(Value::from)
}

fn refused(what: &str) -> Error {
    let reason = format!("{what} is refused: it could take all memory or time");
    Error::new(ErrorKind::InvalidOperation, reason)
}

fn too_long(bytes_max: usize) -> Error {
    let reason = format!("a text grows beyond {bytes_max} bytes");
    Error::new(ErrorKind::InvalidOperation, reason)
}

fn raise_exception(reason: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, reason))
}

/// The time of day in UTC, as Python's `strftime` writes it.
fn strftime_now(format: String) -> Result<String, Error> {
    use std::fmt::Write;
    if format.len() > TIME_FORMAT_BYTES_MAX {
        return Err(refused("a longer format of strftime_now"));
    }
    let mut text = String::new();
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = clock.map_or(0, |since| since.as_secs().min(i64::MAX as u64) as i64);
    let now = chrono::DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    match write!(text, "{}", now.format(&format)) {
        Ok(()) => Ok(text),
        Err(_) => Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("strftime_now cannot write {format:?}"),
        )),
    }
}

/// JSON as Python's `json.dumps(value, ensure_ascii=False)` writes it: no HTML escapes.
fn to_json(value: Value, arguments: minijinja::value::Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = arguments.get("indent")?;
    let failed = |error: serde_json::Error| {
        Error::new(ErrorKind::InvalidOperation, format!("tojson: {error}"))
    };
    let mut text = Capped::new(TEXT_BYTES_MAX);
    if indent.is_some() {
        serde_json::to_writer_pretty(&mut text, &value).map_err(failed)?;
        return text.into_text();
    }
    let mut writer = serde_json::Serializer::with_formatter(&mut text, Spaced);
    serde::Serialize::serialize(&value, &mut writer).map_err(failed)?;
    text.into_text()
}

/// Separators as Python writes them.
struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
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

    pub(super) fn into_text(self) -> Result<String, Error> {
        if self.full {
            return Err(too_long(self.bytes_max));
        }
        String::from_utf8(self.bytes)
            .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
    }
}

impl io::Write for Capped {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if data.len() > self.bytes_max - self.bytes.len() {
            self.full = true;
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
