//! What `inspect` shows of a model: text for people, JSON for programs. Both are written as they
//! are made, so that a long table takes no memory, and neither lets the file's text control the
//! terminal.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::ser::Formatter;

use super::file::Gguf;
use super::tensor::TensorInfo;
use super::text::{is_hostile, plain, quoted_bytes};
use super::value::{Array, Value};

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
        let value = gguf.get(key).map_or_else(|error| error.to_string(), |value| shown(&value));
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
    let summary = Summary {
        version: gguf.version(),
        parts: gguf.part_count(),
        file_bytes: gguf.file_bytes(),
        metadata: Metadata(gguf),
        types: totals(gguf),
        tensors: Tensors(gguf.tensors()),
    };
    summary.serialize(&mut serializer)?;
    writeln!(out)
}

/// Tensors of one type.
#[derive(Default, Serialize)]
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

#[derive(Serialize)]
struct Summary<'a> {
    version: u32,
    parts: usize,
    file_bytes: u64,
    metadata: Metadata<'a>,
    types: BTreeMap<&'static str, Total>,
    tensors: Tensors<'a>,
}

struct Metadata<'a>(&'a Gguf);

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.keys().map(|key| (key, self.0.get(key).ok())))
    }
}

struct Tensors<'a>(&'a [TensorInfo]);

impl Serialize for Tensors<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'a> {
            name: &'a str,
            r#type: &'static str,
            shape: &'a [u64],
            part: usize,
            offset: usize,
            bytes: usize,
        }
        serializer.collect_seq(self.0.iter().map(|tensor| Row {
            name: &tensor.name,
            r#type: tensor.type_name(),
            shape: tensor.shape(),
            part: tensor.part,
            offset: tensor.offset,
            bytes: tensor.bytes,
        }))
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
                #[derive(Serialize)]
                struct Shown<'a> {
                    array: &'static str,
                    len: usize,
                    first: Vec<Value<'a>>,
                }
                let (array, len, first) = (array.of().name(), array.len(), array.iter());
                Shown { array, len, first: first.take(ITEMS_SHOWN).collect() }.serialize(serializer)
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
