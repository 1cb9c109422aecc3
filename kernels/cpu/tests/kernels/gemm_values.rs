//! Matrix products against f64 products of the decoded weights, within a derived bound.
//!
//! Let `w = scale * code - min` be a weight, `p` and `m` its two parts, `x` an activation's code
//! and `dx` its scale. The kernel adds, for each block of 256 (or 32) weights, `dx (d i - dm j)`
//! to the output, where i and j are integers, computed exactly, with `|d i| <= sum |p x|` and
//! `|dm j| <= sum |m x|`. Each such term is rounded
//!
//! - once where the integer is made an f32,
//! - once or twice in `d i - dm j`,
//! - once in the fused multiply-add by `dx` and in each later one: at most `terms` times,
//!
//! and the decoded weights of the oracle are rounded twice (the product, the difference; the
//! K-quants' scale times super-scale has at most 19 bits and is exact). The oracle's own f64
//! sums are a hundred thousand times finer than one more rounding. So the error is at most that
//! of `terms + 5` roundings of `sum (|p| + |m|) |x| dx`. Where `d i` is not a normal number its
//! error is absolute: up to 2^-150 times `dx`, once a term.

use crate::activations::{Tokens, multiply};
use crate::bits::{assert_near, roundings};
use crate::blocks::{SHAPES, Shape, Weights, pack};
use crate::random::Random;
use dllm_cpu::Kernels;

/// The error of a term whose scale is not a normal number.
const UNDERFLOW: f64 = 1.0 / (1u128 << 120) as f64;

/// The product of a row and a token, and the bound on the kernels' error.
fn product(shape: &Shape, weights: &Weights, x: &Tokens, token: usize) -> (f64, f64) {
    let block = shape.activation_block();
    let (mut sum, mut size) = (0.0, 0.0);
    for (k, &code) in x.codes[token].iter().enumerate() {
        let value = f64::from(code) * f64::from(x.factors[token][k / block]);
        sum += weights.values[k] * value;
        size += weights.magnitudes[k] * value.abs();
    }
    let terms = x.codes[token].len().div_ceil(block);
    (sum, roundings(terms + 5) * size + terms as f64 * UNDERFLOW)
}

fn check(what: &str, shape: &Shape, rows: &[Vec<u8>], x: &Tokens) {
    let cols = x.codes[0].len();
    let panel = pack(shape.dtype, rows, cols);
    let weights: Vec<_> = rows.iter().map(|row| shape.weights(row, cols)).collect();
    let outputs: Vec<_> = Kernels::all()
        .map(|kernels| (kernels.name(), multiply(kernels, shape.dtype, &panel, x)))
        .collect();
    for token in 0..x.codes.len() {
        for (row, weights) in weights.iter().enumerate() {
            let (want, bound) = product(shape, weights, x, token);
            for (name, out) in &outputs {
                let what = format!("{} {what}, {name}", shape.dtype);
                assert_near(&what, [token, row], out[token * 16 + row], want, bound);
            }
        }
    }
}

#[test]
fn random_blocks() {
    let mut random = Random(3);
    for shape in &SHAPES {
        let short = [32, 96, 288];
        let short = if shape.activation_block() == 32 { &short[..] } else { &[] };
        for &cols in [256, 768, 1280].iter().chain(short) {
            for (rows, tokens) in [(16, 8), (11, 5)] {
                let source: Vec<_> =
                    (0..rows).map(|_| shape.random_row(&mut random, cols)).collect();
                let x = Tokens::random(&mut random, shape, cols, tokens, tokens + 1);
                check("random", shape, &source, &x);
            }
        }
    }
}

/// Codes at their extremes: all +127, all -127, alternating by one and by four (so that neither
/// pairs nor quadruples cancel), ramps, zeros.
fn extreme_codes(cols: usize) -> Vec<Vec<i8>> {
    let row = |f: fn(usize) -> i8| (0..cols).map(f).collect::<Vec<i8>>();
    vec![
        row(|_| 127),
        row(|_| -127),
        row(|k| if k % 2 == 0 { 127 } else { -127 }),
        row(|k| if k % 8 < 4 { -127 } else { 127 }),
        row(|k| if k / 32 % 2 == 0 { 127 } else { -1 }),
        row(|k| ((k % 255) as i16 - 127) as i8),
        row(|_| 0),
    ]
}

/// Halves: zero, the least and the largest subnormal, the least normal, one, the largest.
const HALVES: [u16; 6] = [0x0000, 0x0001, 0x03ff, 0x0400, 0x3c00, 0x7bff];

#[test]
fn adversarial_blocks() {
    const COLS: usize = 256;
    let codes = extreme_codes(COLS);
    for shape in &SHAPES {
        let mut blocks = vec![];
        let copies = COLS / shape.dtype.block_weights();
        for code in [0xff, 0x00, 0x7f, 0x80] {
            for scale in [0xff, 0x00, 0x7f, 0x80] {
                for (i, d) in HALVES.into_iter().enumerate() {
                    let d = if i % 2 == 0 { d } else { d | 0x8000 };
                    let m = HALVES[(i + 2) % 6] | if i < 3 { 0x8000 } else { 0 };
                    blocks.push(shape.filled(code, scale, d, m).repeat(copies));
                }
            }
        }
        for dx in [1.0, 0.007_874, 3e25, 1e-39] {
            let factors = vec![vec![dx; copies]; codes.len()];
            let x = Tokens::new(codes.clone(), factors, shape.activation_block(), codes.len());
            for rows in blocks.chunks(16) {
                check(&format!("adversarial, scale {dx:e}"), shape, rows, &x);
            }
        }
    }
}

/// Scales at their extremes over random codes, which tell one sub-block from another.
#[test]
fn extreme_halves_over_random_codes() {
    let mut random = Random(4);
    for shape in &SHAPES {
        let rows: Vec<_> = HALVES
            .into_iter()
            .flat_map(|half| [half, half | 0x8000])
            .map(|half| shape.row_of_halves(&mut random, 512, half, half ^ 0x8000))
            .collect();
        let x = Tokens::random(&mut random, shape, 512, 7, 7);
        check("extreme halves", shape, &rows, &x);
    }
}
