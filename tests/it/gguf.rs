//! The GGUF reader on valid files: written here, split, from the references, and mutated.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::common::gguf_writer::{
    Field, GgufWriter, array_of_length, tensor_type, value_type as ty,
};
use dllm_rt::gguf::{self, Error, FileBytes, Gguf, Value, inspect};
use proptest::prelude::*;

fn sample() -> GgufWriter {
    let mut file = GgufWriter::new();
    let field = |ty: u32, bytes: &[u8]| Field { ty, bytes: bytes.to_vec() };
    file.str("general.architecture", "llada")
        .u32("u32", u32::MAX)
        .set("i8", field(ty::I8, &[0xfe]))
        .set("u64", field(ty::U64, &(1u64 << 40).to_le_bytes()))
        .f32("f32", 1e-5)
        .set("f64", field(ty::F64, &2.5f64.to_le_bytes()))
        .bool("yes", true)
        .strs("words", &["one", "", "drei"])
        .strs("bytes", &[&b"ok"[..], b"\xff"])
        .i32s("ints", &[-1, 0, i32::MAX])
        .set("longs", array_of_length(ty::U64, 1, &(1u64 << 31).to_le_bytes()))
        .f32s("floats", &[0.5, -1.0])
        .str("escape", "\x1b[2J\u{9b}1m")
        .f32_tensor("vector", &[3], &[1.0, 2.0, 3.0])
        .tensor("matrix", &[64, 2], tensor_type::Q8_0, (0..136).collect());
    file
}

fn open_sample() -> Gguf {
    Gguf::from_bytes(sample().bytes()).unwrap()
}

