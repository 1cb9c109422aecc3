//! Split models whose parts do not fit together.

use crate::case::{Case, Via};
use crate::common::gguf_writer::{Field, GgufWriter, value_type as ty};

/// Part `number` (from 0) of `count`, of a model of `tensors` tensors, with one tensor of its own.
fn part(number: u16, count: u16, tensors: u32) -> GgufWriter {
    let mut file = GgufWriter::new();
    if number == 0 {
        file.str("general.architecture", "llada");
    }
    let u16_field = |value: u16| Field { ty: ty::U16, bytes: value.to_le_bytes().to_vec() };
    file.set("split.no", u16_field(number))
        .set("split.count", u16_field(count))
        .set("split.tensors.count", Field { ty: ty::I32, bytes: tensors.to_le_bytes().to_vec() })
        .f32_tensor(&format!("t{number}"), &[2], &[1.0, 2.0]);
    file
}

/// A model of three parts that fit.
pub fn whole() -> Vec<(String, Vec<u8>)> {
    (0..3).map(|number| (part_name(number, 3), part(number, 3, 3).bytes())).collect()
}

fn part_name(number: u16, count: u16) -> String {
    format!("model-{:05}-of-{count:05}.gguf", number + 1)
}

/// The parts of [`whole`] with one of them changed.
fn changed(number: usize, change: impl Fn(&mut GgufWriter)) -> Vec<(String, Vec<u8>)> {
    let mut files = whole();
    let mut file = part(number as u16, 3, 3);
    change(&mut file);
    files[number].1 = file.bytes();
    files
}

pub fn cases() -> Vec<Case> {
    let mut cases = files();
    cases.extend(keys());
    cases
}

fn case(name: &str, files: Vec<(String, Vec<u8>)>, expected: &str) -> Case {
    let (name, expected) = (name.to_owned(), expected.to_owned());
    Case { name, via: Via::Inspect, files, expected }
}

/// Parts that are absent, misnamed or cut.
fn files() -> Vec<Case> {
    let mut missing = whole();
    missing.remove(1);
    let mut renamed = whole();
    renamed[0].0 = "weights.gguf".to_owned();
    let mut other_count = whole();
    other_count[0].0 = part_name(0, 4);
    let mut swapped = whole();
    let bytes = swapped[1].1.clone();
    swapped[1].1 = std::mem::replace(&mut swapped[2].1, bytes);
    let mut cut = whole();
    cut[2].1.truncate(50);
    vec![
        case("a part is missing", missing, "model-00002-of-00003.gguf"),
        case("the name says nothing", renamed, "NAME-00001-of-00003.gguf"),
        case("the name says another count", other_count, "NAME-00001-of-00003.gguf"),
        case("two parts swapped", swapped, "split.no"),
        case("a part is cut", cut, "model-00003-of-00003.gguf"),
    ]
}

/// Parts whose keys and tensors contradict each other.
fn keys() -> Vec<Case> {
    let without = |number: usize, key: &str| {
        changed(number, |file| {
            file.remove(key);
        })
    };
    let with = |number: usize, key: &str, value: u32| {
        changed(number, |file| {
            file.u32(key, value);
        })
    };
    let negative = changed(0, |file| {
        file.set("split.count", Field { ty: ty::I32, bytes: vec![0xff; 4] });
    });
    let text = changed(0, |file| {
        file.str("split.count", "3");
    });
    let twice = changed(2, |file| file.tensor_mut("t2").name = b"t0".to_vec());
    let no_number = "the key \"split.no\" is missing";
    vec![
        case("counts differ", with(1, "split.count", 2), "split into 2 parts"),
        case("a part without a number", without(2, "split.no"), no_number),
        case("a part of no split", without(1, "split.count"), "split into 1 parts"),
        case("tensors are missing", with(0, "split.tensors.count", 4), "split.tensors.count"),
        case("a tensor in two parts", twice, "the tensor \"t0\" occurs twice"),
        case("a count of 2^32 - 1", with(0, "split.count", u32::MAX), "split.count"),
        case("a count below zero", negative, "the key \"split.count\" is -1"),
        case("a count as text", text, "the key \"split.count\" holds a string"),
    ]
}
