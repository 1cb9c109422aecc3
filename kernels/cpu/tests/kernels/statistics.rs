//! Doubles, and the statistics of groups of logits that they sum.

use crate::bits::{check_lists, others, scalar};
use crate::random::Random;
use crate::same_ops::TRAPS;
use dllm_cpu::isa::{DOUBLES, Isa, LANES, ROUNDER, Simd, sum_doubles};
use dllm_cpu::math::{WEIGHT_MIN, exp_f64};
use dllm_cpu::ops::{GROUP_LOGITS, GroupStatistics, Statistics, Weights};
use dllm_cpu::{Kernels, Op};

/// The relative error that `exp_f64` documents.
const EXP_ERROR: f64 = 1e-14;

/// Every operation on doubles, as bits one after another.
struct EveryDouble {
    a: [f32; LANES],
    b: [f32; LANES],
    c: [f32; LANES],
}

impl Op for EveryDouble {
    type Output = Vec<u64>;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Vec<u64> {
        let s = isa.v();
        let wide = |x: &[f32; LANES]| s.to_f64(s.load(x));
        let mut all = vec![];
        for ((a, b), c) in wide(&self.a).into_iter().zip(wide(&self.b)).zip(wide(&self.c)) {
            let in_range = s.min_f64(s.max_f64(a, s.splat_f64(-1022.0)), s.splat_f64(1023.0));
            let doubles = [
                a,
                s.add_f64(a, b),
                s.sub_f64(a, b),
                s.mul_f64(a, b),
                s.div_f64(a, b),
                s.fma_f64(a, b, c),
                s.fnma_f64(a, b, c),
                s.max_f64(a, b),
                s.min_f64(a, b),
                s.exp2_f64(s.add_f64(in_range, s.splat_f64(ROUNDER))),
                exp_f64(s, a),
                s.splat_f64(sum_doubles(s, c)),
            ];
            for x in doubles {
                let mut lanes = [0.0; DOUBLES];
                s.store_f64(&mut lanes, x);
                // Which NaN comes out is the processor's choice.
                all.extend(lanes.map(|x| if x.is_nan() { !0 } else { x.to_bits() }));
            }
        }
        all.push(u64::from(s.equal_lanes(s.load(&self.a), s.load(&self.b))));
        all
    }
}

#[test]
fn isa_operations_on_doubles() {
    for (shift, by) in (0..16).flat_map(|shift| [(shift, 0), (shift, 4), (shift, 7)]) {
        let traps = |by: usize| std::array::from_fn(|i| TRAPS[(i * by + shift * 3 + by) % 16]);
        check_lists(&format!("doubles, traps {shift} {by}"), |kernels| {
            kernels.run(EveryDouble { a: traps(1), b: traps(by), c: traps(9) })
        });
    }
}

fn weights(kernels: Kernels, logits: &[f32; GROUP_LOGITS], temperature: f64) -> Vec<f64> {
    let mut weights = [f64::NAN; GROUP_LOGITS];
    kernels.run(Weights { logits, largest: 0.0, temperature, weights: &mut weights });
    weights.to_vec()
}

#[test]
fn weights_are_within_their_bound_of_exact() {
    for group in 0..2000 {
        let logits = std::array::from_fn(|i| -((group * GROUP_LOGITS + i) as f32) * 6e-4);
        for temperature in [0.3, 1.0, 2.5] {
            let want = weights(scalar(), &logits, temperature);
            for (logit, weight) in logits.iter().zip(&want) {
                let exponent = f64::from(*logit) / temperature;
                let exact = if exponent > WEIGHT_MIN { exponent.exp() } else { 0.0 };
                let error = (weight - exact).abs();
                assert!(
                    error <= EXP_ERROR * exact,
                    "e^{exponent:e} = {weight:e}: off by {error:e}"
                );
            }
            check_lists("weights", |kernels| {
                weights(kernels, &logits, temperature).into_iter().map(f64::to_bits).collect()
            });
        }
    }
}