fn text(fault: Result<impl Sized, Error>) -> String {
    match fault {
        Ok(_) => "accepted".to_owned(),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn values_come_back_as_they_were_written() {
    let gguf = open_sample();
    assert_eq!(gguf.str("general.architecture"), Ok("llada"));
    assert_eq!(gguf.u32("u32"), Ok(u32::MAX));
    assert_eq!(gguf.u64("u32"), Ok(u64::from(u32::MAX)));
    assert_eq!(gguf.u64("u64"), Ok(1 << 40));
    assert_eq!(gguf.f32("f32"), Ok(1e-5));
    assert_eq!(gguf.f32("f64"), Ok(2.5));
    assert_eq!(gguf.bool("yes"), Ok(true));
    assert_eq!(gguf.opt_bool("no"), Ok(None));
    assert!(gguf.contains("yes") && !gguf.contains("no"));
    assert_eq!(gguf.strings("words").unwrap().collect::<Vec<_>>(), ["one", "", "drei"]);
    assert_eq!(gguf.strings("words").unwrap().len(), 3);
    assert_eq!(gguf.byte_strings("bytes").unwrap().nth(1), Some(&b"\xff"[..]));
    assert_eq!(gguf.i32s("ints").unwrap().collect::<Vec<_>>(), [-1, 0, i32::MAX]);
    assert_eq!(gguf.f32s("floats").unwrap().collect::<Vec<_>>(), [0.5, -1.0]);
    assert_eq!(gguf.get("yes"), Ok(Value::Bool(true)));
    assert_eq!(gguf.keys().nth(2), Some("i8"));
}

#[test]
fn a_getter_that_cannot_says_which_key_and_what_it_found() {
    let gguf = open_sample();
    let of = [
        (text(gguf.u32("no")), "the key \"no\" is missing"),
        (text(gguf.u32("yes")), "the key \"yes\" holds a boolean; an integer"),
        (text(gguf.u32("i8")), "the key \"i8\" is -2"),
        (text(gguf.u32("u64")), "the key \"u64\" is 1099511627776"),
        (text(gguf.f32("u32")), "holds an integer (u32); a float"),
        (text(gguf.bool("i8")), "the key \"i8\" holds an integer (i8); a boolean"),
        (text(gguf.str("words")), "holds an array of 3 string; a string"),
        (text(gguf.strings("bytes")), "the key \"bytes\" is not valid UTF-8 in item 1"),
        (text(gguf.strings("ints")), "an array of 3 i32; an array of strings"),
        (text(gguf.i32s("floats")), "an array of 2 f32; an array of integers"),
        (text(gguf.i32s("longs")), "the key \"longs\" holds 2147483648 as item 0"),
        (text(gguf.f32s("ints")), "an array of floats"),
    ];
    for (found, expected) in of {
        assert!(found.contains(expected), "{found:?} lacks {expected:?}");
    }
}

#[test]
fn tensors_have_their_shape_type_and_data() {
    for (version, alignment) in [(2, 32), (3, 32), (3, 8), (3, 4096)] {
        let mut file = sample();
        (file.version, file.alignment) = (version, alignment);
        file.u32("general.alignment", alignment as u32);
        let gguf = Gguf::from_bytes(file.bytes()).unwrap();
        assert_eq!(gguf.version(), version);
        let matrix = gguf.tensor("matrix").unwrap();
        assert_eq!((matrix.cols(), matrix.rows(), matrix.row_bytes()), (64, 2, 68));
        assert_eq!((matrix.shape(), matrix.elements()), (&[64, 2][..], 128));
        assert_eq!(matrix.type_name(), "Q8_0");
        assert_eq!(gguf.data(matrix), (0..136).collect::<Vec<u8>>());
        assert!(matrix.offset.is_multiple_of(alignment));
        let vector = gguf.tensor("vector").unwrap();
        assert_eq!(gguf.data(vector), [1.0f32, 2.0, 3.0].map(f32::to_le_bytes).concat());
        assert_eq!(gguf.tensor_index("matrix"), Some(1));
        assert_eq!(gguf.tensor("matri"), None);
    }
}

#[test]
fn inspect_shows_everything_and_no_control_characters() {
    let gguf = open_sample();
    let (mut shown, mut json) = (Vec::new(), Vec::new());
    inspect::write_text(&gguf, &mut shown).unwrap();
    inspect::write_json(&gguf, &mut json).unwrap();
    let (shown, json) = (String::from_utf8(shown).unwrap(), String::from_utf8(json).unwrap());
    for control in ['\x1b', '\u{9b}'] {
        assert!(!shown.contains(control) && !json.contains(control));
    }
    for line in ["f32 = 1e-5", "words = 3 string [\"one\", \"\", \"drei\"]", "Q8_0       [64, 2]"] {
        assert!(shown.contains(line), "{line} is not in:\n{shown}");
    }
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["metadata"]["escape"], "\x1b[2J\u{9b}1m");
    assert_eq!(json["metadata"]["u64"], 1u64 << 40);
    assert_eq!(json["metadata"]["ints"]["first"][0], -1);
    assert_eq!(json["metadata"]["words"]["len"], 3);
    assert_eq!(json["types"]["Q8_0"]["bytes"], 136);
    assert_eq!(json["tensors"][1]["shape"], serde_json::json!([64, 2]));
    assert_eq!(json["tensors"].as_array().unwrap().len(), 2);
}

#[test]
fn the_hash_sees_every_byte_but_padding() {
    let file = sample();
    let built = file.build();
    let hash = |bytes: Vec<u8>| Gguf::from_bytes(bytes).unwrap().hash();
    let plain = hash(built.bytes.clone());
    assert_eq!(plain.len(), 32);
    assert_eq!(hash(built.bytes.clone()), plain);
    for mark in ["data of vector", "data of matrix", "value of f32"] {
        let mut changed = built.bytes.clone();
        changed[built.at(mark)] ^= 1;
        assert_ne!(hash(changed), plain, "{mark}");
    }
    let mut padded = built.bytes.clone();
    padded[built.at("data of matrix") - 1] ^= 1;
    assert_eq!(hash(padded), plain);
    let gguf = open_sample();
    let hashes: Vec<_> = gguf.tensors().iter().map(|tensor| gguf.tensor_hash(tensor)).collect();
    assert_eq!(gguf.hash_with(&hashes), plain);
}

#[test]
fn writing_to_an_open_file_changes_no_metadata() {
    let path = fresh_folder("written").join("m.gguf");
    let bytes = sample().bytes();
    std::fs::write(&path, &bytes).unwrap();
    let gguf = gguf::open(&path).unwrap();
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all(&vec![0xff; bytes.len()]).unwrap();
    assert_eq!(gguf.str("general.architecture"), Ok("llada"));
    assert_eq!(gguf.strings("words").unwrap().collect::<Vec<_>>(), ["one", "", "drei"]);
    let matrix = gguf.tensor("matrix").unwrap();
    assert_eq!(gguf.data(matrix), [0xff; 136], "the file was not written in place");
}

#[test]
fn a_long_header_is_read_to_its_end() {
    let mut file = sample();
    let long = "x".repeat(9 << 20);
    file.str("long", &long);
    let gguf = Gguf::from_bytes(file.bytes()).unwrap();
    assert_eq!(gguf.str("long"), Ok(&*long));
    assert_eq!(gguf.data(gguf.tensor("matrix").unwrap()), (0..136).collect::<Vec<u8>>());
    let short = file.bytes()[..8_500_000].to_vec();
    assert!(text(Gguf::from_bytes(short)).contains("the file ends inside the value of the key"));
}

#[test]
fn a_split_model_opens_whole_from_any_part() {
    let folder = fresh_folder("split");
    let path = |part: usize| folder.join(format!("m-x-of-y-{:05}-of-00003.gguf", part + 1));
    for part in 0..3u32 {
        let mut file = GgufWriter::new();
        file.u32("split.no", part).u32("split.count", 3).u32("split.tensors.count", 3);
        file.f32_tensor(&format!("t{part}"), &[1], &[part as f32]);
        if part == 0 {
            file.str("general.name", "whole");
        }
        std::fs::write(path(part as usize), file.bytes()).unwrap();
    }
    for part in 0..3 {
        let gguf = gguf::open(&path(part)).unwrap();
        assert_eq!((gguf.part_count(), gguf.str("general.name")), (3, Ok("whole")));
        for (index, tensor) in gguf.tensors().iter().enumerate() {
            assert_eq!((tensor.part, &tensor.name), (index, &format!("t{index}")));
            assert_eq!(gguf.data(tensor), (index as f32).to_le_bytes());
            gguf.release(tensor);
            assert_eq!(gguf.data(tensor), (index as f32).to_le_bytes());
        }
    }
    let sources = |order: [usize; 3]| {
        let part = |part| Box::new(std::fs::read(path(part)).unwrap()) as Box<dyn FileBytes>;
        Gguf::from_parts(order.map(part).into())
    };
    assert_eq!(sources([0, 1, 2]).unwrap().tensors().len(), 3);
    // A link has a name of its own; the parts are where it leads.
    let link = fresh_folder("split-link").join("model.gguf");
    std::os::unix::fs::symlink(path(1), &link).unwrap();
    assert_eq!(gguf::open(&link).unwrap().part_count(), 3);
    let renamed = folder.join("renamed.gguf");
    std::fs::copy(path(0), &renamed).unwrap();
    assert!(text(gguf::open(&renamed)).contains("must keep its name"));
    let joined: Vec<u8> = (0..3).flat_map(|part| std::fs::read(path(part)).unwrap()).collect();
    std::fs::write(&renamed, joined).unwrap();
    assert!(text(gguf::open(&renamed)).contains("joined byte by byte"));
    assert!(text(sources([0, 2, 1])).contains("part 1: the key \"split.no\" is 2"));
    assert!(text(Gguf::from_parts(Vec::new())).contains("no parts"));
}

#[test]
fn files_of_other_kinds_are_told_by_name() {
    let safetensors = [&60u64.to_le_bytes()[..], br#"{"__metadata__":{"format":"pt"}}"#].concat();
    let cases: [(&[u8], &str); 5] = [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
        (b"\n<!DOCTYPE html>\n<html>", "an HTML page"),
        (b"<HTML><head>", "an HTML page"),
        (b"PK\x03\x04\x14\0\0\0", "convert_hf_to_gguf.py"),
        (&safetensors, "a safetensors file"),
    ];
    for (bytes, words) in cases {
        let message = text(Gguf::from_bytes(bytes.to_vec()));
        assert!(message.starts_with("not a GGUF file but") && message.contains(words), "{message}");
    }
    assert!(text(Gguf::from_bytes(b"GGML".to_vec())).contains("it starts with"));
}

#[test]
fn a_path_that_cannot_be_read_is_named() {
    let folder = fresh_folder("io");
    for path in [folder.join("absent.gguf"), folder.clone()] {
        let message = text(gguf::open(&path));
        assert!(message.contains(&path.display().to_string()), "{message}");
    }
    let empty = folder.join("empty.gguf");
    std::fs::write(&empty, []).unwrap();
    assert!(text(gguf::open(&empty)).contains("empty"));
}

#[test]
fn reference_files_open_and_cover_their_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference");
    let files: Vec<PathBuf> = ["models", "tokenizer"]
        .iter()
        .filter_map(|name| std::fs::read_dir(folder.join(name)).ok())
        .flat_map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())))
        .filter(|path| path.extension().is_some_and(|extension| extension == "gguf"))
        .collect();
    if files.is_empty() {
        println!("skipped: no reference files in {}", folder.display());
    }
    for path in files {
        let gguf = gguf::open(&path).unwrap();
        assert!(["llada", "dream"].contains(&gguf.str("general.architecture").unwrap()));
        let tokens = gguf.strings("tokenizer.ggml.tokens").unwrap().len();
        assert_eq!(gguf.i32s("tokenizer.ggml.token_type").unwrap().count(), tokens);
        // These files pad every tensor to 32 bytes, so sizes that were off would show here.
        let mut end = gguf.tensors().first().map_or(0, |tensor| tensor.offset);
        for tensor in gguf.tensors() {
            assert_eq!(tensor.offset, end, "{}: {}", path.display(), tensor.name);
            end = (tensor.offset + tensor.bytes).next_multiple_of(32);
        }
        assert!(end == 0 || end as u64 == gguf.file_bytes(), "{}", path.display());
        inspect::write_text(&gguf, &mut std::io::sink()).unwrap();
        inspect::write_json(&gguf, &mut std::io::sink()).unwrap();
    }
}

