//! Metadata by key: each getter names the key and what it found when it cannot give the value.

use super::Gguf;
use super::fault::{Fault, KeyFault};
use super::value::{Array, Items, Value, ValueType};

/// Every getter that is not `opt_*` gives [`KeyFault::Missing`] for a key that is not there; the
/// `opt_*` ones give `None`. A value of another type is [`KeyFault::Type`].
impl Gguf {
    /// Whether the key is there.
    pub fn contains(&self, key: &str) -> bool {
        self.table.find(key).is_some()
    }

    /// The value of the key, whatever its type.
    pub fn get(&self, key: &str) -> Result<Value<'_>, Fault> {
        needed(key, self.opt_get(key))
    }

    /// The value of the key, whatever its type, if it is there.
    pub fn opt_get(&self, key: &str) -> Result<Option<Value<'_>>, Fault> {
        self.table.find(key).map(|entry| entry.value(self.meta_bytes())).transpose()
    }

    /// An integer of any of GGUF's types that fits 32 bits without a sign.
    pub fn u32(&self, key: &str) -> Result<u32, Fault> {
        needed(key, self.opt_u32(key))
    }

    /// As [`Gguf::u32`], if the key is there.
    pub fn opt_u32(&self, key: &str) -> Result<Option<u32>, Fault> {
        self.opt_int(key, "an integer from 0 to 4294967295")
    }

    /// An integer of any of GGUF's types that fits 64 bits without a sign.
    pub fn u64(&self, key: &str) -> Result<u64, Fault> {
        needed(key, self.opt_u64(key))
    }

    /// As [`Gguf::u64`], if the key is there.
    pub fn opt_u64(&self, key: &str) -> Result<Option<u64>, Fault> {
        self.opt_int(key, "an integer from 0 to 18446744073709551615")
    }

    /// A float of either of GGUF's types, rounded to 4 bytes.
    pub fn f32(&self, key: &str) -> Result<f32, Fault> {
        needed(key, self.opt_f32(key))
    }

    /// As [`Gguf::f32`], if the key is there.
    pub fn opt_f32(&self, key: &str) -> Result<Option<f32>, Fault> {
        self.opt_as(key, "a float", |value| match value {
            Value::F32(value) => Some(value),
            Value::F64(value) => Some(value as f32),
            _ => None,
        })
    }

    /// A boolean.
    pub fn bool(&self, key: &str) -> Result<bool, Fault> {
        needed(key, self.opt_bool(key))
    }

    /// As [`Gguf::bool`], if the key is there.
    pub fn opt_bool(&self, key: &str) -> Result<Option<bool>, Fault> {
        self.opt_as(key, "a boolean", |value| match value {
            Value::Bool(value) => Some(value),
            _ => None,
        })
    }

    /// A string; [`KeyFault::Utf8`] if it is not UTF-8.
    pub fn str(&self, key: &str) -> Result<&str, Fault> {
        needed(key, self.opt_str(key))
    }

    /// As [`Gguf::str`], if the key is there.
    pub fn opt_str(&self, key: &str) -> Result<Option<&str>, Fault> {
        let bytes = self.opt_as(key, "a string", string)?;
        let text = bytes.map(std::str::from_utf8).transpose();
        text.map_err(|_| Fault::key(key, KeyFault::Utf8))
    }

    /// An array of strings, whatever their bytes.
    pub fn byte_strings(&self, key: &str) -> Result<ByteStrings<'_>, Fault> {
        let array = self.array(key, "an array of strings", |ty| ty == ValueType::String)?;
        Ok(ByteStrings(array.iter()))
    }

    /// An array of strings; [`KeyFault::ItemUtf8`] if one of them is not UTF-8.
    pub fn strings(&self, key: &str) -> Result<Strings<'_>, Fault> {
        let strings = self.byte_strings(key)?;
        match strings.clone().position(|bytes| std::str::from_utf8(bytes).is_err()) {
            Some(index) => Err(Fault::key(key, KeyFault::ItemUtf8 { index })),
            None => Ok(Strings(strings)),
        }
    }

    /// An array of integers of any of GGUF's types, all of which fit 32 bits with a sign.
    pub fn i32s(&self, key: &str) -> Result<I32s<'_>, Fault> {
        let int = |ty: ValueType| {
            let other = [ValueType::F32, ValueType::F64, ValueType::Bool];
            ty.fixed_bytes().is_some() && !other.contains(&ty)
        };
        let items = self.array(key, "an array of integers", int)?.iter();
        for (index, item) in items.clone().enumerate() {
            if let Value::Int(_, found) = item
                && i32::try_from(found).is_err()
            {
                let wanted = "an integer from -2147483648 to 2147483647";
                return Err(Fault::key(key, KeyFault::ItemRange { index, found, wanted }));
            }
        }
        Ok(I32s(items))
    }

    /// An array of floats of either of GGUF's types, each rounded to 4 bytes.
    pub fn f32s(&self, key: &str) -> Result<F32s<'_>, Fault> {
        let float = |ty| matches!(ty, ValueType::F32 | ValueType::F64);
        Ok(F32s(self.array(key, "an array of floats", float)?.iter()))
    }

    fn array(
        &self,
        key: &str,
        wanted: &'static str,
        fits: impl Fn(ValueType) -> bool,
    ) -> Result<Array<'_>, Fault> {
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
    ) -> Result<Option<T>, Fault> {
        let int = self.opt_as(key, wanted, |value| match value {
            Value::Int(_, value) => Some(value),
            _ => None,
        })?;
        int.map(|found| {
            T::try_from(found).map_err(|_| Fault::key(key, KeyFault::Range { found, wanted }))
        })
        .transpose()
    }

    fn opt_as<'a, T>(
        &'a self,
        key: &str,
        wanted: &'static str,
        convert: impl Fn(Value<'a>) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(value) = self.opt_get(key)? else { return Ok(None) };
        match convert(value) {
            Some(converted) => Ok(Some(converted)),
            None => {
                let found = value.type_text();
                Err(Fault::key(key, KeyFault::Type { wanted, found }))
            }
        }
    }
}

/// The items of an array of strings, as bytes.
#[derive(Clone, Debug)]
pub struct ByteStrings<'a>(Items<'a>);

/// The items of an array of strings.
#[derive(Clone, Debug)]
pub struct Strings<'a>(ByteStrings<'a>);

/// The items of an array of integers.
#[derive(Clone, Debug)]
pub struct I32s<'a>(Items<'a>);

/// The items of an array of floats.
#[derive(Clone, Debug)]
pub struct F32s<'a>(Items<'a>);

impl<'a> Iterator for ByteStrings<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        string(self.0.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.0.next()?).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl Iterator for I32s<'_> {
    type Item = i32;

    fn next(&mut self) -> Option<i32> {
        match self.0.next()? {
            Value::Int(_, value) => i32::try_from(value).ok(),
            _ => None,
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl Iterator for F32s<'_> {
    type Item = f32;

    fn next(&mut self) -> Option<f32> {
        match self.0.next()? {
            Value::F32(value) => Some(value),
            Value::F64(value) => Some(value as f32),
            _ => None,
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for ByteStrings<'_> {}
impl ExactSizeIterator for Strings<'_> {}
impl ExactSizeIterator for I32s<'_> {}
impl ExactSizeIterator for F32s<'_> {}

fn string(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::String(bytes) => Some(bytes),
        _ => None,
    }
}

fn needed<T>(key: &str, found: Result<Option<T>, Fault>) -> Result<T, Fault> {
    found?.ok_or_else(|| Fault::key(key, KeyFault::Missing))
}
