//! The control word of the floating-point unit while a step runs.

use crate::control_word::unusually;
#[cfg(target_arch = "x86_64")]
use crate::control_word::{DEFAULT, UNUSUAL, settings};
use dllm_cpu::ops::Quantize256;
use dllm_cpu::{FloatEnv, Kernels};
use std::hint::black_box;

#[inline(never)]
fn product(a: f32, b: f32) -> f32 {
    black_box(black_box(a) * black_box(b))
}

#[test]
#[cfg(target_arch = "x86_64")]
fn sets_the_default_and_restores_the_callers_word() {
    let inside_nested_after = unusually(|| {
        let env = FloatEnv::enter();
        let inside = settings();
        drop(FloatEnv::enter());
        let nested = settings();
        drop(env);
        [inside, nested, settings()]
    });
    assert_eq!(inside_nested_after, [DEFAULT, DEFAULT, UNUSUAL]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn subnormals_and_rounding_survive_a_caller_who_flushes() {
    let least = f32::from_bits(1);
    let just_above_one = f32::from_bits(0x3f80_0001);
    let compute = || {
        let results = [
            product(f32::MIN_POSITIVE, 0.5),
            product(least, 2.0_f32.powi(24)),
            product(just_above_one, just_above_one + f32::EPSILON),
        ];
        results.map(f32::to_bits)
    };
    let usual = compute();
    let (flushed, inside) = unusually(|| {
        let flushed = compute();
        let _env = FloatEnv::enter();
        (flushed, compute())
    });
    assert_eq!(flushed[..2], [0, 0], "the unusual word does nothing: the test shows nothing");
    assert_eq!(inside, usual);
    assert_eq!(inside[0], 0x0040_0000);
}

/// A row so small that its scale is not a normal number.
#[test]
fn kernels_keep_a_scale_that_is_not_a_normal_number() {
    let quantize = |kernels: Kernels| {
        let mut x = [1e-38_f32; 256];
        x[7] = 5e-37;
        let (mut codes, mut sums) = ([0; 64], [0; 16]);
        let scale = kernels.run(Quantize256 { x: &x, codes: &mut codes, sums: &mut sums });
        (scale.to_bits(), codes, sums)
    };
    for kernels in Kernels::all() {
        let usual = quantize(kernels);
        assert!(f32::from_bits(usual.0).is_subnormal());
        let inside = unusually(|| {
            let _env = FloatEnv::enter();
            quantize(kernels)
        });
        assert_eq!(inside, usual, "{}", kernels.name());
    }
}
