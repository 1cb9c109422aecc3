//! The metadata table of one part: keys, and where their values lie.

use super::caps;
use super::cursor::Cursor;
use super::fault::{Fault, KeyFault};
use super::text::quoted;
use super::value::{Value, ValueType};

/// Bytes of the shortest entry: a length, one character, a type, one byte of value.
const ENTRY_BYTES_MIN: usize = 8 + 1 + 4 + 1;

/// Keys in the file's order, all of whose values have been read once.
#[derive(Debug, Default)]
pub struct Table {
    entries: Vec<Entry>,
    /// Indices into `entries`, ordered by key.
    by_key: Vec<u32>,
}

/// One key and the place of its value.
#[derive(Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    ty: ValueType,
    at: usize,
}

impl Table {
    /// Reads `count` entries at `cursor` and checks them, values and all.
    pub fn read(cursor: &mut Cursor<'_>, count: u64) -> Result<Self, Fault> {
        // `count` is capped; a short file cannot make the table larger than it could fill.
        let entries_max = (count as usize).min(cursor.left() / ENTRY_BYTES_MIN);
        let mut entries = Vec::with_capacity(entries_max);
        for _ in 0..count {
            entries.push(Entry::read(cursor)?);
        }
        let mut by_key: Vec<u32> = (0..).take(entries.len()).collect();
        let key = |index: &u32| entries[*index as usize].key.as_str();
        by_key.sort_unstable_by(|a, b| key(a).cmp(key(b)));
        if let Some(pair) = by_key.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
            return Err(Fault::key(key(&pair[0]), KeyFault::Duplicate));
        }
        Ok(Self { entries, by_key })
    }

    /// The entries in the file's order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of `key`.
    pub fn find(&self, key: &str) -> Option<&Entry> {
        let entry = |index: &u32| &self.entries[*index as usize];
        let place =
            self.by_key.binary_search_by(|index| entry(index).key.as_str().cmp(key)).ok()?;
        Some(entry(&self.by_key[place]))
    }
}

impl Entry {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Fault> {
        let key = cursor.name(caps::KEY_BYTES_MAX, "metadata key")?;
        let id = cursor.u32(format_args!("type of the key {}", quoted(key)))?;
        let ty =
            ValueType::by_id(id).ok_or_else(|| Fault::key(key, KeyFault::TypeUnknown { id }))?;
        let at = cursor.at();
        Value::read(cursor, ty, key)?;
        Ok(Self { key: key.to_owned(), ty, at })
    }

    /// The value, in `bytes`, the bytes that the entry was read from. It has been read before,
    /// so a fault means that the file has changed since.
    pub fn value<'a>(&self, bytes: &'a [u8]) -> Result<Value<'a>, Fault> {
        Value::read(&mut Cursor::new(bytes, self.at), self.ty, &self.key)
    }
}
