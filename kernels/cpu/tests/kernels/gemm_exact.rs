//! Matrix products of small integers, which must come out exact: not a bit is left to rounding.

use crate::activations::{Tokens, multiply};
use crate::blocks::{SHAPES, Shape, pack};
use crate::random::Random;
use dllm_cpu::Kernels;
use dllm_cpu::dtype::Dtype;

/// f16 one.
const ONE: u16 = 0x3c00;

/// Sums of up to this are exact in f32, in any order.
const EXACT: i64 = 1 << 24;

/// All weights are integers and the scales of the activations are 1, so that every intermediate
/// value is an integer too; the sum of magnitudes shows that it has at most 24 bits.
fn check(what: &str, shape: &Shape, rows: &[Vec<u8>], codes: &[Vec<i8>]) {
    let cols = codes[0].len();
    let factors = vec![vec![1.0; cols / shape.activation_block()]; codes.len()];
    let x = Tokens::new(codes.to_vec(), factors, shape.activation_block(), codes.len());
    let panel = pack(shape.dtype, rows, cols);
    for kernels in Kernels::all() {
        let out = multiply(kernels, shape.dtype, &panel, &x);
        for (row, source) in rows.iter().enumerate() {
            let weights = shape.weights(source, cols);
            for (token, codes) in codes.iter().enumerate() {
                let sum = |weights: &[f64], code: fn(i8) -> i64| -> i64 {
                    weights.iter().zip(codes).map(|(&w, &x)| w as i64 * code(x)).sum()
                };
                let size = sum(&weights.magnitudes, |x| i64::from(x).abs());
                assert!(size <= EXACT, "{} {what}: not exact, {size}", shape.dtype);
                let (got, want) = (out[token * 16 + row], sum(&weights.values, i64::from));
                assert!(
                    got == want as f32,
                    "{} {what}, {}, token {token} row {row}: {got} ({:#010x}) instead of {want}",
                    shape.dtype,
                    kernels.name(),
                    got.to_bits()
                );
            }
        }
    }
}

#[test]
fn random_codes_and_scales_of_one() {
    let mut random = Random(5);
    for shape in &SHAPES {
        let rows: Vec<_> =
            (0..16).map(|_| shape.row_of_halves(&mut random, 512, ONE, ONE)).collect();
        let codes: Vec<Vec<i8>> =
            (0..8).map(|_| (0..512).map(|_| random.integer(-5, 5) as i8).collect()).collect();
        check("random", shape, &rows, &codes);
    }
}

/// A block of one code everywhere, every scale and min one.
fn unit_block(shape: &Shape, code: u8) -> Vec<u8> {
    let mut block = shape.filled(code, 0x01, ONE, ONE);
    let scales = &mut block[shape.scales.clone()];
    match shape.dtype {
        Dtype::Q2_K => scales.fill(0x11),
        // Six-bit scales minus 32: a 1 in the low nibbles, a 2 in the pairs of high bits.
        Dtype::Q3_K => {
            scales[..8].fill(0x11);
            scales[8..].fill(0xaa);
        }
        Dtype::IQ4_XS => {
            scales[..2].fill(0xaa);
            scales[2..].fill(0x11);
        }
        _ => {}
    }
    block
}

/// Every code at an extreme and every activation at an extreme: where int16 sums would saturate
/// or wrap, the result would be off by thousands.
#[test]
fn sums_at_their_largest() {
    for shape in &SHAPES {
        let copies = 256 / shape.dtype.block_weights();
        let rows: Vec<_> = [0xff, 0x00, 0x7f, 0x80, 0x81, 0xf0, 0x0f]
            .map(|code| unit_block(shape, code).repeat(copies))
            .into();
        let codes: Vec<Vec<i8>> = vec![
            vec![127; 256],
            vec![-127; 256],
            (0..256).map(|k| if k % 2 == 0 { 127 } else { -127 }).collect(),
            (0..256).map(|k| if k % 4 < 2 { 127 } else { -127 }).collect(),
        ];
        check("largest", shape, &rows, &codes);
    }
}

/// One weight at a time, by an activation of one: each column meets its own weight.
#[test]
fn every_weight_in_its_place() {
    let mut random = Random(6);
    for shape in &SHAPES {
        let rows: Vec<_> =
            (0..16).map(|_| shape.row_of_halves(&mut random, 256, ONE, ONE)).collect();
        let codes: Vec<Vec<i8>> =
            (0..256).map(|at| (0..256).map(|k| i8::from(k == at)).collect()).collect();
        check("one weight", shape, &rows, &codes);
    }
}
