//! Float operators against f64, within derived bounds. `u` is the unit roundoff, 2^-24.

use crate::bits::{UNIT, assert_near, roundings};
use crate::probe::exp;
use crate::random::Random;
use dllm_cpu::Kernels;
use dllm_cpu::ops::{RmsNorm, Rope, RopeStyle, SiluMul};

/// The relative error of `exp`: 2 units in the last place, each at most 2 u of the value.
pub const EXP_ERROR: f64 = 4.0 * UNIT;
/// Below this, and at it, `exp` is zero.
pub const EXP_LOW: f32 = -87.0;

/// Distance to the exact value in units in the last place of it.
fn ulps(got: f32, exact: f64) -> f64 {
    // All values here are normal numbers of f32, so their ulp is 2^(exponent - 23).
    let exponent = (exact.to_bits() >> 52) as i32 & 0x7ff;
    let ulp = f64::from_bits(((exponent - 23) as u64) << 52);
    (f64::from(got) - exact).abs() / ulp
}

#[test]
fn exp_is_within_two_ulps_of_exact() {
    // Every 1021st float from -87 to 88, of either sign and all exponents.
    let mut x: Vec<f32> = (0..=88.0_f32.to_bits()).step_by(1021).map(f32::from_bits).collect();
    x.extend((0x8000_0000..EXP_LOW.to_bits()).step_by(1021).map(f32::from_bits));
    x.extend([EXP_LOW.next_up(), 88.0]);
    for kernels in Kernels::all() {
        let y = exp(kernels, &x);
        for (&x, &y) in x.iter().zip(&y) {
            let error = ulps(y, f64::from(x).exp());
            assert!(error < 2.0, "{}: e^{x:e} = {y:e}: {error} ulp", kernels.name());
        }
    }
}

#[test]
fn exp_at_its_limits() {
    let cap = 88.0_f64.exp();
    for kernels in Kernels::all() {
        let zeros = [f32::NEG_INFINITY, f32::MIN, -1e30, -1000.0, -88.0, EXP_LOW];
        for (x, y) in zeros.into_iter().zip(exp(kernels, &zeros)) {
            assert_eq!(y.to_bits(), 0, "{}: e^{x} = {y:e}", kernels.name());
        }
        let capped = [88.0, 88.1, 1000.0, f32::MAX, f32::INFINITY];
        for (x, y) in capped.into_iter().zip(exp(kernels, &capped)) {
            assert!(ulps(y, cap) < 2.0, "{}: e^{x} = {y:e}", kernels.name());
        }
        let tiny = f32::from_bits(1);
        assert_eq!(exp(kernels, &[0.0, -0.0, tiny, -tiny]), [1.0; 4], "{}", kernels.name());
        assert!(exp(kernels, &[f32::NAN])[0].is_finite(), "{}", kernels.name());
    }
}

#[test]
fn exp_never_falls_where_its_argument_rises() {
    let x: Vec<f32> = (0..200_000).map(|i| i as f32 * (170.0 / 200_000.0) - 86.0).collect();
    let y = exp(Kernels::best().unwrap(), &x);
    for (i, pair) in y.windows(2).enumerate() {
        assert!(pair[0] <= pair[1], "e^{} = {:e} > e^{} = {:e}", x[i], pair[0], x[i + 1], pair[1]);
    }
}

