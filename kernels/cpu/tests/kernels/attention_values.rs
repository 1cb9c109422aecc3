//! Attention against a softmax in f64, within a derived bound.

use crate::bits::{UNIT, assert_near, roundings};
use crate::float_values::{EXP_ERROR, EXP_LOW};
use crate::probe::Head;
use crate::random::Random;
use dllm_cpu::Kernels;
use dllm_cpu::ops::KEY_TILE;

/// The exact scores of a query, and the bound on the kernels' error of each: the query's scaling
/// and a chain of `width` fused multiply-adds.
fn scores(head: &Head, query: usize) -> (Vec<f64>, f64) {
    let q = &head.q[query * head.width..][..head.width];
    let mut worst = 0.0_f64;
    let mut score = |key: usize| {
        let k = &head.k[key * head.key_stride..][..head.width];
        let scale = f64::from(head.scale);
        let products = q.iter().zip(k).map(|(&q, &k)| scale * f64::from(q) * f64::from(k));
        worst = worst.max(products.clone().map(f64::abs).sum());
        products.sum()
    };
    let scores = (0..head.keys).map(&mut score).collect();
    (scores, roundings(head.width + 1) * worst)
}

/// The relative error of a weight `e^(score - largest)`, and of the factor by which it is rescaled
/// when the largest grows from tile to tile: errors of arguments add up, since exponentials
/// multiply.
///
/// - The score is off by `score_error`, the largest cancels between the weights and their sum.
/// - Each difference of arguments rounds once; they telescope, so together by at most `range` u.
/// - Each of up to `tiles + 1` exponentials is off by 4 u, and each rescaling rounds once.
fn weight_error(score_error: f64, range: f64, tiles: usize) -> f64 {
    let argument = score_error + range * UNIT * 1.001;
    argument.exp_m1() + (tiles + 1) as f64 * (EXP_ERROR + UNIT) * 1.001
}

/// The exact output element of a query from its scores, and the bound on the kernels' error.
fn expected(head: &Head, scores: &[f64], score_error: f64, e: usize) -> (f64, f64) {
    let largest = scores.iter().copied().fold(f64::MIN, f64::max);
    let least = scores.iter().copied().fold(f64::MAX, f64::min);
    let (mut total, mut sum, mut size, mut most) = (0.0, 0.0, 0.0, 0.0_f64);
    for (key, score) in scores.iter().enumerate() {
        let weight = (score - largest).exp();
        let value = f64::from(head.v[key * head.value_stride + e]);
        total += weight;
        sum += weight * value;
        size += weight * value.abs();
        most = most.max(value.abs());
    }
    // The weights' errors count in the numerator and in the sum that it is divided by. Of
    // roundings, the numerator has one a key (rescalings are counted above), the sum as many
    // at most, the inverse and the product one each.
    let weights = weight_error(score_error, largest - least, head.keys.div_ceil(KEY_TILE));
    let relative = 2.0 * weights + 2.0 * roundings(head.keys + 3);
    // Weights of scores far below the largest stay at the least that there is.
    let lost = head.keys as f64 * f64::from(EXP_LOW).exp() * 2.0 * most;
    (sum / total, relative * 1.01 * size / total + lost)
}

fn check(what: &str, head: &Head, kernels: impl IntoIterator<Item = Kernels>) {
    let outputs: Vec<_> = kernels.into_iter().map(|k| (k.name(), head.run(k))).collect();
    for query in 0..head.queries() {
        let (scores, score_error) = scores(head, query);
        for e in 0..head.width {
            let (want, bound) = expected(head, &scores, score_error, e);
            for (name, out) in &outputs {
                let what = format!("{what}, {} keys, {name}", head.keys);
                assert_near(&what, [query, e], out[query * head.width + e], want, bound);
            }
        }
    }
}

#[test]
fn attention_against_f64() {
    let mut random = Random(30);
    for keys in [1, 3, 95, 96, 97, 192, 200, 301] {
        for (queries, width) in [(1, 8), (4, 24), (7, 64), (16, 128), (9, 16)] {
            // What lies beyond the keys is no key, be it NaN, infinite or an ordinary number.
            for (reach, poison) in [(0.1, f32::NAN), (10.0, 50.0), (90.0, f32::INFINITY)] {
                let head = Head::random(&mut random, [queries, keys, width], reach, poison);
                check(&format!("reach {reach}"), &head, Kernels::all());
            }
        }
    }
}

/// Scores that rise, fall, or peak once: the running maximum changes in every tile, never again
/// after the first, or somewhere in between.
#[test]
fn the_running_maximum_may_change_in_any_tile() {
    let shapes: [fn(usize) -> f32; 9] = [
        |key| key as f32 * 0.3,
        |key| key as f32 * -0.3,
        |key| if key == 100 { 40.0 } else { 0.0 },
        |key| (key as f32 - 150.0).abs() * -0.2 - 50.0,
        // All equal: the mean of the values, whatever the score.
        |_| -1e4,
        |_| -3.0,
        |_| 0.0,
        |_| 5.0,
        |_| 1e4,
    ];
    for (i, shape) in shapes.into_iter().enumerate() {
        let mut head = Head::random(&mut Random(31), [5, 230, 16], 1.0, f32::NAN);
        for query in head.q.chunks_mut(16) {
            query.fill(0.0);
            query[3] = 1.0 / head.scale;
        }
        for key in 0..230 {
            head.k[key * head.key_stride + 3] = shape(key);
        }
        check(&format!("shape {i}"), &head, Kernels::all());
    }
}
