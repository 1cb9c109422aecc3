//! Decoders against the `gguf` Python package, and the facts of the types against its tables.
//!
//! `data/*.golden` come from `tools/make_decode_goldens.py`: blocks, then what they decode to.

use crate::bits::assert_bits;
use crate::blocks::SHAPES;
use dllm_cpu::decode::{bf16_to_f32, decode_row, f16_to_f32, first_nonfinite};
use dllm_cpu::dtype::Dtype;
use std::path::Path;

/// Type, ggml number, name, weights and bytes of a block (`gguf.constants`).
type Facts = (Dtype, u32, &'static str, usize, usize);

const FACTS: [Facts; 15] = [
    (Dtype::F32, 0, "F32", 1, 4),
    (Dtype::F16, 1, "F16", 1, 2),
    (Dtype::BF16, 30, "BF16", 1, 2),
    (Dtype::Q4_0, 2, "Q4_0", 32, 18),
    (Dtype::Q4_1, 3, "Q4_1", 32, 20),
    (Dtype::Q5_0, 6, "Q5_0", 32, 22),
    (Dtype::Q5_1, 7, "Q5_1", 32, 24),
    (Dtype::Q8_0, 8, "Q8_0", 32, 34),
    (Dtype::Q2_K, 10, "Q2_K", 256, 84),
    (Dtype::Q3_K, 11, "Q3_K", 256, 110),
    (Dtype::Q4_K, 12, "Q4_K", 256, 144),
    (Dtype::Q5_K, 13, "Q5_K", 256, 176),
    (Dtype::Q6_K, 14, "Q6_K", 256, 210),
    (Dtype::IQ4_NL, 20, "IQ4_NL", 32, 18),
    (Dtype::IQ4_XS, 23, "IQ4_XS", 256, 136),
];

#[test]
fn the_facts_of_every_type() {
    assert_eq!(FACTS.map(|facts| facts.0), Dtype::ALL);
    for (dtype, number, name, weights, bytes) in FACTS {
        assert_eq!(Dtype::from_ggml(number), Some(dtype));
        assert_eq!((dtype.name(), dtype.to_string().as_str()), (name, name));
        assert_eq!((dtype.block_weights(), dtype.block_bytes()), (weights, bytes), "{name}");
        assert_eq!(dtype.is_float(), weights == 1, "{name}");
        assert_eq!(dtype.row_bytes(3 * weights), Some(3 * bytes), "{name}");
        assert_eq!(dtype.row_bytes(3 * weights + 1).is_some(), weights == 1, "{name}");
        let most = usize::MAX / weights * weights;
        assert_eq!(dtype.row_bytes(most), (most / weights).checked_mul(bytes), "{name}");
    }
    assert_eq!(Dtype::F32.row_bytes(usize::MAX), None);
    // No other number is a type.
    let known = (0..1000).filter_map(Dtype::from_ggml).count();
    assert_eq!(known, Dtype::ALL.len());
    assert_eq!(Dtype::from_ggml(u32::MAX), None);
}

/// The blocks of a golden and the weights they stand for.
fn golden(name: &str, weights: usize, bytes: usize) -> (Vec<u8>, Vec<f32>) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut blocks = std::fs::read(dir.join(format!("{name}.golden"))).unwrap();
    let n = blocks.len() / (bytes + 4 * weights);
    assert!(n >= 14 && blocks.len() == n * (bytes + 4 * weights), "{name}: damaged golden");
    let values = blocks.split_off(n * bytes);
    let values = values.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap()));
    (blocks, values.collect())
}

#[test]
fn every_type_decodes_as_the_gguf_package_does() {
    for (dtype, _, name, weights, bytes) in FACTS {
        let (blocks, expected) = golden(name, weights, bytes);
        let mut decoded = vec![f32::NAN; expected.len()];
        decode_row(dtype, &blocks, &mut decoded);
        assert_bits(name, &decoded, &expected, weights);
        assert_eq!(first_nonfinite(dtype, &blocks), None, "{name}");
    }
}

#[test]
fn every_half_converts_exactly() {
    for bits in 0..=u16::MAX {
        let (half, brain) = (half::f16::from_bits(bits), half::bf16::from_bits(bits));
        assert_eq!(f16_to_f32(bits).is_nan(), half.is_nan(), "{bits:#06x}");
        assert_eq!(bf16_to_f32(bits).is_nan(), brain.is_nan(), "{bits:#06x}");
        if !half.is_nan() {
            assert_eq!(f16_to_f32(bits).to_bits(), half.to_f32_const().to_bits(), "{bits:#06x}");
        }
        if !brain.is_nan() {
            assert_eq!(bf16_to_f32(bits).to_bits(), brain.to_f32_const().to_bits(), "{bits:#06x}");
        }
    }
}

#[test]
fn the_first_block_with_a_scale_that_is_not_finite_is_found() {
    const N: usize = 2500;
    for shape in &SHAPES {
        let (dtype, bytes) = (shape.dtype, shape.dtype.block_bytes());
        // Bytes that look as infinite as they can, around finite scales.
        let finite = shape.filled(0xff, 0xff, 0xfbff, 0xfbff).repeat(N);
        assert_eq!(first_nonfinite(dtype, &finite), None, "{dtype}");
        assert_eq!(first_nonfinite(dtype, &[]), None, "{dtype}");
        for (at, bits) in shape.halves().zip([0x7c00_u16, 0xfe01]) {
            let mut blocks = finite.clone();
            // From the last block to the first, leaving the later ones in place.
            for block in [N - 1, 2048, 1024, 1023, 1, 0] {
                blocks[block * bytes + at..][..2].copy_from_slice(&bits.to_le_bytes());
                assert_eq!(first_nonfinite(dtype, &blocks), Some(block), "{dtype} offset {at}");
            }
        }
    }
}

#[test]
fn the_first_float_that_is_not_finite_is_found() {
    let cases = [
        (Dtype::F32, 0xff7f_ffff_u32, [0x7f80_0000_u32, 0xff80_0000, 0x7f80_0001]),
        (Dtype::F16, 0xfbff, [0x7c00, 0xfc00, 0x7c01]),
        (Dtype::BF16, 0xff7f, [0x7f80, 0xff80, 0x7f81]),
    ];
    for (dtype, largest, bad) in cases {
        let size = dtype.block_bytes();
        let fine = largest.to_le_bytes()[..size].repeat(2500);
        assert_eq!(first_nonfinite(dtype, &fine), None, "{dtype}");
        for (bits, at) in bad.into_iter().zip([0, 1024, 2499]) {
            let mut floats = fine.clone();
            floats[at * size..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
            assert_eq!(first_nonfinite(dtype, &floats), Some(at), "{dtype} {bits:#x}");
        }
    }
}

#[test]
#[should_panic(expected = "Q4_K: 255 weights")]
fn decoding_to_a_wrong_length_panics() {
    decode_row(Dtype::Q4_K, &[0; 144], &mut [0.0; 255]);
}
