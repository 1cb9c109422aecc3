//! Metadata whose keys, types, lengths or values are wrong.

use crate::case::Case;
use crate::common::gguf_writer::{
    Field, GgufWriter, array, array_of_length, string, value_type as ty,
};
use crate::layout::small;

pub fn cases() -> Vec<Case> {
    let mut cases = keys();
    cases.extend(strings());
    cases.extend(arrays());
    cases.extend(alignments());
    cases
}

fn with(key: &str, field: Field) -> Vec<u8> {
    small().set(key, field).bytes()
}

fn keys() -> Vec<Case> {
    let named = |name: &[u8]| {
        let mut file = small();
        file.keys.push((name.to_vec(), Field { ty: ty::U8, bytes: vec![1] }));
        file.bytes()
    };
    let length = |len: u64| small().build().patch("key n", &len.to_le_bytes());
    let escape = with("\x1b[31mred\x07", field(13, &[0]));
    vec![
        Case::inspect("a key twice", named(b"flag"), "the key \"flag\" occurs twice"),
        Case::inspect("an empty key", named(b""), "metadata key"),
        Case::inspect("a key that is not UTF-8", named(b"\xff\xfe"), "metadata key"),
        Case::inspect("a key over the cap", named(&[b'k'; 65_536]), "at most 65535"),
        Case::inspect("a key of 2^64 - 1 bytes", length(u64::MAX), "length of the metadata key"),
        Case::inspect("a key beyond the end", length(60_000), "metadata key"),
        Case::inspect(
            "value type 13",
            with("n", field(13, &[0; 8])),
            "the key \"n\" has value type 13",
        ),
        Case::inspect("value type 2^32 - 1", with("n", field(u32::MAX, &[0; 8])), "the key \"n\""),
        Case::inspect("a boolean of 2", with("flag", field(ty::BOOL, &[2])), "the key \"flag\""),
        Case::inspect("terminal control in a key", escape, "the key \"\\u{1b}[31mred\\u{7}\""),
    ]
}

fn strings() -> Vec<Case> {
    let length =
        |len: u64| small().build().patch("value of general.architecture", &len.to_le_bytes());
    let expected = "the key \"general.architecture\"";
    vec![
        Case::inspect("a string of 2^64 - 1 bytes", length(u64::MAX), expected),
        Case::inspect("a string of 2^63 bytes", length(1 << 63), expected),
        Case::inspect("a string over the cap", length((64 << 20) + 1), "at most 67108864"),
        Case::inspect("a string beyond the end", length(10_000), "needs 10000 bytes"),
    ]
}

fn arrays() -> Vec<Case> {
    let of = |item: u32, len: u64, bytes: &[u8]| with("words", array_of_length(item, len, bytes));
    let key = "the key \"words\"";
    let half_string = [&5u64.to_le_bytes()[..], b"ab"].concat();
    vec![
        Case::inspect("2^64 - 1 bytes", of(ty::U8, u64::MAX, &[0; 8]), "number of items"),
        Case::inspect("2^61 + 1 u64, which wraps", of(ty::U64, (1 << 61) + 1, &[0; 8]), key),
        Case::inspect("2^30 u64", of(ty::U64, 1 << 30, &[0; 8]), key),
        Case::inspect("2^30 strings", of(ty::STRING, 1 << 30, &[0; 8]), "words"),
        Case::inspect("2^30 arrays", of(ty::ARRAY, 1 << 30, &[0; 8]), "words"),
        Case::inspect("2^30 booleans", of(ty::BOOL, 1 << 30, &[1; 8]), key),
        Case::inspect(
            "more items than the cap",
            of(ty::U8, (1 << 30) + 1, &[]),
            "at most 1073741824",
        ),
        Case::inspect(
            "items of type 13",
            of(13, 1, &[0; 8]),
            "the key \"words\" has value type 13",
        ),
        Case::inspect("a boolean item of 9", of(ty::BOOL, 2, &[1, 9]), "boolean of value 9"),
        Case::inspect(
            "a string item beyond the end",
            {
                let mut file = GgufWriter::new();
                file.set("words", array_of_length(ty::STRING, 1, &half_string)).bytes()
            },
            key,
        ),
        Case::inspect("arrays five deep", with("words", nested(5)), "nests arrays deeper than 4"),
        Case::inspect("arrays 10,000 deep", with("words", nested(10_000)), "deeper than 4"),
        Case::inspect("an array bomb", with("words", bomb()), "words"),
    ]
}

fn alignments() -> Vec<Case> {
    let aligned = |alignment: u32| small().u32("general.alignment", alignment).bytes();
    let expected = "the key \"general.alignment\"";
    let text = small().str("general.alignment", "32").bytes();
    let negative = field(ty::I32, &(-32i32).to_le_bytes());
    vec![
        Case::inspect("alignment 0", aligned(0), expected),
        Case::inspect("alignment 1", aligned(1), expected),
        Case::inspect("alignment 4", aligned(4), expected),
        Case::inspect("alignment 48", aligned(48), "power of two"),
        Case::inspect("alignment 2^31", aligned(1 << 31), expected),
        Case::inspect("alignment 2^32 - 1", aligned(u32::MAX), expected),
        Case::inspect("alignment as text", text, "holds a string"),
        Case::inspect("alignment below zero", with("general.alignment", negative), "is -32"),
    ]
}

fn field(ty: u32, bytes: &[u8]) -> Field {
    Field { ty, bytes: bytes.to_vec() }
}

/// Arrays of one item in each other, `depth` of them, with a byte innermost.
fn nested(depth: usize) -> Field {
    let mut bytes = Vec::new();
    for _ in 1..depth {
        bytes.extend(ty::ARRAY.to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
    }
    bytes.extend(ty::U8.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.push(0);
    Field { ty: ty::ARRAY, bytes }
}

/// Three levels of arrays that all claim many items, over strings that run out.
fn bomb() -> Field {
    let strings = array(ty::STRING, &vec![string(b""); 100]);
    let level = array(ty::ARRAY, &vec![strings.bytes; 10]);
    let mut top = array(ty::ARRAY, &vec![level.bytes; 10]);
    top.bytes[4..12].copy_from_slice(&(1u64 << 29).to_le_bytes());
    top
}
