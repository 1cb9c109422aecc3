//! Metadata by key: each getter names the key and what it found when it cannot give the value.

use super::caps;
use super::cursor::Cursor;
use super::error::{Error, KeyError};
use super::names::{ByName, Named};
use super::text::quoted;
use super::value::{Array, Value, ValueType};

/// Bytes of the shortest entry: a length, one character, a type, one byte of value.
const ENTRY_BYTES_MIN: usize = 8 + 1 + 4 + 1;

/// Keys and values of one file, in a copy of its header that nobody else can change.
///
/// Every getter that is not `opt_*` gives [`KeyError::Missing`] for a key that is not there; the
/// `opt_*` ones give `None`. A value of another type is [`KeyError::Type`].
#[derive(Debug)]
pub struct Metadata {
    header: Box<[u8]>,
    entries: ByName<Entry>,
}

/// One key and the place of its value in the header.
#[derive(Debug)]
struct Entry {
    key: String,
    ty: ValueType,
    at: usize,
}

impl Named for Entry {
    fn name(&self) -> &str {
        &self.key
    }
}

impl Entry {
    /// Reads an entry and checks it, value and all.
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let key = cursor.name(caps::KEY_BYTES_MAX, "metadata key")?;
        let id = cursor.u32(format_args!("type of the key {}", quoted(key)))?;
        let ty =
            ValueType::by_id(id).ok_or_else(|| Error::key(key, KeyError::TypeUnknown { id }))?;
        let at = cursor.at();
        Value::read(cursor, ty, key)?;
        Ok(Self { key: key.to_owned(), ty, at })
    }
}

impl Metadata {
    /// Reads `count` entries that start at byte `at` of `header`, and where they end.
    pub(super) fn read(header: Vec<u8>, at: usize, count: u64) -> Result<(Self, usize), Error> {
        let mut cursor = Cursor::new(&header, at);
        // `count` is capped; a short file cannot make the table larger than it could fill.
        let entries_max = (count as usize).min(cursor.left() / ENTRY_BYTES_MIN);
        let mut entries = Vec::with_capacity(entries_max);
        for _ in 0..count {
            entries.push(Entry::read(&mut cursor)?);
        }
        let end = cursor.at();
        let entries = ByName::new(entries);
        let entries = entries.map_err(|twice| Error::key(&twice.key, KeyError::Duplicate))?;
        Ok((Self { header: header.into(), entries }, end))
    }

    /// The file up to its tensor data.
    pub(super) fn header(&self) -> &[u8] {
        &self.header
    }

    /// Drops what was copied beyond the header.
    pub(super) fn cut_header(&mut self, bytes: usize) {
        let mut header = std::mem::take(&mut self.header).into_vec();
        header.truncate(bytes);
        self.header = header.into();
    }