#[test]
fn weights_at_their_limits() {
    let mut logits = [f32::NEG_INFINITY; GROUP_LOGITS];
    logits[..6].copy_from_slice(&[0.0, -0.0, -64.0, -63.999, f32::MIN, -f32::from_bits(1)]);
    for kernels in Kernels::all() {
        let got = weights(kernels, &logits, 1.0);
        assert_eq!(got[..3], [1.0, 1.0, 0.0], "{}", kernels.name());
        assert!(got[3] > 0.0 && got[4] == 0.0 && got[5] == 1.0, "{}", kernels.name());
        assert!(got[6..].iter().all(|w| w.to_bits() == 0), "{}", kernels.name());
        let frozen = weights(kernels, &logits, f64::MIN_POSITIVE);
        assert_eq!(frozen[..5], [1.0, 1.0, 0.0, 0.0, 0.0], "{}", kernels.name());
    }
}

/// By sorting and plain sums.
fn expected(logits: &[f32; GROUP_LOGITS]) -> Statistics {
    let clean = |x: &f32| if x.is_nan() { f32::NEG_INFINITY } else { x.min(f32::MAX) };
    let logits: Vec<f32> = logits.iter().map(clean).collect();
    let mut order: Vec<usize> = (0..GROUP_LOGITS).collect();
    order.sort_by(|&a, &b| logits[b].partial_cmp(&logits[a]).unwrap().then(a.cmp(&b)));
    let (largest, runner_up) = (logits[order[0]], logits[order[1]]);
    if largest == f32::NEG_INFINITY {
        return Statistics { sum: 0.0, largest, runner_up, index: 0 };
    }
    let sum = logits.iter().map(|l| (f64::from(*l) - f64::from(largest)).exp()).sum();
    Statistics { sum, largest, runner_up, index: order[0] }
}

fn check(logits: &[f32; GROUP_LOGITS]) {
    let (want, exact) = (scalar().run(GroupStatistics { logits }), expected(logits));
    assert_eq!((want.largest, want.runner_up), (exact.largest, exact.runner_up), "{logits:?}");
    assert_eq!(want.index, exact.index, "{logits:?}");
    // The weights, and a tree of six additions.
    let error = (want.sum - exact.sum).abs();
    assert!(error <= (EXP_ERROR + 6.0 * f64::EPSILON) * exact.sum, "{logits:?}: off by {error:e}");
    for kernels in others() {
        let got = kernels.run(GroupStatistics { logits });
        assert_eq!(got, want, "{}: {logits:?}", kernels.name());
        assert_eq!(got.sum.to_bits(), want.sum.to_bits(), "{}: {logits:?}", kernels.name());
    }
}

#[test]
fn statistics_of_groups() {
    let mut random = Random(31);
    for round in 0..300 {
        let spread = [0.1, 3.0, 30.0, 1e30][round % 4];
        let mut logits: [f32; GROUP_LOGITS] = random.floats(64, spread).try_into().unwrap();
        check(&logits);
        // Few values, so that largest and runner-up are often shared; and odd ones.
        logits = logits.map(|x| (x / spread * 3.0).round());
        check(&logits);
        for _ in 0..round % 65 {
            logits[random.integer(0, 63) as usize] = TRAPS[random.integer(0, 15) as usize];
        }
        check(&logits);
    }
    for value in [f32::NEG_INFINITY, f32::NAN, f32::INFINITY, 0.0, -0.0, f32::MIN] {
        check(&[value; GROUP_LOGITS]);
    }
}

#[test]
fn the_first_of_two_largest_is_found_in_every_place() {
    for first in 0..GROUP_LOGITS {
        for second in first..GROUP_LOGITS {
            let mut logits = [-1.5; GROUP_LOGITS];
            (logits[first], logits[second]) = (2.0, 2.0);
            check(&logits);
        }
    }
}
