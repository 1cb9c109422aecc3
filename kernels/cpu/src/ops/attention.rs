//! Attention without a causal mask, one head and up to 16 queries at a time.
//!
//! Keys pass in tiles of [`KEY_TILE`] with a running maximum and sum (Milakov and Gimelshein,
//! "Online normalizer calculation for softmax", 2018), so no row of scores is ever stored and the
//! canvas length is not limited by this operator. Lanes are queries while scores are made, so that
//! keys are read as they come, a broadcast each, and maxima and sums need no reduction over lanes;
//! lanes are elements of the head while values are added. Each sum runs over elements or keys in
//! order, whatever queries there are beside it.

use crate::isa::{Isa, LANES, Simd};
use crate::math;
use crate::table::Op;

/// Queries of a work item: two vectors.
pub const QUERY_TILE: usize = 16;
/// Keys of a tile: their scores are 6 KiB; with fewer, outputs pass through L1 more often.
pub const KEY_TILE: usize = 96;

/// f32 of scratch that [`Attention`] needs: the queries transposed, the scores of a key tile,
/// running maxima and sums.
pub const fn attention_scratch_floats(head_width: usize) -> usize {
    QUERY_TILE * (head_width + KEY_TILE + 2)
}

/// `out = softmax(scale q k^T) v` for one head.
pub struct Attention<'a> {
    /// `[queries][head_width]`, already turned; 1..=16 rows.
    pub q: &'a [f32],
    /// What the queries are multiplied by, 1/sqrt(head_width).
    pub scale: f32,
    /// `[keys][key_stride]`, of which the first `head_width` belong to this head; turned.
    pub k: &'a [f32],
    /// Floats between rows of `k`.
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
    fn run<I: Isa>(self, isa: I) {
        let width = self.head_width;
        let out = &mut self.out[..self.q.len()];
        let (q, rest) = self.scratch.split_at_mut(QUERY_TILE * width);
        let (scores, rest) = rest.split_at_mut(QUERY_TILE * KEY_TILE);
        let (maxima, sums) = rest[..2 * QUERY_TILE].split_at_mut(QUERY_TILE);
        transpose(isa, self.q, self.scale, q);
        out.fill(0.0);
        maxima.fill(f32::NEG_INFINITY);
        sums.fill(0.0);
        for first in (0..self.keys).step_by(KEY_TILE) {
            let keys = (self.keys - first).min(KEY_TILE);
            let k = Rows { x: &self.k[first * self.key_stride..], stride: self.key_stride };
            let v = Rows { x: &self.v[first * self.value_stride..], stride: self.value_stride };
            let scores = &mut scores[..keys * QUERY_TILE];
            let factors = if out.len() > LANES * width {
                make_scores::<I, 2>(isa, q, k, scores);
                weigh::<I, 2>(isa, scores, maxima, sums)
            } else {
                make_scores::<I, 1>(isa, q, k, scores);
                weigh::<I, 1>(isa, scores, maxima, sums)
            };
            if let Some(factors) = factors {
                for (row, factor) in out.chunks_exact_mut(width).zip(factors) {
                    scale(isa, row, factor);
                }
            }
            add_values(isa, scores, v, width, out);
        }
        for (row, sum) in out.chunks_exact_mut(width).zip(sums) {
            scale(isa, row, 1.0 / *sum);
        }
    }
}

/// Rows of keys or values.
#[derive(Clone, Copy)]
struct Rows<'a> {
    x: &'a [f32],
    stride: usize,
}

/// `[queries][width]` times `factor` to `[width][16]`; zeros stand for missing queries.
#[inline(always)]
fn transpose<I: Isa>(isa: I, q: &[f32], factor: f32, out: &mut [f32]) {
    let s = isa.v();
    let width = out.len() / QUERY_TILE;
    for half in (0..QUERY_TILE).step_by(LANES) {
        for e in (0..width).step_by(LANES) {
            let mut rows = [s.splat(0.0); LANES];
            for (row, q) in rows.iter_mut().zip(q.chunks_exact(width).skip(half)) {
                *row = s.load(&q[e..]);
            }
            let columns = s.transpose(rows);
            for (to, column) in out[e * QUERY_TILE..].chunks_mut(QUERY_TILE).zip(columns) {
                s.store(&mut to[half..], s.mul(column, s.splat(factor)));
            }
        }
    }
}

/// Runs `strip` over `count` rows in strips: as many as 6 x 2 sums, two operands and a broadcast
/// fill the 16 registers, then what is left of them.
macro_rules! in_strips {
    ($count:expr, |$first:ident, $rows:ident| $strip:expr) => {{
        let (count, mut $first) = ($count, 0);
        while count - $first >= 6 {
            const $rows: usize = 6;
            $strip;
            $first += $rows;
        }
        if count - $first >= 4 {
            const $rows: usize = 4;
            $strip;
            $first += $rows;
        }
        if count - $first >= 2 {
            const $rows: usize = 2;
            $strip;
            $first += $rows;
        }
        if count > $first {
            const $rows: usize = 1;
            $strip;
        }
    }};
}

/// `scores[key][query]` of `V` vectors of queries.
#[inline(always)]
fn make_scores<I: Isa, const V: usize>(isa: I, q: &[f32], k: Rows<'_>, scores: &mut [f32]) {
    in_strips!(scores.len() / QUERY_TILE, |first, STRIP| {
        let k = Rows { x: &k.x[first * k.stride..], stride: k.stride };
        score_strip::<I, STRIP, V>(isa, q, k, &mut scores[first * QUERY_TILE..]);
    });
}

