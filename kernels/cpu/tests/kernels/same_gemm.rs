//! Matrix products of every kernel against the scalar ones, bit for bit.

use crate::activations::{Tokens, multiply};
use crate::bits::{assert_near, assert_same, others, roundings, scalar};
use crate::blocks::{SHAPES, Shape, pack};
use crate::random::Random;
use dllm_cpu::Kernels;
use dllm_cpu::dtype::Dtype;
use dllm_cpu::gemm::{ActivationKind, GemmPanelF32, TOKEN_TILE_MAX, activation_kind};

/// One panel against some tokens.
fn check(shape: &Shape, [cols, rows, tokens, capacity]: [usize; 4]) {
    let mut random = Random((cols * 1_000_000 + rows * 10_000 + tokens * 100 + capacity) as u64);
    let source: Vec<_> = (0..rows).map(|_| shape.random_row(&mut random, cols)).collect();
    let panel = pack(shape.dtype, &source, cols);
    let x = Tokens::random(&mut random, shape, cols, tokens, capacity);
    let want = multiply(scalar(), shape.dtype, &panel, &x);
    let what = format!("{} {rows}x{cols}, {tokens} of {capacity} tokens", shape.dtype);
    for (i, value) in want.iter().enumerate() {
        let missing = i % 16 >= rows;
        let good = value.is_finite() && (!missing || value.to_bits() == 0);
        assert!(good, "{what}, output {i}: {value}");
    }
    // A product of 32 small integers may be zero by chance, not half of them.
    let zeros = want.iter().filter(|value| **value == 0.0).count();
    assert!(2 * (zeros - tokens * (16 - rows)) <= tokens * rows, "{what}: {zeros} zeros");
    for kernels in others() {
        let got = multiply(kernels, shape.dtype, &panel, &x);
        assert_same(&what, kernels, &got, &want, 16);
    }
}

/// Numbers of tokens up to two token tiles and one more, then many.
fn token_counts() -> impl Iterator<Item = usize> {
    (1..=2 * TOKEN_TILE_MAX + 1).chain([37])
}

fn widths(shape: &Shape) -> &'static [usize] {
    let all = &[256, 512, 768, 1280, 32, 288];
    if shape.dtype.block_weights() == 256 { &all[..4] } else { all }
}

#[test]
fn isa_gemm() {
    for shape in &SHAPES {
        for tokens in token_counts() {
            check(shape, [256, 16, tokens, tokens]);
        }
        for (i, &cols) in widths(shape).iter().enumerate() {
            let rows = [1, 5, 16][i % 3];
            check(shape, [cols, rows, TOKEN_TILE_MAX + 1, 9]);
        }
    }
}

#[test]
fn gemm_is_the_same_over_everything_at_once() {
    for shape in &SHAPES {
        for &cols in widths(shape) {
            for rows in [1, 5, 16] {
                for tokens in token_counts() {
                    check(shape, [cols, rows, tokens, tokens + 3]);
                }
            }
        }
    }
}

#[test]
fn activations_have_a_scale_for_each_block_of_the_weights() {
    for shape in &SHAPES {
        let want = match shape.dtype.block_weights() {
            256 => ActivationKind::Per256,
            _ => ActivationKind::Per32,
        };
        assert_eq!(activation_kind(shape.dtype), want, "{}", shape.dtype);
    }
    for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16] {
        assert_eq!(activation_kind(dtype), ActivationKind::Float);
    }
}

/// A float panel and `[tokens][stride]` activations whose gaps are NaN.
struct FloatCase {
    panel: Vec<f32>,
    x: Vec<f32>,
    stride: usize,
    tokens: usize,
}

impl FloatCase {
    fn new(dtype: Dtype, [rows, cols, tokens]: [usize; 3]) -> FloatCase {
        let mut random = Random((rows * 1_000_000 + cols * 1000 + tokens) as u64);
        let source: Vec<_> = (0..rows)
            .map(|_| {
                let numbers = random.floats(cols, 4.0);
                let bytes = numbers.iter().map(|x| x.to_le_bytes());
                match dtype {
                    Dtype::BF16 => bytes.flat_map(|b| [b[2], b[3]]).collect::<Vec<u8>>(),
                    // Any half below the infinities.
                    Dtype::F16 => bytes.flat_map(|b| [b[1], b[2] & 0xbb]).collect(),
                    _ => bytes.flatten().collect(),
                }
            })
            .collect();
        let panel = pack(dtype, &source, cols);
        let panel = panel.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
        let stride = cols + 8;
        let mut x = vec![f32::NAN; (tokens - 1) * stride + cols];
        for row in x.chunks_mut(stride) {
            row[..cols].copy_from_slice(&random.floats(cols, 1.0));
        }
        FloatCase { panel, x, stride, tokens }
    }

    fn multiply(&self, kernels: Kernels) -> Vec<f32> {
        let mut out = vec![f32::NAN; self.tokens * 16 + 16];
        kernels.run(GemmPanelF32 {
            panel: &self.panel,
            x: &self.x,
            stride: self.stride,
            tokens: self.tokens,
            out: &mut out,
        });
        assert!(out.drain(self.tokens * 16..).all(|x| x.is_nan()), "written beyond the end");
        out
    }
}

#[test]
fn isa_gemm_of_floats() {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16] {
        let by_tokens = token_counts().map(|tokens| [16, 64, tokens]);
        let others_too = [[1, 1, 5], [5, 33, 4], [16, 300, 3], [5, 512, 2], [16, 1280, 1]];
        for [rows, cols, tokens] in by_tokens.chain(others_too) {
            let case = FloatCase::new(dtype, [rows, cols, tokens]);
            let want = case.multiply(scalar());
            let what = format!("{dtype} {rows}x{cols}, {tokens} tokens");
            assert!(want.iter().all(|x| x.is_finite()), "{what}");
            for kernels in others() {
                assert_same(&what, kernels, &case.multiply(kernels), &want, 16);
            }
        }
    }
}

/// A chain of `cols` fused multiply-adds: each rounds once, and each product is touched by all
/// roundings from its own on, so the error is at most that of `cols` roundings of every product.
#[test]
fn gemm_of_floats_against_a_product_in_f64() {
    for [rows, cols, tokens] in [[16, 64, 9], [5, 300, 4], [16, 1280, 2]] {
        let case = FloatCase::new(Dtype::F32, [rows, cols, tokens]);
        for kernels in Kernels::all() {
            let out = case.multiply(kernels);
            for (i, &got) in out.iter().enumerate() {
                let (token, row) = (i / 16, i % 16);
                let products = (0..cols).map(|k| {
                    let w = f64::from(case.panel[k * 16 + row]);
                    w * f64::from(case.x[token * case.stride + k])
                });
                let size: f64 = products.clone().map(f64::abs).sum();
                let bound = roundings(cols) * size;
                let want = products.sum();
                assert_near(kernels.name(), [token, row], got, want, bound);
            }
        }
    }
}