/// Touches all that a broken file could make go wrong.
fn read_all(bytes: Vec<u8>) {
    let Ok(gguf) = Gguf::from_bytes(bytes) else { return };
    for tensor in gguf.tensors() {
        assert_eq!(gguf.data(tensor).len(), tensor.bytes);
        assert_eq!(tensor.row_bytes() as u64 * tensor.rows(), tensor.bytes as u64);
    }
    for key in gguf.keys() {
        assert!(gguf.get(key).is_ok());
        let _ = (gguf.u32(key), gguf.f32(key), gguf.str(key), gguf.bool(key));
        let _ = gguf.strings(key).map(Iterator::count);
        let _ = gguf.i32s(key).map(Iterator::count);
        let _ = gguf.f32s(key).map(Iterator::count);
    }
    inspect::write_text(&gguf, &mut std::io::sink()).unwrap();
    inspect::write_json(&gguf, &mut std::io::sink()).unwrap();
    assert_eq!(gguf.hash().len(), 32);
}

/// Counts and sizes at which arithmetic goes wrong.
const NUMBERS: &[u64] = &[0, 1, 1 << 31, 1 << 32, 1 << 62, 1 << 63, u64::MAX - 31, u64::MAX];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_never_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = sample().bytes();
        for (index, value) in flips {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        read_all(bytes);
    }

    #[test]
    fn cuts_and_splices_never_panic(
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
        insert in prop::collection::vec(any::<u8>(), 0..16),
    ) {
        let mut bytes = sample().bytes();
        let (a, b) = (from.index(bytes.len()), to.index(bytes.len()));
        bytes.splice(a.min(b)..a.max(b), insert);
        read_all(bytes);
    }

    #[test]
    fn large_numbers_anywhere_never_panic(
        mark in any::<prop::sample::Index>(),
        value in prop::sample::select(NUMBERS),
    ) {
        let built = sample().build();
        let at = built.marks[mark.index(built.marks.len())].1;
        let mut bytes = built.bytes;
        for (slot, byte) in bytes[at..].iter_mut().zip(value.to_le_bytes()) {
            *slot = byte;
        }
        read_all(bytes);
    }

    #[test]
    fn any_bytes_after_the_magic_never_panic(tail in prop::collection::vec(any::<u8>(), 0..256)) {
        let mut bytes = b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0".to_vec();
        bytes.extend(tail);
        read_all(bytes);
    }
}

fn fresh_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
