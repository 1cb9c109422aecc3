//! Kernels between guard pages, and with NaN and noise in all memory that is not theirs to use.

use crate::activations::{Tokens, multiply};
use crate::bits::{assert_same, scalar};
use crate::blocks::{SHAPES, pack};
use crate::guard::{Edge, Guarded};
use crate::probe::{Exp, Head};
use crate::random::Random;
use dllm_cpu::Kernels;
use dllm_cpu::gemm::{Activations, GemmPanelF32, multiply_panel};
use dllm_cpu::ops::{
    Attention, Quantize32, Quantize256, RmsNorm, Rope, RopeStyle, SiluMul, attention_scratch_floats,
};

/// Runs `f` for every kernel and either edge.
fn everywhere(mut f: impl FnMut(Kernels, Edge)) {
    for kernels in Kernels::all() {
        for edge in [Edge::Start, Edge::End] {
            f(kernels, edge);
        }
    }
}

#[test]
fn isa_guarded_gemm() {
    let mut random = Random(40);
    for shape in &SHAPES {
        for tokens in [1, 5] {
            let rows: Vec<_> = (0..16).map(|_| shape.random_row(&mut random, 256)).collect();
            let panel = pack(shape.dtype, &rows, 256);
            let x = Tokens::random(&mut random, shape, 256, tokens, tokens);
            let want = multiply(scalar(), shape.dtype, &panel, &x);
            everywhere(|kernels, edge| {
                let panel = Guarded::new(&panel, edge);
                let (codes, sums) = (Guarded::new(&x.words, edge), Guarded::new(&x.sums, edge));
                let scales = Guarded::new(&x.scales, edge);
                let mut out = Guarded::new(&vec![f32::NAN; want.len()], edge);
                let (codes, sums, scales) = (&*codes, &*sums, &*scales);
                let x = Activations { codes, sums, scales, tokens, capacity: tokens };
                multiply_panel(kernels, shape.dtype, &panel, x, &mut out);
                assert_same(shape.dtype.name(), kernels, &out, &want, 16);
            });
        }
    }
}

#[test]
fn isa_guarded_gemm_of_floats() {
    let mut random = Random(41);
    for (cols, tokens) in [(1, 1), (37, 6), (64, 4)] {
        let (panel, x) = (random.floats(cols * 16, 1.0), random.floats(cols * tokens, 1.0));
        everywhere(|kernels, edge| {
            let (panel, x) = (Guarded::new(&panel, edge), Guarded::new(&x, edge));
            let mut out = Guarded::new(&vec![f32::NAN; tokens * 16], edge);
            let (panel, x) = (&panel[..], &x[..]);
            kernels.run(GemmPanelF32 { panel, x, stride: cols, tokens, out: &mut out });
            assert!(out.iter().all(|x| x.is_finite()));
        });
    }
}

#[test]
fn isa_guarded_attention() {
    let mut random = Random(42);
    for [queries, keys, width] in [[1, 1, 8], [5, 33, 24], [16, 64, 32], [11, 97, 16]] {
        let head = Head::random(&mut random, [queries, keys, width], 5.0, f32::NAN);
        let packed = |rows: &[f32], stride| {
            let rows = rows.chunks(stride).take(keys).flat_map(|row| &row[..width]);
            rows.copied().collect::<Vec<f32>>()
        };
        let (k, v) = (packed(&head.k, head.key_stride), packed(&head.v, head.value_stride));
        let want = head.run(scalar());
        everywhere(|kernels, edge| {
            let (q, k, v) =
                (Guarded::new(&head.q, edge), Guarded::new(&k, edge), Guarded::new(&v, edge));
            let mut scratch = Guarded::new(&vec![f32::NAN; attention_scratch_floats(width)], edge);
            let mut out = Guarded::new(&vec![f32::NAN; queries * width], edge);
            kernels.run(Attention {
                q: &q,
                scale: head.scale,
                k: &k,
                key_stride: width,
                v: &v,
                value_stride: width,
                keys,
                head_width: width,
                scratch: &mut scratch,
                out: &mut out,
            });
            assert_same("attention", kernels, &out, &want, width);
        });
    }
}

#[test]
fn isa_guarded_operators_on_rows() {
    let mut random = Random(43);
    for width in [8, 24, 256] {
        let (a, b) = (random.floats(width, 2.0), random.floats(width, 2.0));
        everywhere(|kernels, edge| {
            let (x, weight) = (Guarded::new(&a, edge), Guarded::new(&b, edge));
            let mut y = Guarded::new(&vec![f32::NAN; width], edge);
            kernels.run(RmsNorm { x: &x, weight: &weight, epsilon: 1e-5, y: &mut y });
            assert!(y.iter().all(|y| y.is_finite()));
            kernels.run(SiluMul { gate: &mut y, up: &x });
            kernels.run(Exp(&mut y));
            for style in [RopeStyle::Norm, RopeStyle::Neox] {
                let (cos, sin) = (&x[..width / 2], &weight[width - width / 2..]);
                kernels.run(Rope { x: &mut y, head_width: width, cos, sin, style });
            }
            let (mut codes, mut sums) =
                (Guarded::new(&[-1; 64], edge), Guarded::new(&[-1; 16], edge));
            let mut scales = Guarded::new(&[f32::NAN; 8], edge);
            kernels.run(Quantize256 { x: &x, codes: &mut codes, sums: &mut sums });
            let (codes, sums, scales) = (&mut codes[..], &mut sums[..], &mut scales[..]);
            kernels.run(Quantize32 { x: &x, codes, sums, scales });
            assert!(scales.iter().all(|x| x.is_finite()));
            assert!(codes[width / 4..].iter().all(|&word| word == 0));
        });
    }
}

/// [`Tokens::new`] poisons whatever lies beyond the tokens present and beyond the sums.
#[test]
fn isa_capacity_beyond_the_tokens_is_not_looked_at() {
    let mut random = Random(44);
    for shape in &SHAPES {
        let rows: Vec<_> = (0..16).map(|_| shape.random_row(&mut random, 512)).collect();
        let panel = pack(shape.dtype, &rows, 512);
        let x = Tokens::random(&mut random, shape, 512, 4, 4);
        let block = shape.activation_block();
        let roomy = Tokens::new(x.codes.clone(), x.factors.clone(), block, 11);
        for kernels in Kernels::all() {
            let want = multiply(kernels, shape.dtype, &panel, &x);
            let got = multiply(kernels, shape.dtype, &panel, &roomy);
            assert!(want.iter().all(|x| x.is_finite()));
            assert_same(shape.dtype.name(), kernels, &got, &want, 16);
        }
    }
}

#[test]
fn isa_keys_and_values_beyond_the_last_are_not_looked_at() {
    for [queries, keys, width] in [[1, 1, 8], [6, 33, 16], [4, 63, 8], [16, 64, 32], [9, 97, 8]] {
        let head = |poison| Head::random(&mut Random(45), [queries, keys, width], 9.0, poison);
        for kernels in Kernels::all() {
            let want = head(0.0).run(kernels);
            for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30] {
                let what = format!("{queries} queries, {keys} keys, {poison} beyond");
                assert_same(&what, kernels, &head(poison).run(kernels), &want, width);
            }
        }
    }
}
