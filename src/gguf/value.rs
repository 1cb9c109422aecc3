//! Metadata values: their types, and views of them in the header's bytes.

use std::fmt;

use super::caps;
use super::cursor::Cursor;
use super::error::{Error, KeyError};
use super::text::quoted;

/// The types that GGUF gives its metadata values, with the file's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ValueType {
    /// Unsigned, 1 byte.
    U8 = 0,
    /// Signed, 1 byte.
    I8 = 1,
    /// Unsigned, 2 bytes.
    U16 = 2,
    /// Signed, 2 bytes.
    I16 = 3,
    /// Unsigned, 4 bytes.
    U32 = 4,
    /// Signed, 4 bytes.
    I32 = 5,
    /// IEEE 754, 4 bytes.
    F32 = 6,
    /// One byte, 0 or 1.
    Bool = 7,
    /// A 64-bit length, then bytes that should be UTF-8.
    String = 8,
    /// An item type, a 64-bit count, then the items.
    Array = 9,
    /// Unsigned, 8 bytes.
    U64 = 10,
    /// Signed, 8 bytes.
    I64 = 11,
    /// IEEE 754, 8 bytes.
    F64 = 12,
}

impl ValueType {
    /// The type with this number, if GGUF defines one.
    pub fn by_id(id: u32) -> Option<Self> {
        use ValueType::*;
        const ALL: [ValueType; 13] =
            [U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64];
        ALL.get(usize::try_from(id).ok()?).copied()
    }

    /// Its name, as `inspect` shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Array => "array",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        }
    }

    /// Bytes of one value, or `None` where they differ from value to value.
    pub fn fixed_bytes(self) -> Option<u64> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::String | Self::Array => None,
        }
    }
}

/// One metadata value. Strings and arrays are views of the header's bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Any of the integer types.
    Int(ValueType, i128),
    /// A 4-byte float.
    F32(f32),
    /// An 8-byte float.
    F64(f64),
    /// A boolean.
    Bool(bool),
    /// A string's bytes; they should be UTF-8 but may not be.
    String(&'a [u8]),
    /// An array.
    Array(Array<'a>),
}

/// An array of metadata values in the header's bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Array<'a> {
    of: ValueType,
    len: usize,
    bytes: &'a [u8],
}

impl<'a> Value<'a> {
    /// Reads the value of type `ty` at `cursor`, checking all of it, nested arrays too.
    /// `key` names it in errors.
    pub(super) fn read(cursor: &mut Cursor<'a>, ty: ValueType, key: &str) -> Result<Self, Error> {
        read(cursor, ty, key, 0)
    }

    /// Its type and, for an array, what it holds; with an article: "a string".
    pub fn type_text(&self) -> String {
        match self {
            Self::Int(ty, _) => format!("an integer ({})", ty.name()),
            Self::F32(_) => "a float (f32)".to_owned(),
            Self::F64(_) => "a float (f64)".to_owned(),
            Self::Bool(_) => "a boolean".to_owned(),
            Self::String(_) => "a string".to_owned(),
            Self::Array(array) => format!("an array of {} {}", array.len, array.of.name()),
        }
    }
}

impl<'a> Array<'a> {
    /// The type of every item.
    pub fn of(&self) -> ValueType {
        self.of
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The items one after the other, read from the header's bytes as they are asked for.
    pub fn iter(&self) -> Items<'a> {
        Items { cursor: Cursor::new(self.bytes, 0), of: self.of, left: self.len }
    }
}

/// Iterates over the items of an [`Array`].
#[derive(Clone, Debug)]
pub struct Items<'a> {
    cursor: Cursor<'a>,
    of: ValueType,
    left: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        // Cannot fail: the array has been read once, item by item.
        Value::read(&mut self.cursor, self.of, "").ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Items<'_> {}

fn read<'a>(
    cursor: &mut Cursor<'a>,
    ty: ValueType,
    key: &str,
    depth: u32,
) -> Result<Value<'a>, Error> {
    let what = ValueOf(key);
    let int = |value: i128| Value::Int(ty, value);
    Ok(match ty {
        ValueType::U8 => int(u8::from_le_bytes(cursor.array(what)?).into()),
        ValueType::I8 => int(i8::from_le_bytes(cursor.array(what)?).into()),
        ValueType::U16 => int(u16::from_le_bytes(cursor.array(what)?).into()),
        ValueType::I16 => int(i16::from_le_bytes(cursor.array(what)?).into()),
        ValueType::U32 => int(u32::from_le_bytes(cursor.array(what)?).into()),
        ValueType::I32 => int(i32::from_le_bytes(cursor.array(what)?).into()),
        ValueType::U64 => int(u64::from_le_bytes(cursor.array(what)?).into()),
        ValueType::I64 => int(i64::from_le_bytes(cursor.array(what)?).into()),
        ValueType::F32 => Value::F32(f32::from_le_bytes(cursor.array(what)?)),
        ValueType::F64 => Value::F64(f64::from_le_bytes(cursor.array(what)?)),
        ValueType::Bool => match cursor.array(what)? {
            [0] => Value::Bool(false),
            [1] => Value::Bool(true),
            [found] => return Err(Error::key(key, KeyError::Bool { found })),
        },
        ValueType::String => Value::String(cursor.string(caps::STRING_BYTES_MAX, what)?),
        ValueType::Array => Value::Array(read_array(cursor, key, depth)?),
    })
}

