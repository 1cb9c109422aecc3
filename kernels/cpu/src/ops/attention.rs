//! Attention without a causal mask, one head and up to 16 queries at a time.
//!
//! Keys pass in tiles of [`KEY_TILE`] with a running maximum and sum (Milakov and Gimelshein,
//! "Online normalizer calculation for softmax", 2018), so no row of scores is ever stored and the
//! canvas length is not limited by this operator. Lanes are keys while scores are made, and
//! elements of the head while values are added; each sum runs over keys or elements in order.

use crate::isa::{Isa, LANES, Simd, VecF, max_lanes, sum_lanes};
use crate::math;
use crate::table::Op;

/// Queries of a work item: they share each key tile while it lies in L1.
pub const QUERY_TILE: usize = 16;
/// Keys of a tile: scores of 16 queries are 2 KiB.
pub const KEY_TILE: usize = 32;
/// Queries whose sums stay in registers: 4 x 2 sums, two operands and a broadcast.
const QUERY_STRIP: usize = 4;

/// f32 of scratch that [`Attention`] needs: the scores of a key tile, running maxima and sums.
pub const fn attention_scratch_floats() -> usize {
    QUERY_TILE * KEY_TILE + QUERY_TILE * (1 + LANES)
}

/// `out = softmax(q k^T) v` for one head.
pub struct Attention<'a> {
    /// `[queries][head_width]`, already turned and multiplied by 1/sqrt(head_width); 1..=16 rows.
    pub q: &'a [f32],
    /// `[head_width][key_stride]`: keys, transposed; columns from `keys` on are never used.
    pub k_transposed: &'a [f32],
    /// Floats between rows of `k_transposed`: a multiple of 32, at least `keys`.
    pub key_stride: usize,
    /// `[keys][value_stride]`, of which the first `head_width` belong to this head.
    pub v: &'a [f32],
    /// Floats between rows of `v`.
    pub value_stride: usize,
    /// Keys, at least one.
    pub keys: usize,
    /// Elements of a head, a multiple of eight.
    pub head_width: usize,
    /// [`attention_scratch_floats`] floats.
    pub scratch: &'a mut [f32],
    /// `[queries][head_width]`, overwritten.
    pub out: &'a mut [f32],
}

impl Op for Attention<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let queries = self.q.len() / self.head_width;
        self.out[..queries * self.head_width].fill(0.0);
        let (_, state) = self.scratch.split_at_mut(QUERY_TILE * KEY_TILE);
        let (maxima, sums) = state.split_at_mut(QUERY_TILE);
        maxima.fill(f32::NEG_INFINITY);
        sums.fill(0.0);
        for first in (0..self.keys).step_by(KEY_TILE) {
            let keys = (self.keys - first).min(KEY_TILE);
            score_tile(isa, &mut self, queries, first);
            weigh_tile(isa, &mut self, queries, keys);
            add_values(isa, &mut self, queries, first, keys);
        }
        let sums = &self.scratch[QUERY_TILE * (KEY_TILE + 1)..];
        for (q, out) in self.out.chunks_exact_mut(self.head_width).take(queries).enumerate() {
            let s = isa.v();
            let sum = sum_lanes(s, s.load(&sums[q * LANES..]));
            let factor = s.splat(1.0 / sum);
            for x in out.chunks_exact_mut(LANES) {
                let value = s.mul(s.load(x), factor);
                s.store(x, value);
            }
        }
    }
}

/// Scores of all queries against the tile's 32 keys, those beyond the last key included.
#[inline(always)]
fn score_tile<I: Isa>(isa: I, a: &mut Attention<'_>, queries: usize, first: usize) {
    let mut q = 0;
    while q < queries {
        let rows = &a.q[q * a.head_width..];
        let out = &mut a.scratch[q * KEY_TILE..];
        let k = &a.k_transposed[first..];
        if queries - q >= QUERY_STRIP {
            score_strip::<I, QUERY_STRIP>(isa, rows, a.head_width, k, a.key_stride, out);
            q += QUERY_STRIP;
        } else {
            score_strip::<I, 1>(isa, rows, a.head_width, k, a.key_stride, out);
            q += 1;
        }
    }
}

