//! Runs a chat template: Jinja as Hugging Face's `apply_chat_template` understands it.
//!
//! A template comes with the model file and is not trusted: it runs on a fuel of instructions,
//! its calls do not nest deeply, and what it writes is capped. What it builds in variables has no
//! cap of its own: a template made to double a string with every turn of a loop can take all
//! memory, which the library gives no means to prevent.

use std::io;

use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value, context};

use crate::gguf::text::is_hostile;

use super::{Fault, Message};

/// Bytes of a template's source: the longest published ones have about 20 kB.
const SOURCE_BYTES_MAX: usize = 1 << 20;
/// Bytes that a template may write, over what the messages hold: room for its own text.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Instructions that a template may run: published ones take a few hundred, and fewer than a
/// hundred a turn.
const FUEL_BASE: u64 = 20_000;
const FUEL_PER_TURN: u64 = 2_000;
/// Nested calls of macros: published templates nest two or three, and each takes stack.
const RECURSION_MAX: usize = 40;
/// Characters shown of an error that a template raises: room for a few sentences.
const SHOWN_CHARS_MAX: usize = 400;

/// The texts of the special tokens that a template may write.
pub(super) struct Names<'a> {
    pub(super) bos: &'a str,
    pub(super) eos: &'a str,
    pub(super) pad: &'a str,
}

/// The conversation as the template writes it, up to where the assistant's answer starts.
pub(super) fn render(
    source: &str,
    names: &Names<'_>,
    messages: &[Message],
) -> Result<String, Fault> {
    if source.len() > SOURCE_BYTES_MAX {
        let found = source.len();
        let limit = format!("at most {SOURCE_BYTES_MAX} bytes");
        return Err(Fault::Length { key: "tokenizer.chat_template", found, limit });
    }
    let mut environment = environment();
    environment.set_fuel(Some(FUEL_BASE + FUEL_PER_TURN * messages.len() as u64));
    let source = without_generation_tags(source)?;
    let template = environment.template_from_named_str("chat", &source).map_err(fault)?;
    let contents_bytes: usize = messages.iter().map(|message| message.content.len()).sum();
    let mut output = Capped::new(contents_bytes.saturating_mul(2) + OUTPUT_BYTES_MAX);
    let variables = context! {
        messages => Value::from_serialize(messages),
        add_generation_prompt => true,
        bos_token => names.bos,
        eos_token => names.eos,
        pad_token => names.pad,
        tools => (),
        documents => (),
    };
    let written = template.render_captured_to(variables, &mut output).map(|_| ());
    if output.full {
        let reason = format!("writes more than {} bytes for this conversation", output.bytes_max);
        return Err(Fault::Template(reason));
    }
    written.map_err(fault)?;
    String::from_utf8(output.bytes).map_err(|error| Fault::Template(error.to_string()))
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_recursion_limit(RECURSION_MAX);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.add_filter("tojson", to_json);
    environment
}

/// `{% generation %}` marks the assistant's words for training; here it only has to parse.
fn without_generation_tags(source: &str) -> Result<String, Fault> {
    let tag = |name: &str| {
        let pattern = format!(r"\{{%([-+]?)\s*{name}\s*([-+]?)%\}}");
        regex::Regex::new(&pattern).map_err(|error| Fault::Library(error.to_string()))
    };
    let opened = tag("generation")?.replace_all(source, "{%$1 if true $2%}");
    Ok(tag("endgeneration")?.replace_all(&opened, "{%$1 endif $2%}").into_owned())
}

fn raise_exception(reason: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, reason))
}

/// The time of day in UTC, as Python's `strftime` writes it.
fn strftime_now(format: String) -> Result<String, Error> {
    use std::fmt::Write;
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
    if indent.is_some() {
        return serde_json::to_string_pretty(&value).map_err(failed);
    }
    let mut bytes = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
    serde::Serialize::serialize(&value, &mut writer).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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

fn fault(error: Error) -> Fault {
    match error.kind() {
        ErrorKind::OutOfFuel => Fault::Template("runs too many instructions".into()),
        _ => Fault::Template(shown(&error.to_string())),
    }
}

/// What a template says of itself, cut and without characters that a terminal would obey.
fn shown(text: &str) -> String {
    let safe = |c| if is_hostile(c) { '\u{fffd}' } else { c };
    text.chars().take(SHOWN_CHARS_MAX).map(safe).collect()
}

/// Text that refuses to grow beyond a limit.
struct Capped {
    bytes: Vec<u8>,
    bytes_max: usize,
    full: bool,
}

impl Capped {
    fn new(bytes_max: usize) -> Capped {
        Capped { bytes: Vec::new(), bytes_max, full: false }
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
