//! The multiply loop: a tile against all tokens, a few at a time.

use super::activations::{CODE_WORDS, SUM_WORDS, SUMS_32_AT};
use super::tile::{GROUPS, Tile, signed};
use crate::dtype::{Format, GROUP_ROWS, PANEL_ROWS, SUPER_WEIGHTS};
use crate::isa::{Isa, Simd, VecF, VecI};

/// The largest [`Isa::TOKEN_TILE`].
pub const TOKEN_TILE_MAX: usize = 6;

/// The activations of one super-block.
#[derive(Clone, Copy)]
pub(super) struct Tokens<'a> {
    pub codes: &'a [[i32; CODE_WORDS]],
    pub sums: &'a [[i32; SUM_WORDS]],
    pub scales: &'a [f32],
}

/// `next` is what will be unpacked after this tile: it is brought nearer meanwhile.
#[inline(always)]
pub(super) fn multiply_all<I: Isa, F: Format>(
    isa: I,
    tile: &Tile,
    x: Tokens<'_>,
    next: &[u8],
    out: &mut [f32],
) {
    // Decided at compile time; an associated constant cannot be a generic argument.
    match I::TOKEN_TILE {
        6 => multiply_strips::<I, F, 6>(isa, tile, x, next, out),
        4 => multiply_strips::<I, F, 4>(isa, tile, x, next, out),
        3 => multiply_strips::<I, F, 3>(isa, tile, x, next, out),
        _ => const { assert!(matches!(I::TOKEN_TILE, 3 | 4 | 6)) },
    }
}

/// `T` tokens at a time, then those that are left: in one go, since a token alone waits for its
/// own sums.
#[inline(always)]
fn multiply_strips<I: Isa, F: Format, const T: usize>(
    isa: I,
    tile: &Tile,
    x: Tokens<'_>,
    next: &[u8],
    out: &mut [f32],
) {
    let tokens = x.codes.len();
    // A little with each strip, so that loads are not held up behind it.
    let mut parts = next.chunks(next.len() * T / tokens.max(T) + 1);
    let mut t = 0;
    while t + T <= tokens {
        isa.prefetch(parts.next().unwrap_or_default());
        multiply::<I, F, T>(isa, tile, x, t, out);
        t += T;
    }
    match tokens - t {
        1 => multiply::<I, F, 1>(isa, tile, x, t, out),
        2 => multiply::<I, F, 2>(isa, tile, x, t, out),
        3 if T > 3 => multiply::<I, F, 3>(isa, tile, x, t, out),
        4 if T > 4 => multiply::<I, F, 4>(isa, tile, x, t, out),
        5 if T > 5 => multiply::<I, F, 5>(isa, tile, x, t, out),
        _ => const { assert!(T <= TOKEN_TILE_MAX) },
    }
}

/// Adds one super-block's products to the outputs of `T` tokens from `first` on.
#[inline(always)]
fn multiply<I: Isa, F: Format, const T: usize>(
    isa: I,
    tile: &Tile,
    x: Tokens<'_>,
    first: usize,
    out: &mut [f32],
) {
    let v = isa.v();
    let codes: &[[i32; CODE_WORDS]; T] = x.codes[first..].first_chunk().unwrap_or_else(|| oob());
    let sums: &[[i32; SUM_WORDS]; T] = x.sums[first..].first_chunk().unwrap_or_else(|| oob());
    let out = &mut out[first * PANEL_ROWS..][..T * PANEL_ROWS];
    if F::SUPER {
        let mut acc = [[v.splat_i32(0); GROUPS]; T];
        for s in 0..SUPER_WEIGHTS / F::SUB {
            add_sub_block::<I, F, T>(isa, tile, s, codes, &mut acc);
        }
        let parts = sum_parts::<I, F, T>(isa, &tile.sum_factors, sums);
        for t in 0..T {
            let out = &mut out[t * PANEL_ROWS..][..PANEL_ROWS];
            finish_super::<I, F>(isa, tile, &acc[t], &parts[t], x.scales[first + t], out);
        }
    } else {
        let mut total = [[v.splat(0.0); GROUPS]; T];
        for t in 0..T {
            for g in 0..GROUPS {
                total[t][g] = v.load(&out[t * PANEL_ROWS + g * GROUP_ROWS..]);
            }
        }
        for s in 0..SUPER_WEIGHTS / F::SUB {
            let mut acc = [[v.splat_i32(0); GROUPS]; T];
            add_sub_block::<I, F, T>(isa, tile, s, codes, &mut acc);
            for t in 0..T {
                let dx = x.scales[(first + t) * 8 + s];
                finish_sub_block::<I, F>(isa, tile, s, &acc[t], &sums[t], dx, &mut total[t]);
            }
        }
        for t in 0..T {
            for g in 0..GROUPS {
                v.store(&mut out[t * PANEL_ROWS + g * GROUP_ROWS..], total[t][g]);
            }
        }
    }
}

#[cold]
fn oob() -> ! {
    unreachable!("token tiles lie within the activations")
}

/// How many products of a sub-block are added before they are widened and scaled.
#[inline(always)]
pub(crate) fn chain_depth<I: Isa, F: Format>() -> usize {
    let depth_max = if signed::<I, F>() { 1 } else { I::depth(F::CODE_MAX).min(F::SUB / 4) };
    // Down to a power of two, so that it divides the vectors of a sub-block.
    1 << depth_max.ilog2()
}

