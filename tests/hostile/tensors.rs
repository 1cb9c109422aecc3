//! Tensor tables whose names, shapes, types or offsets are wrong.

use crate::case::Case;
use crate::common::gguf_writer::{GgufWriter, tensor_type as ty};
use crate::layout::small;

pub fn cases() -> Vec<Case> {
    let mut cases = names();
    cases.extend(shapes());
    cases.extend(types());
    cases.extend(places());
    cases
}

fn changed(change: impl Fn(&mut GgufWriter)) -> Vec<u8> {
    let mut file = small();
    change(&mut file);
    file.bytes()
}

fn names() -> Vec<Case> {
    let renamed = |name: &[u8]| changed(|file| file.tensor_mut("b").name = name.to_vec());
    let length = |len: u64| small().build().patch("name of tensor b", &len.to_le_bytes());
    vec![
        Case::inspect("two tensors of one name", renamed(b"a"), "the tensor \"a\" occurs twice"),
        Case::inspect("a tensor without a name", renamed(b""), "tensor name"),
        Case::inspect("a name that is not UTF-8", renamed(b"\xc3("), "tensor name"),
        Case::inspect("a name over the cap", renamed(&[b'n'; 257]), "at most 256"),
        Case::inspect("a name of 2^64 - 1 bytes", length(u64::MAX), "length of the tensor name"),
    ]
}

fn shapes() -> Vec<Case> {
    let shaped = |shape: &[u64]| changed(|file| file.tensor_mut("a").shape = shape.to_vec());
    let dims = |count: u32| small().build().patch("dimensions of a", &count.to_le_bytes());
    let q8_0 = |shape: &[u64]| changed(|file| file.tensor_mut("b").shape = shape.to_vec());
    vec![
        Case::inspect("no dimensions", shaped(&[]), "the tensor \"a\" has 0 dimensions"),
        Case::inspect("five dimensions", shaped(&[1; 5]), "the tensor \"a\" has 5 dimensions"),
        Case::inspect("2^32 - 1 dimensions", dims(u32::MAX), "the tensor \"a\" has 4294967295"),
        Case::inspect(
            "no columns",
            shaped(&[0, 2]),
            "the tensor \"a\" has length 0 in dimension 0",
        ),
        Case::inspect("no rows", shaped(&[4, 0]), "length 0 in dimension 1"),
        Case::inspect("no fourth dimension", shaped(&[4, 1, 1, 0]), "length 0 in dimension 3"),
        Case::inspect(
            "2^64 elements",
            shaped(&[1 << 32, 1 << 32]),
            "the tensor \"a\" has the shape",
        ),
        Case::inspect("2^80 elements", shaped(&[1 << 20; 4]), "exceeds 64 bits"),
        Case::inspect("2^63 elements", shaped(&[1 << 63]), "exceeds 64 bits"),
        Case::inspect("2^62 elements, 2^64 bytes", shaped(&[1 << 62]), "exceeds 64 bits"),
        Case::inspect("2^61 - 1 elements", shaped(&[(1 << 61) - 1]), "the tensor \"a\" takes"),
        Case::inspect(
            "more rows than data",
            shaped(&[4, 200]),
            "the tensor \"a\" takes 3200 bytes",
        ),
        Case::inspect("half a block", q8_0(&[48, 2]), "the tensor \"b\" has rows of 48 elements"),
        Case::inspect(
            "a row of one in blocks",
            q8_0(&[1, 64]),
            "Q8_0 cannot cut into blocks of 32",
        ),
        Case::inspect(
            "half a block of Q4_K",
            changed(|file| {
                let tensor = file.tensor_mut("b");
                (tensor.ty, tensor.shape) = (ty::Q4_K, vec![128]);
            }),
            "blocks of 256",
        ),
    ]
}

fn types() -> Vec<Case> {
    let typed = |ty: u32| changed(|file| file.tensor_mut("a").ty = ty);
    vec![
        Case::inspect("tensor type 43", typed(43), "the tensor \"a\" has type 43"),
        Case::inspect("tensor type of another tool", typed(139), "the tensor \"a\" has type 139"),
        Case::inspect("tensor type 2^32 - 1", typed(u32::MAX), "has type 4294967295"),
    ]
}

fn places() -> Vec<Case> {
    let placed = |offset: u64| changed(|file| file.tensor_mut("b").offset = Some(offset));
    let page = |offset: u64| {
        changed(|file| {
            file.u32("general.alignment", 4096);
            file.alignment = 4096;
            file.tensor_mut("b").offset = Some(offset);
        })
    };
    vec![
        Case::inspect("offset 33", placed(33), "the tensor \"b\" starts at data offset 33"),
        Case::inspect("offset 2^64 - 32", placed(u64::MAX - 31), "the tensor \"b\" takes"),
        Case::inspect("offset 2^63", placed(1 << 63), "the tensor \"b\" takes"),
        Case::inspect("offset 2^40", placed(1 << 40), "from data offset 1099511627776"),
        Case::inspect("aligned to less than the file says", page(32), "the alignment 4096"),
        Case::inspect(
            "two tensors at one place",
            placed(0),
            "starts before the data of the tensor",
        ),
        Case::inspect(
            "two tensors overlap",
            changed(|file| {
                file.tensor_mut("a").offset = Some(160);
                file.tensor_mut("b").offset = Some(32);
                file.tensor_mut("c").offset = Some(0);
            }),
            "the tensor \"a\" starts before the data of the tensor \"b\" end",
        ),
    ]
}
