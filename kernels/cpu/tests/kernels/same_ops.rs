//! Float operators of every kernel against the scalar ones, bit for bit.

use crate::bits::{assert_same, check_all, check_lists, scalar};
use crate::probe::{EveryOperation, Head, exp};
use crate::random::Random;
use dllm_cpu::Kernels;
use dllm_cpu::ops::{RmsNorm, Rope, RopeStyle, SiluMul};

/// Floats with every trap: signed zeros, subnormals, ties, huge numbers, infinities, NaN.
pub const TRAPS: [f32; 16] = [
    0.0,
    -0.0,
    f32::from_bits(1),
    -f32::MIN_POSITIVE,
    0.5,
    1.5,
    -2.5,
    126.5,
    -126.0,
    3.402e38,
    -3.402e38,
    1e-20,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    0.333_333_34,
];

/// For `tools/emulate`, which reads the line that this prints.
#[test]
fn isa_names_of_the_kernels_run() {
    let names: Vec<_> = Kernels::all().map(Kernels::name).collect();
    // On a line of its own, whatever the harness has begun to print.
    println!("\nkernels run: {}", names.join(" "));
    assert_eq!(names[0], "scalar");
}

#[test]
fn isa_operations_on_vectors() {
    let mut random = Random(10);
    for shift in 0..16 {
        let trap = |by: usize| std::array::from_fn(|i| TRAPS[(i * by + shift * 3 + by) % 16]);
        let (p, q) = (random.bytes(32), random.bytes(32));
        check_lists(&format!("operations, traps {shift}"), |kernels| {
            let (p, q) = (p[..].try_into().unwrap(), q[..].try_into().unwrap());
            kernels.run(EveryOperation { a: trap(1), b: trap(5), c: trap(7), p, q })
        });
    }
}

#[test]
fn isa_exp() {
    let everywhere: Vec<f32> = (0..1 << 14).map(|i| f32::from_bits(i * 262_139)).collect();
    let inside: Vec<f32> = (0..1 << 13).map(|i| i as f32 * (176.0 / 8192.0) - 88.0).collect();
    check_all("exp of any bits", 8, |kernels| exp(kernels, &everywhere));
    check_all("exp in its range", 8, |kernels| exp(kernels, &inside));
}

#[test]
fn exp_is_the_same_over_two_million_numbers() {
    let all: Vec<f32> = (0..1 << 21).map(|i: u32| f32::from_bits(i * 2048 + i % 2048)).collect();
    check_all("exp", 8, |kernels| exp(kernels, &all));
}

#[test]
fn isa_norm() {
    let mut random = Random(11);
    for width in [8, 16, 72, 1024, 4096] {
        for size in [1e-18, 1.0, 1e15] {
            let (x, weight) = (random.floats(width, size), random.floats(width, 2.0));
            check_all(&format!("norm of {width}, {size:e}"), width, |kernels| {
                let mut y = vec![f32::NAN; width];
                kernels.run(RmsNorm { x: &x, weight: &weight, epsilon: 1e-5, y: &mut y });
                assert!(y.iter().all(|y| y.is_finite()));
                y
            });
        }
    }
}

#[test]
fn isa_rope() {
    let mut random = Random(12);
    for style in [RopeStyle::Norm, RopeStyle::Neox] {
        for (head_width, half) in [(8, 4), (64, 32), (128, 64), (64, 16), (32, 1), (40, 13)] {
            let x = random.floats(3 * head_width, 2.0);
            let (cos, sin) = (random.floats(half, 1.0), random.floats(half, 1.0));
            check_all(&format!("rope {style:?} {half} of {head_width}"), head_width, |kernels| {
                let mut x = x.clone();
                kernels.run(Rope { x: &mut x, head_width, cos: &cos, sin: &sin, style });
                x
            });
        }
    }
}

#[test]
fn isa_silu() {
    let mut random = Random(13);
    for size in [1e-3, 4.0, 100.0, 1e30] {
        let (x, y) = (random.floats(1024, size), random.floats(1024, 2.0));
        check_all(&format!("silu up to {size:e}"), 1024, |kernels| {
            let mut gate = x.clone();
            kernels.run(SiluMul { gate: &mut gate, up: &y });
            gate
        });
    }
}

/// Lengths on either side of a key tile, and several of them.
const KEYS: [usize; 8] = [1, 3, 95, 96, 97, 192, 200, 301];

fn check_head(random: &mut Random, sizes: [usize; 3]) {
    let head = Head::random(random, sizes, 12.0, f32::NAN);
    let [queries, keys, width] = sizes;
    let what = format!("attention, {queries} queries, {keys} keys, width {width}");
    check_all(&what, width, |kernels| {
        let out = head.run(kernels);
        assert!(out.iter().all(|x| x.is_finite()), "{what}, {}", kernels.name());
        out
    });
}

#[test]
fn isa_attention() {
    let mut random = Random(14);
    for keys in KEYS {
        check_head(&mut random, [5, keys, 32]);
    }
    for queries in 1..=16 {
        check_head(&mut random, [queries, 33, 8]);
    }
    for width in [8, 24, 64, 128] {
        check_head(&mut random, [6, 40, width]);
    }
}

#[test]
fn attention_is_the_same_over_everything_at_once() {
    let mut random = Random(16);
    for keys in KEYS {
        for width in [8, 32, 64, 128] {
            for queries in 1..=16 {
                check_head(&mut random, [queries, keys, width]);
            }
        }
    }
}

/// Every query gives what it gives alone: items may be of any size.
#[test]
fn attention_of_a_query_does_not_depend_on_the_others() {
    let head = Head::random(&mut Random(17), [15, 200, 40], 12.0, f32::NAN);
    for kernels in [scalar(), Kernels::best().unwrap()] {
        let together = head.run(kernels);
        for query in 0..15 {
            let mut alone = head.clone();
            alone.q = head.q[query * 40..][..40].to_vec();
            let (got, want) = (alone.run(kernels), &together[query * 40..][..40]);
            assert_same(&format!("query {query}"), kernels, &got, want, 40);
        }
    }
}
