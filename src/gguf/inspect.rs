//! What `inspect` shows of a model: text for people, JSON for programs. Both are written as they
//! are made, so that a long table takes no memory, and neither lets the file's text control the
//! terminal.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::ser::Formatter;

use super::text::{is_hostile, plain, quoted_bytes};
use super::{Array, Gguf, TensorInfo, Value};

/// Items of an array that are shown.
const ITEMS_SHOWN: usize = 8;

/// Writes header, metadata (long strings cut, arrays with their first items), bytes per tensor
/// type, and every tensor with its type and shape.
///
/// # Errors
///
/// Those of `out`.
pub fn write_text(gguf: &Gguf, out: &mut dyn Write) -> io::Result<()> {
    let (keys, tensors) = (gguf.keys().len(), gguf.tensors().len());
    let (version, parts, bytes) = (gguf.version(), gguf.part_count(), gguf.file_bytes());
    writeln!(out, "GGUF version {version}, {parts} part(s), {bytes} bytes")?;
    writeln!(out, "\nmetadata: {keys} keys")?;
    for key in gguf.keys() {
        // A key of the table has a value unless the file has changed since it was opened.
        let value = gguf.get(key).map_or_else(|fault| fault.to_string(), |value| shown(&value));
        writeln!(out, "  {} = {value}", plain(key))?;
    }
    writeln!(out, "\ntypes:")?;
    for (name, total) in totals(gguf) {
        writeln!(out, "  {name:<10} {:>6} tensors {:>14} bytes", total.tensors, total.bytes)?;
    }
    writeln!(out, "\ntensors: {tensors}")?;
    let name_width = gguf.tensors().iter().map(|tensor| tensor.name.len()).max();
    // Wide enough for the names of most models; a longer name moves only its own line.
    let name_width = name_width.unwrap_or(0).min(40);
    for tensor in gguf.tensors() {
        let name = plain(&tensor.name).to_string();
        writeln!(out, "  {name:<name_width$} {:<10} {:?}", tensor.type_name(), tensor.shape())?;
    }
    Ok(())
}

/// Writes one JSON object: `version`, `parts`, `file_bytes`, `metadata` (key to value; an array is
/// `{"array": item type, "len": n, "first": [...]}`), `types` (name to `{"tensors", "bytes"}`) and
/// `tensors` (`[{"name", "type", "shape", "part", "offset", "bytes"}]`, shapes fastest first).
///
/// # Errors
///
/// Those of `out`.
pub fn write_json(gguf: &Gguf, out: &mut dyn Write) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, EscapeAll);
    Summary(gguf).serialize(&mut serializer)?;
    writeln!(out)
}

/// Tensors of one type.
#[derive(Default)]
struct Total {
    tensors: usize,
    bytes: u64,
}

fn totals(gguf: &Gguf) -> BTreeMap<&'static str, Total> {
    let mut totals: BTreeMap<_, Total> = BTreeMap::new();
    for tensor in gguf.tensors() {
        let total = totals.entry(tensor.type_name()).or_default();
        total.tensors += 1;
        total.bytes += tensor.bytes as u64;
    }
    totals
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Int(_, value) => value.to_string(),
        Value::F32(value) => format!("{value:?}"),
        Value::F64(value) => format!("{value:?}"),
        Value::Bool(value) => value.to_string(),
        Value::String(bytes) => quoted_bytes(bytes),
        Value::Array(array) => shown_array(array),
    }
}

fn shown_array(array: &Array<'_>) -> String {
    let mut text = format!("{} {} [", array.len(), array.of().name());
    for (index, item) in array.iter().take(ITEMS_SHOWN).enumerate() {
        text.push_str(if index > 0 { ", " } else { "" });
        text.push_str(&shown(&item));
    }
    text.push_str(if array.len() > ITEMS_SHOWN { ", ...]" } else { "]" });
    text
}

struct Summary<'a>(&'a Gguf);

impl Serialize for Summary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let gguf = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version", &gguf.version())?;
        map.serialize_entry("parts", &gguf.part_count())?;
        map.serialize_entry("file_bytes", &gguf.file_bytes())?;
        map.serialize_entry("metadata", &Metadata(gguf))?;
        map.serialize_entry("types", &totals(gguf))?;
        map.serialize_entry("tensors", gguf.tensors())?;
        map.end()
    }
}

struct Metadata<'a>(&'a Gguf);

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.keys().map(|key| (key, self.0.get(key).ok())))
    }
}

impl Serialize for Total {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("tensors", &self.tensors)?;
        map.serialize_entry("bytes", &self.bytes)?;
        map.end()
    }
}

impl Serialize for TensorInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(6))?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("type", self.type_name())?;
        map.serialize_entry("shape", self.shape())?;
        map.serialize_entry("part", &self.part)?;
        map.serialize_entry("offset", &self.offset)?;
        map.serialize_entry("bytes", &self.bytes)?;
        map.end()
    }
}

/// Strings that are not UTF-8 have U+FFFD in their place; NaN and infinities become `null`.
impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(_, value) => serializer.serialize_i128(*value),
            Self::F32(value) => serializer.serialize_f32(*value),
            Self::F64(value) => serializer.serialize_f64(*value),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::String(bytes) => serializer.collect_str(&Lossy(bytes)),
            Self::Array(array) => {
                let mut map = serializer.serialize_map(Some(3))?;
                map.serialize_entry("array", array.of().name())?;
                map.serialize_entry("len", &array.len())?;
                let first: Vec<_> = array.iter().take(ITEMS_SHOWN).collect();
                map.serialize_entry("first", &first)?;
                map.end()
            }
        }
    }
}

/// Bytes that should be UTF-8, as text, without a copy of them.
struct Lossy<'a>(&'a [u8]);

impl fmt::Display for Lossy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            f.write_str(if chunk.invalid().is_empty() { "" } else { "\u{fffd}" })?;
        }
        Ok(())
    }
}

/// Compact JSON that also escapes the control characters which JSON itself lets through.
struct EscapeAll;

impl Formatter for EscapeAll {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_hostile(*c)) {
            // All of these lie in the basic plane, so one escape is enough.
            write!(out, "{}\\u{:04x}", &rest[..at], u32::from(c))?;
            rest = &rest[at + c.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}