/// `acc[token][group] += scale[s] * (codes of sub-block s . activations)`.
#[inline(always)]
fn add_sub_block<I: Isa, F: Format, const T: usize>(
    isa: I,
    tile: &Tile,
    s: usize,
    x: &[[i32; CODE_WORDS]; T],
    acc: &mut [[VecI<I>; GROUPS]; T],
) {
    let v = isa.v();
    let vectors = F::SUB / 4;
    let depth = chain_depth::<I, F>();
    let scale = |g: usize| {
        if F::SUPER { v.load_i32(&tile.scales[g][s]) } else { isa.scale_lanes(v.splat_i32(1)) }
    };
    for chain in 0..vectors / depth {
        let mut part = [[v.splat_i32(0); GROUPS]; T];
        for link in 0..depth {
            let k = s * vectors + chain * depth + link;
            let w = [v.load_bytes(&tile.codes[0][k]), v.load_bytes(&tile.codes[1][k])];
            for t in 0..T {
                let broadcast = v.splat_i32(x[t][k]);
                for g in 0..GROUPS {
                    part[t][g] = if signed::<I, F>() {
                        isa.dot_signed(w[g], broadcast)
                    } else if link == 0 {
                        isa.dot(w[g], broadcast)
                    } else {
                        isa.dot_add(part[t][g], w[g], broadcast)
                    };
                }
            }
        }
        for t in 0..T {
            for g in 0..GROUPS {
                acc[t][g] = v.add_i32(acc[t][g], isa.widen(part[t][g], scale(g)));
            }
        }
    }
}

/// `sum over sub-blocks of factor * activation sum` of each token: the mins' or the offset's part;
/// zeros where the type needs none. The tokens share the factors, the groups each broadcast.
#[inline(always)]
fn sum_parts<I: Isa, F: Format, const T: usize>(
    isa: I,
    factors: &[[[i32; GROUP_ROWS]; 8]; GROUPS],
    sums: &[[i32; SUM_WORDS]; T],
) -> [[VecI<I>; GROUPS]; T] {
    let v = isa.v();
    let mut totals = [[v.splat_i32(0); GROUPS]; T];
    if !has_sums::<I, F>() {
        return totals;
    }
    let first = if F::SUB == 32 { SUMS_32_AT } else { 0 };
    for p in 0..F::N_SUB / 2 {
        let factors = [v.load_i32(&factors[0][p]), v.load_i32(&factors[1][p])];
        for t in 0..T {
            let pair = v.splat_i32(sums[t][first + p]);
            for g in 0..GROUPS {
                totals[t][g] = isa.dot_i16_add(totals[t][g], factors[g], pair);
            }
        }
    }
    totals
}

/// Whether a super-block's sums of activations count: for the mins or for the zero point.
#[inline(always)]
const fn has_sums<I: Isa, F: Format>() -> bool {
    F::MIN || !signed::<I, F>()
}

/// A token's super-block from integers to the output: `out += dx * (d * acc - m * part)`.
#[inline(always)]
fn finish_super<I: Isa, F: Format>(
    isa: I,
    tile: &Tile,
    acc: &[VecI<I>; GROUPS],
    parts: &[VecI<I>; GROUPS],
    dx: f32,
    out: &mut [f32],
) {
    let v = isa.v();
    let dx = v.splat(dx);
    for g in 0..GROUPS {
        let to = &mut out[g * GROUP_ROWS..][..GROUP_ROWS];
        let d = v.load(&tile.d[g][0]);
        let part = if F::MIN {
            v.fnma(v.load(&tile.m[g][0]), v.to_f32(parts[g]), v.mul(d, v.to_f32(acc[g])))
        } else if has_sums::<I, F>() {
            v.mul(d, v.to_f32(v.sub_i32(acc[g], parts[g])))
        } else {
            v.mul(d, v.to_f32(acc[g]))
        };
        let sum = v.fma(dx, part, v.load(to));
        v.store(to, sum);
    }
}

#[inline(always)]
fn finish_sub_block<I: Isa, F: Format>(
    isa: I,
    tile: &Tile,
    s: usize,
    acc: &[VecI<I>; GROUPS],
    sums: &[i32; SUM_WORDS],
    dx: f32,
    total: &mut [VecF<I>; GROUPS],
) {
    let v = isa.v();
    let dx = v.splat(dx);
    // The sums of 32 are int16 pairs: the low one belongs to the even sub-block.
    let pair = sums[SUMS_32_AT + s / 2];
    let sum = if s.is_multiple_of(2) { pair << 16 >> 16 } else { pair >> 16 };
    for g in 0..GROUPS {
        let shift = if signed::<I, F>() { 0 } else { F::OFFSET * sum };
        let dot = v.to_f32(v.sub_i32(acc[g], v.splat_i32(shift)));
        let mut part = v.mul(v.load(&tile.d[g][s]), dot);
        if F::MIN {
            part = v.fma(v.load(&tile.m[g][s]), v.splat(sum as f32), part);
        }
        total[g] = v.fma(dx, part, total[g]);
    }
}