#[inline(always)]
fn score_strip<I: Isa, const Q: usize>(
    isa: I,
    q: &[f32],
    width: usize,
    k: &[f32],
    stride: usize,
    out: &mut [f32],
) {
    let s = isa.v();
    for half in (0..KEY_TILE).step_by(2 * LANES) {
        let mut acc = [[s.splat(0.0); 2]; Q];
        for e in 0..width {
            let row = &k[e * stride + half..][..2 * LANES];
            let keys = [s.load(&row[..LANES]), s.load(&row[LANES..])];
            for i in 0..Q {
                let broadcast = s.splat(q[i * width + e]);
                for h in 0..2 {
                    acc[i][h] = s.fma(broadcast, keys[h], acc[i][h]);
                }
            }
        }
        for i in 0..Q {
            for h in 0..2 {
                s.store(&mut out[i * KEY_TILE + half + h * LANES..], acc[i][h]);
            }
        }
    }
}

/// Scores to weights `e^(score - maximum)`; what was summed so far is rescaled to a new maximum.
#[inline(always)]
fn weigh_tile<I: Isa>(isa: I, a: &mut Attention<'_>, queries: usize, keys: usize) {
    let s = isa.v();
    let (scores, state) = a.scratch.split_at_mut(QUERY_TILE * KEY_TILE);
    let (maxima, sums) = state.split_at_mut(QUERY_TILE);
    for q in 0..queries {
        let row = &mut scores[q * KEY_TILE..][..KEY_TILE];
        // Whatever lay beyond the last key, the weight there is zero.
        row[keys..].fill(f32::NEG_INFINITY);
        let mut largest: VecF<I> = s.splat(maxima[q]);
        for x in row.chunks_exact(LANES) {
            largest = s.max(s.load(x), largest);
        }
        let largest = max_lanes(s, largest);
        let rescale = math::exp(s, s.splat(maxima[q] - largest));
        maxima[q] = largest;
        let sum = &mut sums[q * LANES..][..LANES];
        let mut total = s.mul(s.load(sum), rescale);
        for x in row.chunks_exact_mut(LANES) {
            let weight = math::exp(s, s.sub(s.load(x), s.splat(largest)));
            s.store(x, weight);
            total = s.add(total, weight);
        }
        s.store(sum, total);
        for x in a.out[q * a.head_width..][..a.head_width].chunks_exact_mut(LANES) {
            let value = s.mul(s.load(x), rescale);
            s.store(x, value);
        }
    }
}

/// `out += weights * values` over the tile's keys.
#[inline(always)]
fn add_values<I: Isa>(isa: I, a: &mut Attention<'_>, queries: usize, first: usize, keys: usize) {
    let values = &a.v[first * a.value_stride..];
    let mut q = 0;
    while q < queries {
        let weights = &a.scratch[q * KEY_TILE..];
        let out = &mut a.out[q * a.head_width..];
        if queries - q >= QUERY_STRIP {
            value_strip::<I, QUERY_STRIP>(
                isa,
                weights,
                values,
                a.value_stride,
                keys,
                a.head_width,
                out,
            );
            q += QUERY_STRIP;
        } else {
            value_strip::<I, 1>(isa, weights, values, a.value_stride, keys, a.head_width, out);
            q += 1;
        }
    }
}

#[inline(always)]
fn value_strip<I: Isa, const Q: usize>(
    isa: I,
    weights: &[f32],
    values: &[f32],
    stride: usize,
    keys: usize,
    width: usize,
    out: &mut [f32],
) {
    let s = isa.v();
    for e in (0..width).step_by(LANES) {
        let mut acc = [s.splat(0.0); Q];
        for i in 0..Q {
            acc[i] = s.load(&out[i * width + e..]);
        }
        for key in 0..keys {
            let v = s.load(&values[key * stride + e..][..LANES]);
            for i in 0..Q {
                acc[i] = s.fma(s.splat(weights[i * KEY_TILE + key]), v, acc[i]);
            }
        }
        for i in 0..Q {
            s.store(&mut out[i * width + e..], acc[i]);
        }
    }
}