fn read_array<'a>(cursor: &mut Cursor<'a>, key: &str, depth: u32) -> Result<Array<'a>, Error> {
    if depth == caps::ARRAY_DEPTH_MAX {
        return Err(Error::key(key, KeyError::ArrayDepth));
    }
    let id = cursor.u32(ValueOf(key))?;
    let of = ValueType::by_id(id).ok_or_else(|| Error::key(key, KeyError::TypeUnknown { id }))?;
    let len = cursor.count(caps::ARRAY_ITEMS_MAX, ItemCount(key))?;
    let mut whole = *cursor;
    match of.fixed_bytes() {
        Some(item_bytes) if of != ValueType::Bool => {
            cursor.take(len * item_bytes, ValueOf(key))?;
        }
        // What an item takes, or whether it is valid, is known only once it has been read.
        _ => {
            for _ in 0..len {
                read(cursor, of, key, depth + 1)?;
            }
        }
    }
    let bytes = whole.take((cursor.at() - whole.at()) as u64, ValueOf(key))?;
    Ok(Array { of, len: len as usize, bytes })
}

#[derive(Clone, Copy)]
struct ValueOf<'a>(&'a str);

impl fmt::Display for ValueOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "value of the key {}", quoted(self.0))
    }
}

#[derive(Clone, Copy)]
struct ItemCount<'a>(&'a str);

impl fmt::Display for ItemCount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number of items in the key {}", quoted(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(ty: ValueType, bytes: &[u8]) -> Result<Value<'_>, Error> {
        Value::read(&mut Cursor::new(bytes, 0), ty, "k")
    }

    fn array_head(of: u32, len: u64) -> Vec<u8> {
        [&of.to_le_bytes()[..], &len.to_le_bytes()].concat()
    }

    #[test]
    fn scalars_of_every_type() {
        let ff = [0xff; 8];
        let int = |ty, value| Ok(Value::Int(ty, value));
        assert_eq!(parse(ValueType::U8, &ff), int(ValueType::U8, 255));
        assert_eq!(parse(ValueType::I8, &ff), int(ValueType::I8, -1));
        assert_eq!(parse(ValueType::U16, &ff), int(ValueType::U16, 65_535));
        assert_eq!(parse(ValueType::I16, &ff), int(ValueType::I16, -1));
        assert_eq!(parse(ValueType::U32, &ff), int(ValueType::U32, (1 << 32) - 1));
        assert_eq!(parse(ValueType::I32, &ff), int(ValueType::I32, -1));
        assert_eq!(parse(ValueType::U64, &ff), int(ValueType::U64, (1 << 64) - 1));
        assert_eq!(parse(ValueType::I64, &ff), int(ValueType::I64, -1));
        assert_eq!(parse(ValueType::F32, &1.5f32.to_le_bytes()), Ok(Value::F32(1.5)));
        assert_eq!(parse(ValueType::F64, &1.5f64.to_le_bytes()), Ok(Value::F64(1.5)));
        assert_eq!(parse(ValueType::Bool, &[1]), Ok(Value::Bool(true)));
        let error = Error::key("k", KeyError::Bool { found: 2 });
        assert_eq!(parse(ValueType::Bool, &[2]), Err(error));
        for id in 0..13 {
            assert_eq!(ValueType::by_id(id).map(|ty| ty as u32), Some(id));
        }
        assert_eq!(ValueType::by_id(13), None);
    }

    #[test]
    fn arrays_give_their_items_back() {
        let mut bytes = array_head(ValueType::String as u32, 2);
        for text in ["ab", ""] {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        let Ok(Value::Array(array)) = parse(ValueType::Array, &bytes) else { panic!() };
        assert_eq!((array.of(), array.len()), (ValueType::String, 2));
        let items: Vec<_> = array.iter().collect();
        assert_eq!(items, [Value::String(b"ab"), Value::String(b"")]);
        assert_eq!(Value::Array(array).type_text(), "an array of 2 string");
    }

    #[test]
    fn arrays_nest_four_deep_and_no_deeper() {
        let nested = |depth: u32| {
            let mut bytes = Vec::new();
            for _ in 1..depth {
                bytes.extend(array_head(ValueType::Array as u32, 1));
            }
            bytes.extend(array_head(ValueType::U8 as u32, 1));
            bytes.push(7);
            bytes
        };
        let bytes = nested(4);
        let Ok(Value::Array(mut array)) = parse(ValueType::Array, &bytes) else { panic!() };
        for _ in 1..4 {
            let Some(Value::Array(inner)) = array.iter().next() else { panic!() };
            array = inner;
        }
        assert_eq!(array.iter().next(), Some(Value::Int(ValueType::U8, 7)));
        let error = Error::key("k", KeyError::ArrayDepth);
        assert_eq!(parse(ValueType::Array, &nested(5)), Err(error));
    }
}
