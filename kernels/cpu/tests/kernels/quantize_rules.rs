//! The rules by which activations become int8, from their description.

use crate::activations::sums;
use crate::bits::{others, scalar};
use crate::random::Random;
use dllm_cpu::Kernels;
use dllm_cpu::ops::{Quantize32, Quantize256};

/// What a quantizer wrote.
#[derive(Debug, PartialEq)]
struct Quantized {
    codes: Vec<i8>,
    sums: Vec<i32>,
    scales: Vec<f32>,
}

const STALE: i32 = 0x5a5a_5a5a;

fn quantize(kernels: Kernels, x: &[f32], block: usize) -> Quantized {
    let (mut words, mut sums) = ([STALE; 65], [STALE; 17]);
    let mut scales = [f32::NAN; 9];
    let (codes, sums_too) = (&mut words[..], &mut sums[..]);
    if block == 256 {
        scales[0] = kernels.run(Quantize256 { x, codes, sums: sums_too });
    } else {
        kernels.run(Quantize32 { x, codes, sums: sums_too, scales: &mut scales });
    }
    assert_eq!((words[64], sums[16]), (STALE, STALE), "written beyond the end");
    assert!(scales[256 / block].is_nan(), "written beyond the scales");
    let codes = words[..64].iter().flat_map(|word| word.to_le_bytes());
    Quantized {
        codes: codes.map(u8::cast_signed).collect(),
        sums: sums[..16].to_vec(),
        scales: scales[..256 / block].to_vec(),
    }
}

/// The integer nearest to `x`, the even one of two.
fn half_to_even(x: f64) -> i64 {
    let below = x.floor();
    let rest = x - below;
    let down = below as i64;
    let up = rest > 0.5 || (rest == 0.5 && down % 2 != 0);
    if up { down + 1 } else { down }
}

/// The rule for one block: in f64, in which products of two f32 are exact and quotients round to
/// the same f32 as if rounded once.
fn expected(x: &[f32], n: usize) -> (f32, Vec<i8>) {
    let largest = x.iter().fold(0.0_f64, |most, &x| most.max(f64::from(x).abs()));
    let factor = (127.0 / largest) as f32;
    if !factor.is_finite() {
        return (0.0, vec![0; n]);
    }
    let code = |x: f32| half_to_even(f64::from((f64::from(x) * f64::from(factor)) as f32));
    let codes = (0..n).map(|i| code(x.get(i).copied().unwrap_or(0.0)).clamp(-127, 127) as i8);
    ((largest / 127.0) as f32, codes.collect())
}

fn check(what: &str, x: &[f32]) {
    for (kernels, block) in Kernels::all().flat_map(|k| [(k, 256), (k, 32)]) {
        let got = quantize(kernels, x, block);
        let name = kernels.name();
        for b in 0..256 / block {
            let part = &x[(b * block).min(x.len())..((b + 1) * block).min(x.len())];
            let (scale, codes) = expected(part, block);
            let at = format!("{what} of {}, {name}, per {block}, block {b}", x.len());
            assert_eq!(got.scales[b].to_bits(), scale.to_bits(), "{at}: {:e}", got.scales[b]);
            assert_eq!(&got.codes[b * block..][..block], codes, "{at}");
        }
        assert_eq!(got.sums, sums(&got.codes, 0), "{what}, {name}, per {block}");
    }
}

#[test]
fn random_rows_of_every_length_and_size() {
    let mut random = Random(7);
    for n in (8..=256).step_by(8) {
        for size in [1e-30, 1e-3, 1.0, 3e4, 3e38] {
            check("random", &random.floats(n, size));
        }
    }
}

/// 127 as the largest value makes the factor 1, so that halves stay halves.
#[test]
fn halves_round_to_the_even_code() {
    let mut x: Vec<f32> = (0..254).map(|i| i as f32 - 126.5).collect();
    x.extend([127.0, -127.0]);
    check("halves", &x);
    let codes = quantize(Kernels::best().unwrap(), &x, 256).codes;
    assert_eq!((codes[126], codes[127], codes[128], codes[129]), (0, 0, 2, 2));
    assert_eq!((codes[125], codes[0], codes[253]), (-2, -126, 126));
}

#[test]
fn rows_of_zeros_and_of_tiny_numbers_vanish() {
    // 127 divided by the least of these overflows, by the largest does not.
    let edge = 127.0 / f32::MAX;
    let tiny = [0.0, -0.0, f32::from_bits(1), f32::MIN_POSITIVE, edge * 0.999, edge * 1.001];
    for size in tiny {
        let mut x = vec![0.0; 256];
        x[40] = -size;
        x[41] = size / 2.0;
        check("tiny", &x);
        let got = quantize(Kernels::best().unwrap(), &x, 256);
        assert_eq!(got.codes.iter().all(|&code| code == 0), size < edge, "{size:e}");
        assert_eq!(got.scales[0] == 0.0, size < edge, "{size:e}");
    }
}

#[test]
fn sums_of_the_largest_codes() {
    for size in [1.0, -1.0] {
        check("largest", &[size; 256]);
        let got = quantize(Kernels::best().unwrap(), &[size; 256], 256);
        let [of_16, of_32] = [16, 32].map(|n| n * 127 * size as i64);
        assert_eq!(i64::from(got.sums[3] >> 16), of_16);
        assert_eq!(i64::from(got.sums[11] << 16 >> 16), of_32);
    }
}

/// The dot products take no -128, so whatever comes in, no such code goes out.
#[test]
fn codes_are_in_range_even_of_numbers_that_are_not_finite() {
    for kernels in Kernels::all() {
        for block in [256, 32] {
            let mut x = [1.0; 256];
            x[3] = f32::NAN;
            let got = quantize(kernels, &x, block);
            assert_eq!(got.codes[..5], [127, 127, 127, -127, 127], "{}", kernels.name());
            x[7] = f32::NEG_INFINITY;
            x[9] = f32::INFINITY;
            let got = quantize(kernels, &x, block);
            assert!(!got.codes.contains(&-128), "{}", kernels.name());
            assert_eq!(got.sums, sums(&got.codes, 0));
        }
    }
}

/// Where no number is left to scale by: a zero would hide that.
#[test]
fn isa_nan_among_nothing_stays_nan() {
    for kernels in Kernels::all() {
        for block in [256, 32] {
            for rest in [f32::NAN, 0.0, 1e-40] {
                let mut x = [rest; 256];
                x[block - 1] = f32::NAN;
                let got = quantize(kernels, &x, block);
                assert!(got.scales[0].is_nan(), "{}: {rest}", kernels.name());
                assert!(got.codes[..block].iter().all(|code| *code == 0), "{}", kernels.name());
            }
        }
    }
}

#[test]
fn isa_quantize() {
    let mut random = Random(8);
    for n in [8, 24, 32, 40, 248, 256] {
        for size in [1e-37, 1.0, 1e37] {
            let x = random.floats(n, size);
            for block in [256, 32] {
                let want = quantize(scalar(), &x, block);
                for kernels in others() {
                    let got = quantize(kernels, &x, block);
                    assert_eq!(got, want, "{}: {n} of {size:e} per {block}", kernels.name());
                }
            }
        }
    }
}