    /// All keys in the file's order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.items().iter().map(Entry::name)
    }

    /// Whether the key is there.
    pub fn contains(&self, key: &str) -> bool {
        self.entries.find(key).is_some()
    }

    /// The value of the key, whatever its type.
    pub fn get(&self, key: &str) -> Result<Value<'_>, Error> {
        needed(key, self.opt_get(key))
    }

    /// The value of the key, whatever its type, if it is there.
    pub fn opt_get(&self, key: &str) -> Result<Option<Value<'_>>, Error> {
        let entry = self.entries.find(key).map(|index| &self.entries.items()[index]);
        let value = |entry: &Entry| {
            Value::read(&mut Cursor::new(&self.header, entry.at), entry.ty, &entry.key)
        };
        entry.map(value).transpose()
    }

    /// An integer of any of GGUF's types that fits 32 bits without a sign.
    pub fn u32(&self, key: &str) -> Result<u32, Error> {
        needed(key, self.opt_u32(key))
    }

    /// As [`Metadata::u32`], if the key is there.
    pub fn opt_u32(&self, key: &str) -> Result<Option<u32>, Error> {
        self.opt_int(key, "an integer from 0 to 4294967295")
    }

    /// An integer of any of GGUF's types that fits 64 bits without a sign.
    pub fn u64(&self, key: &str) -> Result<u64, Error> {
        needed(key, self.opt_u64(key))
    }

    /// As [`Metadata::u64`], if the key is there.
    pub fn opt_u64(&self, key: &str) -> Result<Option<u64>, Error> {
        self.opt_int(key, "an integer from 0 to 18446744073709551615")
    }

    /// A float of either of GGUF's types, rounded to 4 bytes.
    pub fn f32(&self, key: &str) -> Result<f32, Error> {
        needed(key, self.opt_f32(key))
    }

    /// As [`Metadata::f32`], if the key is there.
    pub fn opt_f32(&self, key: &str) -> Result<Option<f32>, Error> {
        self.opt_as(key, "a float", float)
    }

    /// A boolean.
    pub fn bool(&self, key: &str) -> Result<bool, Error> {
        needed(key, self.opt_bool(key))
    }

    /// As [`Metadata::bool`], if the key is there.
    pub fn opt_bool(&self, key: &str) -> Result<Option<bool>, Error> {
        self.opt_as(key, "a boolean", |value| match value {
            Value::Bool(value) => Some(value),
            _ => None,
        })
    }

    /// A string; [`KeyError::Utf8`] if it is not UTF-8.
    pub fn str(&self, key: &str) -> Result<&str, Error> {
        needed(key, self.opt_str(key))
    }

    /// As [`Metadata::str`], if the key is there.
    pub fn opt_str(&self, key: &str) -> Result<Option<&str>, Error> {
        let bytes = self.opt_as(key, "a string", string)?;
        let text = bytes.map(std::str::from_utf8).transpose();
        text.map_err(|_| Error::key(key, KeyError::Utf8))
    }

    /// An array of strings, whatever their bytes.
    pub fn byte_strings<'a>(
        &'a self,
        key: &str,
    ) -> Result<impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a>, Error> {
        let array = self.array(key, "an array of strings", |ty| ty == ValueType::String)?;
        Ok(array.iter().map(|item| string(item).unwrap_or_default()))
    }

    /// An array of strings; [`KeyError::ItemUtf8`] if one of them is not UTF-8.
    pub fn strings<'a>(
        &'a self,
        key: &str,
    ) -> Result<impl ExactSizeIterator<Item = &'a str> + use<'a>, Error> {
        let strings = self.byte_strings(key)?;
        match strings.clone().position(|bytes| std::str::from_utf8(bytes).is_err()) {
            Some(index) => Err(Error::key(key, KeyError::ItemUtf8 { index })),
            None => Ok(strings.map(|bytes| std::str::from_utf8(bytes).unwrap_or_default())),
        }
    }

    /// An array of integers of any of GGUF's types, all of which fit 32 bits with a sign.
    pub fn i32s<'a>(
        &'a self,
        key: &str,
    ) -> Result<impl ExactSizeIterator<Item = i32> + use<'a>, Error> {
        let int = |ty: ValueType| {
            let other = [ValueType::F32, ValueType::F64, ValueType::Bool];
            ty.fixed_bytes().is_some() && !other.contains(&ty)
        };
        let items = self.array(key, "an array of integers", int)?.iter().map(|item| match item {
            Value::Int(_, value) => value,
            _ => 0,
        });
        let large = |&(_, item): &(usize, i128)| i32::try_from(item).is_err();
        if let Some((index, found)) = items.clone().enumerate().find(large) {
            let wanted = "an integer from -2147483648 to 2147483647";
            return Err(Error::key(key, KeyError::ItemRange { index, found, wanted }));
        }
        Ok(items.map(|item| item as i32))
    }

    /// An array of floats of either of GGUF's types, each rounded to 4 bytes.
    pub fn f32s<'a>(
        &'a self,
        key: &str,
    ) -> Result<impl ExactSizeIterator<Item = f32> + use<'a>, Error> {
        let fits = |ty| matches!(ty, ValueType::F32 | ValueType::F64);
        let array = self.array(key, "an array of floats", fits)?;
        Ok(array.iter().map(|item| float(item).unwrap_or_default()))
    }

    fn array(
        &self,
        key: &str,
        wanted: &'static str,
        fits: impl Fn(ValueType) -> bool,
    ) -> Result<Array<'_>, Error> {
        let array = self.opt_as(key, wanted, |value| match value {
            Value::Array(array) if fits(array.of()) => Some(array),
            _ => None,
        });
        needed(key, array)
    }

    fn opt_int<T: TryFrom<i128>>(
        &self,
        key: &str,
        wanted: &'static str,
    ) -> Result<Option<T>, Error> {
        let int = self.opt_as(key, wanted, |value| match value {
            Value::Int(_, value) => Some(value),
            _ => None,
        })?;
        let fitting = |found: i128| {
            T::try_from(found).map_err(|_| Error::key(key, KeyError::Range { found, wanted }))
        };
        int.map(fitting).transpose()
    }

    fn opt_as<'a, T>(
        &'a self,
        key: &str,
        wanted: &'static str,
        convert: impl Fn(Value<'a>) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.opt_get(key)? else { return Ok(None) };
        let wrong = || Error::key(key, KeyError::Type { wanted, found: value.type_text() });
        convert(value).map(Some).ok_or_else(wrong)
    }
}

fn string(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::String(bytes) => Some(bytes),
        _ => None,
    }
}

fn float(value: Value<'_>) -> Option<f32> {
    match value {
        Value::F32(value) => Some(value),
        Value::F64(value) => Some(value as f32),
        _ => None,
    }
}

fn needed<T>(key: &str, found: Result<Option<T>, Error>) -> Result<T, Error> {
    found?.ok_or_else(|| Error::key(key, KeyError::Missing))
}
