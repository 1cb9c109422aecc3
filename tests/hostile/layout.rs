//! Broken headers, and files cut off at every structure.

use crate::case::Case;
use crate::common::gguf_writer::{Built, GgufWriter, tensor_type};

/// A small file that has every kind of structure and is valid as it is.
pub fn small() -> GgufWriter {
    let mut file = GgufWriter::new();
    file.str("general.architecture", "llada")
        .u32("n", 7)
        .bool("flag", true)
        .strs("words", &["one", "two", ""])
        .i32s("numbers", &[1, 2, 3])
        .f32_tensor("a", &[4, 2], &[0.5; 8])
        .tensor("b", &[64, 2], tensor_type::Q8_0, vec![1; 136])
        .f32_tensor("c", &[3], &[1.0, 2.0, 3.0]);
    file
}

pub fn cases() -> Vec<Case> {
    let mut cases = headers();
    cases.extend(counts());
    cases.extend(truncations());
    cases
}

fn headers() -> Vec<Case> {
    let changed = |change: fn(&mut GgufWriter)| {
        let mut file = small();
        change(&mut file);
        file.bytes()
    };
    let text = b"version https://git-lfs.github.com/spec/v1\n".to_vec();
    vec![
        Case::inspect("empty file", Vec::new(), "empty"),
        Case::inspect("three bytes", b"GGU".to_vec(), "magic"),
        Case::inspect("a pointer to a file", text, "git lfs pull"),
        Case::inspect("older format", changed(|file| file.magic = *b"tjgg"), "\"tjgg\""),
        Case::inspect(
            "control characters for a magic",
            changed(|file| file.magic = *b"\x1b[2J"),
            "\"\\x1b[2J\"",
        ),
        Case::inspect("magic swapped", changed(|file| file.magic = *b"FUGG"), "big-endian"),
        Case::inspect(
            "version swapped",
            changed(|file| file.version = 3u32.swap_bytes()),
            "big-endian",
        ),
        Case::inspect("version 0", changed(|file| file.version = 0), "GGUF version 0"),
        Case::inspect("version 1", changed(|file| file.version = 1), "GGUF version 1"),
        Case::inspect("version 4", changed(|file| file.version = 4), "versions 2 and 3"),
        Case::inspect("only a header", small().bytes()[..24].to_vec(), "metadata key"),
    ]
}

fn counts() -> Vec<Case> {
    let counts = |tensors: Option<u64>, keys: Option<u64>| {
        let mut file = small();
        (file.tensor_count, file.key_count) = (tensors, keys);
        file.bytes()
    };
    let tensors = |count| counts(Some(count), None);
    let keys = |count| counts(None, Some(count));
    vec![
        Case::inspect("2^64 - 1 tensors", tensors(u64::MAX), "number of tensors"),
        Case::inspect("2^63 tensors", tensors(1 << 63), "number of tensors"),
        Case::inspect("one tensor over the cap", tensors(65_537), "at most 65536"),
        Case::inspect("as many tensors as the cap", tensors(65_536), "tensor"),
        Case::inspect("one tensor too many", tensors(4), "tensor name"),
        Case::inspect("2^64 - 1 keys", keys(u64::MAX), "number of metadata keys"),
        Case::inspect("one key over the cap", keys(16_385), "at most 16384"),
        Case::inspect("one key too many", keys(6), "tensor name"),
        Case::inspect("one key too few", keys(4), "tensor"),
    ]
}

/// A cut at each structure, and one byte into it.
fn truncations() -> Vec<Case> {
    let built = small().build();
    let mut cases = Vec::new();
    let ends = built.marks.iter().skip(1).map(|(_, at)| *at).chain([built.bytes.len()]);
    for ((mark, at), end) in built.marks.iter().zip(ends) {
        // An empty file is a case of its own, and one byte of one is no cut.
        for cut in [*at, at + 1].into_iter().filter(|&cut| cut > 0 && cut < end) {
            let name =
                format!("cut at byte {cut}, {} of {mark}", if cut == *at { "0" } else { "1" });
            let expected = truncated_thing(mark);
            cases.push(Case::inspect(&name, built.bytes[..cut].to_vec(), &expected));
        }
    }
    let Built { mut bytes, .. } = built;
    bytes.pop();
    cases.push(Case::inspect("the last byte is missing", bytes, "the tensor \"c\" takes 12 bytes"));
    cases
}

/// What a message says of a structure that is cut off.
fn truncated_thing(mark: &str) -> String {
    let ends_inside = |thing: String| format!("the file ends inside the {thing} at byte ");
    if let Some(key) = mark.strip_prefix("value of ") {
        return ends_inside(format!("value of the key \"{key}\""));
    }
    if let Some(tensor) = mark.strip_prefix("data of ") {
        return format!("the tensor \"{tensor}\" takes ");
    }
    if mark.starts_with("name of tensor ") {
        return ends_inside("tensor name".to_owned());
    }
    if mark.starts_with("key ") && mark != "key count" {
        return ends_inside("metadata key".to_owned());
    }
    let of_tensor = ["type of tensor ", "offset of ", "dimensions of ", "dimension 0 of "];
    if let Some(prefix) = of_tensor.iter().find(|prefix| mark.starts_with(**prefix)) {
        return format!("of the tensor \"{}\" at byte ", &mark[prefix.len()..]);
    }
    match mark.strip_prefix("type of ") {
        Some(key) => ends_inside(format!("type of the key \"{key}\"")),
        None => "the file ends inside the ".to_owned(),
    }
}