#[inline(always)]
fn score_strip<I: Isa, const K: usize, const V: usize>(
    isa: I,
    q: &[f32],
    k: Rows<'_>,
    scores: &mut [f32],
) {
    let s = isa.v();
    let width = q.len() / QUERY_TILE;
    let rows: [&[f32]; K] = std::array::from_fn(|i| &k.x[i * k.stride..][..width]);
    let mut acc = [[s.splat(0.0); V]; K];
    for (e, q) in q.chunks_exact(QUERY_TILE).enumerate() {
        let mut vectors = [s.splat(0.0); V];
        for (to, q) in vectors.iter_mut().zip(q.chunks_exact(LANES)) {
            *to = s.load(q);
        }
        for (acc, row) in acc.iter_mut().zip(rows) {
            let key = s.splat(row[e]);
            for v in 0..V {
                acc[v] = s.fma(key, vectors[v], acc[v]);
            }
        }
    }
    for (to, acc) in scores.chunks_exact_mut(QUERY_TILE).zip(acc) {
        for (to, acc) in to.chunks_exact_mut(LANES).zip(acc) {
            s.store(to, acc);
        }
    }
}

/// Scores to weights `e^(score - maximum)`, and these to the sums. Where a maximum has risen: what
/// the sums of before count, which is one where it has not.
#[inline(always)]
fn weigh<I: Isa, const V: usize>(
    isa: I,
    scores: &mut [f32],
    maxima: &mut [f32],
    sums: &mut [f32],
) -> Option<[f32; QUERY_TILE]> {
    let s = isa.v();
    let mut factors = [1.0; QUERY_TILE];
    let mut has_risen = false;
    for half in (0..V * LANES).step_by(LANES) {
        let before = s.load(&maxima[half..]);
        let mut largest = before;
        for key in scores.chunks_exact(QUERY_TILE) {
            largest = s.max(s.load(&key[half..]), largest);
        }
        let mut sum = s.load(&sums[half..]);
        if s.equal_lanes(before, largest) != (1 << LANES) - 1 {
            has_risen = true;
            let factor = math::exp_nonzero(s, s.sub(before, largest));
            s.store(&mut factors[half..], factor);
            s.store(&mut maxima[half..], largest);
            sum = s.mul(sum, factor);
        }
        for key in scores.chunks_exact_mut(QUERY_TILE) {
            let weight = math::exp_nonzero(s, s.sub(s.load(&key[half..]), largest));
            s.store(&mut key[half..], weight);
            sum = s.add(sum, weight);
        }
        s.store(&mut sums[half..], sum);
    }
    has_risen.then_some(factors)
}

#[inline(always)]
fn scale<I: Isa>(isa: I, row: &mut [f32], factor: f32) {
    let s = isa.v();
    for x in row.chunks_exact_mut(LANES) {
        let value = s.mul(s.load(x), s.splat(factor));
        s.store(x, value);
    }
}

/// `out += weights * values` over the tile's keys.
#[inline(always)]
fn add_values<I: Isa>(isa: I, weights: &[f32], v: Rows<'_>, width: usize, out: &mut [f32]) {
    let queries = out.len() / width;
    let paired = width / (2 * LANES) * (2 * LANES);
    for at in (0..paired).step_by(2 * LANES) {
        in_strips!(queries, |first, STRIP| {
            let (weights, out) = (&weights[first..], &mut out[first * width..]);
            value_strip::<I, STRIP, 2>(isa, weights, v, width, at, out);
        });
    }
    if paired < width {
        in_strips!(queries, |first, STRIP| {
            let (weights, out) = (&weights[first..], &mut out[first * width..]);
            value_strip::<I, STRIP, 1>(isa, weights, v, width, paired, out);
        });
    }
}

/// The elements from `at` on, `V` vectors of them, of the first `Q` queries.
#[inline(always)]
fn value_strip<I: Isa, const Q: usize, const V: usize>(
    isa: I,
    weights: &[f32],
    values: Rows<'_>,
    width: usize,
    at: usize,
    out: &mut [f32],
) {
    let s = isa.v();
    let mut acc = [[s.splat(0.0); V]; Q];
    for (q, acc) in acc.iter_mut().enumerate() {
        for (v, x) in acc.iter_mut().enumerate() {
            *x = s.load(&out[q * width + at + v * LANES..]);
        }
    }
    for (key, weights) in weights.chunks(QUERY_TILE).enumerate() {
        let value = &values.x[key * values.stride + at..][..V * LANES];
        let mut vectors = [s.splat(0.0); V];
        for (to, value) in vectors.iter_mut().zip(value.chunks_exact(LANES)) {
            *to = s.load(value);
        }
        for (acc, weight) in acc.iter_mut().zip(&weights[..Q]) {
            let weight = s.splat(*weight);
            for v in 0..V {
                acc[v] = s.fma(weight, vectors[v], acc[v]);
            }
        }
    }
    for (q, acc) in acc.iter().enumerate() {
        for (v, x) in acc.iter().enumerate() {
            s.store(&mut out[q * width + at + v * LANES..], *x);
        }
    }
}