/// `x / (1 + e^-x) * up`: e^-x is off by 4 u, which its sum with 1 does not enlarge; the sum,
/// the quotient and the product round once each. Where e^-x is capped (x below -88), silu is
/// `-88 / e^88` at most, and so is the exact value.
#[test]
fn silu_against_f64() {
    let mut random = Random(20);
    let mut gate = random.floats(4096, 90.0);
    gate.extend(random.floats(4096, 4.0));
    gate.extend([0.0, -0.0, 87.0, 88.0, -87.0, -88.0, -88.1, 1e30, -1e30, -3e38, 1e-40, -200.0]);
    gate.resize(gate.len().next_multiple_of(8), 1.0);
    let up = random.floats(gate.len(), 3.0);
    for kernels in Kernels::all() {
        let mut out = gate.clone();
        kernels.run(SiluMul { gate: &mut out, up: &up });
        for (i, &got) in out.iter().enumerate() {
            let (x, up) = (f64::from(gate[i]), f64::from(up[i]));
            let want = x / (1.0 + (-x).exp()) * up;
            let floor = 88.0 * (-88.0_f64).exp() * up.abs() * 1.01;
            let relative = (roundings(3) + EXP_ERROR) * 1.001 + (-87.0_f64).exp();
            let bound = relative * want.abs() + floor;
            assert_near(&format!("silu of {x:e}, {}", kernels.name()), [0, i], got, want, bound);
        }
    }
}

/// A sum of squares over four vectors of eight lanes: at most `width / 8` fused steps and five of
/// the tree, all of positive terms, so off by as many roundings; the mean and the epsilon round
/// once each, and the root halves what has gathered; then the root, its inverse and two products
/// round.
#[test]
fn norm_against_f64() {
    let mut random = Random(21);
    for width in [8, 72, 4096] {
        for (size, epsilon) in [(1e-6, 1e-5), (1.0, 1e-6), (1e10, 1e-5)] {
            let (x, weight) = (random.floats(width, size), random.floats(width, 2.0));
            let squares: f64 = x.iter().map(|&x| f64::from(x).powi(2)).sum();
            let root = (squares / width as f64 + f64::from(epsilon)).sqrt();
            let relative = (roundings(width / 8 + 7) / 2.0 + roundings(4)) * 1.001;
            for kernels in Kernels::all() {
                let mut y = vec![f32::NAN; width];
                kernels.run(RmsNorm { x: &x, weight: &weight, epsilon, y: &mut y });
                for (i, &got) in y.iter().enumerate() {
                    let want = f64::from(x[i]) / root * f64::from(weight[i]);
                    let bound = relative * want.abs();
                    assert_near(&format!("norm {width} {size:e}"), [0, i], got, want, bound);
                }
            }
        }
    }
}

/// The partner of element `i`, by the definition of the two styles.
fn partner(style: RopeStyle, i: usize, half: usize) -> usize {
    match style {
        RopeStyle::Norm => i ^ 1,
        RopeStyle::Neox => (i + half) % (2 * half),
    }
}

/// `a cos - b sin`: the second product rounds, and the sum of both.
#[test]
fn rope_against_f64() {
    let mut random = Random(22);
    for style in [RopeStyle::Norm, RopeStyle::Neox] {
        for (head_width, half) in [(8, 4), (64, 32), (128, 64), (64, 16), (40, 13)] {
            let x = random.floats(3 * head_width, 2.0);
            let angles = random.floats(half, 3.0);
            let cos: Vec<f32> = angles.iter().map(|a| a.cos()).collect();
            let sin: Vec<f32> = angles.iter().map(|a| a.sin()).collect();
            for kernels in Kernels::all() {
                let mut turned = x.clone();
                kernels.run(Rope { x: &mut turned, head_width, cos: &cos, sin: &sin, style });
                for (at, &got) in turned.iter().enumerate() {
                    let (head, i) = (at / head_width, at % head_width);
                    let own = f64::from(x[at]);
                    if i >= 2 * half {
                        assert_eq!(got, x[at], "beyond the dimensions that turn");
                        continue;
                    }
                    let j = partner(style, i, half);
                    let other = f64::from(x[head * head_width + j]);
                    let angle = if style == RopeStyle::Norm { i / 2 } else { i % half };
                    let sign = if i < j { -1.0 } else { 1.0 };
                    let a = own * f64::from(cos[angle]);
                    let b = other * f64::from(sin[angle]);
                    let bound = roundings(2) * (a.abs() + b.abs());
                    let what = format!("rope {style:?} {half} of {head_width}");
                    assert_near(&what, [head, i], got, a + sign * b, bound);
                }
            }
        }
    }
}
