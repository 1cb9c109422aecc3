//! The quantized GEMM: one panel of 16 weight rows against all tokens.
//!
//! For each super-block of 256 weights the panel's two groups of 8 rows are unpacked once into a
//! tile of unsigned bytes that stays in L1; all tokens stream past it, [`TOKEN_TILE`] at a time.
//! Lanes are rows, so no sum runs across a register. Everything inside a super-block is integer
//! (K-quants) or integer per 32 weights (types with one scale per 32), so exact; the f32 part is a
//! fused multiply-add or two in a fixed order. The result does not depend on the instruction set.

use crate::dtype::{Format, GROUP_ROWS, PANEL_ROWS, SUPER_WEIGHTS};
use crate::isa::{Isa, Simd, VecF, VecI};
use crate::table::Op;
use core::marker::PhantomData;

/// Tokens whose sums stay in registers: 2 x 3 integer and 2 x 3 partial sums, two weight vectors
/// and a broadcast are 15 of AVX2's 16 registers.
pub const TOKEN_TILE: usize = 3;
/// Activation codes of a super-block, four a word.
pub const CODE_WORDS: usize = SUPER_WEIGHTS / 4;
/// Words of integer sums a super-block: see [`Activations::sums`].
pub const SUM_WORDS: usize = 16;
/// First word of the sums over 32 activations.
const SUMS_32_AT: usize = 8;
const GROUPS: usize = PANEL_ROWS / GROUP_ROWS;

/// Quantized activations of up to `capacity` tokens, super-block-major so that the rows of
/// neighbouring tokens do not collide in L1.
#[derive(Clone, Copy)]
pub struct Activations<'a> {
    /// `[super-block][capacity][64]`: four int8 codes a word, little-endian, in -127..=127.
    pub codes: &'a [i32],
    /// `[super-block][capacity][16]`: two int16 sums a word; words 0..8 the sums of 16 codes,
    /// words 8..12 the sums of 32, the rest unused.
    pub sums: &'a [i32],
    /// One scale per 256: `[super-block][capacity]`; one per 32: `[super-block][capacity][8]`.
    pub scales: &'a [f32],
    /// Tokens present.
    pub tokens: usize,
    /// Tokens that the buffers are laid out for.
    pub capacity: usize,
}

/// Multiplies a packed panel of format `F` by all tokens: `out[token][row] = w[row] . x[token]`.
pub struct GemmPanel<'a, F> {
    /// As [`crate::pack::pack_panel`] lays it out.
    pub panel: &'a [u8],
    /// The activations; scales per 256 or per 32 as `F::SUPER` says.
    pub x: Activations<'a>,
    /// `[tokens][16]`, overwritten.
    pub out: &'a mut [f32],
    /// The format.
    pub format: PhantomData<F>,
}

impl<F: Format> Op for GemmPanel<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let x = self.x;
        let out = &mut self.out[..x.tokens * PANEL_ROWS];
        out.fill(0.0);
        let scales_per_token = if F::SUPER { 1 } else { 8 };
        let codes = x.codes.as_chunks::<CODE_WORDS>().0;
        let sums = x.sums.as_chunks::<SUM_WORDS>().0;
        let mut tile = Tile::EMPTY;
        for (sb, blocks) in self.panel.chunks_exact(GROUPS * F::BLOCK_BYTES).enumerate() {
            for (g, block) in blocks.chunks_exact(F::BLOCK_BYTES).enumerate() {
                tile.unpack::<I, F>(isa, g, block);
            }
            let first = sb * x.capacity;
            let tokens = Tokens {
                codes: &codes[first..first + x.tokens],
                sums: &sums[first..first + x.tokens],
                scales: &x.scales[first * scales_per_token..][..x.tokens * scales_per_token],
            };
            multiply_all::<I, F>(isa, &tile, tokens, out);
        }
    }
}

/// The activations of one super-block.
#[derive(Clone, Copy)]
struct Tokens<'a> {
    codes: &'a [[i32; CODE_WORDS]],
    sums: &'a [[i32; SUM_WORDS]],
    scales: &'a [f32],
}

/// One super-block of 16 rows, unpacked: what every format looks like to the multiply loop.
#[repr(align(64))]
struct Tile {
    /// Codes by group and vector: 4 weights of each of 8 rows.
    codes: [[[u8; 32]; CODE_WORDS]; GROUPS],
    /// Sub-block scales as [`Isa::widen`] wants them; unused by types with f32 sub-block scales.
    scales: [[[i32; GROUP_ROWS]; 16]; GROUPS],
    /// What multiplies the activation sums, two sub-blocks (int16) a lane: the mins, or the
    /// sub-block scale times the code offset.
    sum_factors: [[[i32; GROUP_ROWS]; 8]; GROUPS],
    /// f32 scales: of the super-block in entry 0, or of each 32 weights.
    d: [[[f32; GROUP_ROWS]; 8]; GROUPS],
    /// f32 mins, likewise.
    m: [[[f32; GROUP_ROWS]; 8]; GROUPS],
}

impl Tile {
    const EMPTY: Tile = Tile {
        codes: [[[0; 32]; CODE_WORDS]; GROUPS],
        scales: [[[0; GROUP_ROWS]; 16]; GROUPS],
        sum_factors: [[[0; GROUP_ROWS]; 8]; GROUPS],
        d: [[[0.0; GROUP_ROWS]; 8]; GROUPS],
        m: [[[0.0; GROUP_ROWS]; 8]; GROUPS],
    };

    #[inline(always)]
    fn unpack<I: Isa, F: Format>(&mut self, isa: I, g: usize, block: &[u8]) {
        self.unpack_codes::<I, F>(isa, g, &block[F::CODES..F::BLOCK_BYTES]);
        let floats = if F::SUPER { 1 } else { 8 };
        read_floats(&block[F::D..], &mut self.d[g][..floats]);
        if F::MIN {
            read_floats(&block[F::DMIN..], &mut self.m[g][..floats]);
        }
        if F::SUPER {
            self.unpack_scales::<I, F>(g, block);
        }
    }

    #[inline(always)]
    fn unpack_codes<I: Isa, F: Format>(&mut self, isa: I, g: usize, codes: &[u8]) {
        let v = isa.v();
        let vectors = codes.as_chunks::<32>().0;
        let tile = &mut self.codes[g];
        let shift = v.splat_i32(i32::from_le_bytes([F::OFFSET as u8; 4]));
        let finish = |code: VecI<I>| {
            let code = if let Some(table) = &F::TABLE {
                v.look_up(table, code)
            } else {
                code
            };
            if signed::<I, F>() {
                v.sub_bytes(code, shift)
            } else {
                code
            }
        };
        if F::NIBBLE {
            for (p, quarter) in vectors.chunks_exact(8).enumerate() {
                for (j, bytes) in quarter.iter().enumerate() {
                    let pair = v.load_bytes(bytes);
                    v.store_bytes(&mut tile[p * 16 + j], finish(v.low_nibbles(pair)));
                    v.store_bytes(&mut tile[p * 16 + 8 + j], finish(v.high_nibbles(pair)));
                }
            }
        } else {
            for (to, bytes) in tile.iter_mut().zip(vectors) {
                v.store_bytes(to, finish(v.load_bytes(bytes)));
            }
        }
    }

    #[inline(always)]
    fn unpack_scales<I: Isa, F: Format>(&mut self, g: usize, block: &[u8]) {
        let subs = SUPER_WEIGHTS / F::SUB;
        let scales = block[F::SCALES..].as_chunks::<GROUP_ROWS>().0;
        let scale = |s: usize, r: usize| {
            if F::MIN {
                i32::from(scales[s][r])
            } else {
                i32::from(scales[s][r] as i8)
            }
        };
        for s in 0..subs {
            for r in 0..GROUP_ROWS {
                self.scales[g][s][r] = I::scale_lane(scale(s, r));
            }
        }
        let mins = block[if F::MIN { F::MINS } else { F::SCALES }..]
            .as_chunks::<GROUP_ROWS>()
            .0;
        for p in 0..subs / 2 {
            for r in 0..GROUP_ROWS {
                let factor = |s: usize| {
                    if F::MIN {
                        i32::from(mins[s][r])
                    } else {
                        F::OFFSET * scale(s, r)
                    }
                };
                let (low, high) = (factor(2 * p), factor(2 * p + 1));
                self.sum_factors[g][p][r] = (low & 0xffff) | (high << 16);
            }
        }
    }
}

/// Whether the tile holds signed weights, the offset already subtracted.
#[inline(always)]
const fn signed<I: Isa, F: Format>() -> bool {
    F::CODE_MAX > I::UNSIGNED_MAX
}

#[inline(always)]
fn read_floats(bytes: &[u8], to: &mut [[f32; GROUP_ROWS]]) {
    for (o, b) in to
        .as_flattened_mut()
        .iter_mut()
        .zip(bytes.as_chunks::<4>().0)
    {
        *o = f32::from_le_bytes(*b);
    }
}

#[inline(always)]
fn multiply_all<I: Isa, F: Format>(isa: I, tile: &Tile, x: Tokens<'_>, out: &mut [f32]) {
    let tokens = x.codes.len();
    let mut t = 0;
    while t + TOKEN_TILE <= tokens {
        multiply::<I, F, TOKEN_TILE>(isa, tile, x, t, out);
        t += TOKEN_TILE;
    }
    while t < tokens {
        multiply::<I, F, 1>(isa, tile, x, t, out);
        t += 1;
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
        for t in 0..T {
            finish_super::<I, F>(isa, tile, &acc[t], &sums[t], x.scales[first + t], t, out);
        }
    } else {
        for s in 0..SUPER_WEIGHTS / F::SUB {
            let mut acc = [[v.splat_i32(0); GROUPS]; T];
            add_sub_block::<I, F, T>(isa, tile, s, codes, &mut acc);
            for t in 0..T {
                let dx = x.scales[(first + t) * 8 + s];
                finish_sub_block::<I, F>(isa, tile, s, &acc[t], &sums[t], dx, t, out);
            }
        }
    }
}

#[cold]
fn oob() -> ! {
    panic!("token tile beyond the activations")
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
    let depth = if signed::<I, F>() {
        1
    } else {
        I::depth(F::CODE_MAX).min(vectors)
    };
    let scale = |g: usize| {
        if F::SUPER {
            v.load_i32(&tile.scales[g][s])
        } else {
            v.splat_i32(I::scale_lane(1))
        }
    };
    for chain in 0..vectors / depth {
        let mut part = [[v.splat_i32(0); GROUPS]; T];
        for link in 0..depth {
            let k = s * vectors + chain * depth + link;
            let w = [
                v.load_bytes(&tile.codes[0][k]),
                v.load_bytes(&tile.codes[1][k]),
            ];
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

/// `sum over sub-blocks of factor * activation sum`: the mins' or the offset's part.
#[inline(always)]
fn sum_part<I: Isa, F: Format>(
    isa: I,
    factors: &[[i32; GROUP_ROWS]; 8],
    sums: &[i32; SUM_WORDS],
) -> VecI<I> {
    let v = isa.v();
    let first = if F::SUB == 32 { SUMS_32_AT } else { 0 };
    let mut total = v.splat_i32(0);
    for p in 0..SUPER_WEIGHTS / F::SUB / 2 {
        let product = v.dot_i16(v.load_i32(&factors[p]), v.splat_i32(sums[first + p]));
        total = v.add_i32(total, product);
    }
    total
}

#[inline(always)]
fn finish_super<I: Isa, F: Format>(
    isa: I,
    tile: &Tile,
    acc: &[VecI<I>; GROUPS],
    sums: &[i32; SUM_WORDS],
    dx: f32,
    t: usize,
    out: &mut [f32],
) {
    let v = isa.v();
    let dx = v.splat(dx);
    for g in 0..GROUPS {
        let to = &mut out[t * PANEL_ROWS + g * GROUP_ROWS..][..GROUP_ROWS];
        let d = v.mul(v.load(&tile.d[g][0]), dx);
        let old: VecF<I> = v.load(to);
        let new = if F::MIN {
            let new = v.fma(d, v.to_f32(acc[g]), old);
            let m = v.mul(v.load(&tile.m[g][0]), dx);
            v.fnma(
                m,
                v.to_f32(sum_part::<I, F>(isa, &tile.sum_factors[g], sums)),
                new,
            )
        } else if signed::<I, F>() {
            v.fma(d, v.to_f32(acc[g]), old)
        } else {
            let offset = sum_part::<I, F>(isa, &tile.sum_factors[g], sums);
            v.fma(d, v.to_f32(v.sub_i32(acc[g], offset)), old)
        };
        v.store(to, new);
    }
}

#[inline(always)]
#[expect(
    clippy::too_many_arguments,
    reason = "one token of one sub-block, inlined"
)]
fn finish_sub_block<I: Isa, F: Format>(
    isa: I,
    tile: &Tile,
    s: usize,
    acc: &[VecI<I>; GROUPS],
    sums: &[i32; SUM_WORDS],
    dx: f32,
    t: usize,
    out: &mut [f32],
) {
    let v = isa.v();
    let dx = v.splat(dx);
    // The sums of 32 are int16 pairs: the low one belongs to the even sub-block.
    let pair = sums[SUMS_32_AT + s / 2];
    let sum = if s.is_multiple_of(2) {
        pair << 16 >> 16
    } else {
        pair >> 16
    };
    for g in 0..GROUPS {
        let to = &mut out[t * PANEL_ROWS + g * GROUP_ROWS..][..GROUP_ROWS];
        let d = v.mul(v.load(&tile.d[g][s]), dx);
        let shift = if signed::<I, F>() { 0 } else { F::OFFSET * sum };
        let dot = v.to_f32(v.sub_i32(acc[g], v.splat_i32(shift)));
        let mut new = v.fma(d, dot, v.load(to));
        if F::MIN {
            let m = v.mul(v.load(&tile.m[g][s]), dx);
            new = v.fma(m, v.splat(sum as f32), new);
        }
        v.store(to, new);
    }
}

/// Multiplies a panel of f32 weights by f32 activations.
pub struct GemmPanelF32<'a> {
    /// `[cols][16]` f32, little-endian.
    pub panel: &'a [f32],
    /// `[tokens][stride]`, of which the first `cols` of a row are used.
    pub x: &'a [f32],
    /// Floats between token rows.
    pub stride: usize,
    /// Tokens present.
    pub tokens: usize,
    /// `[tokens][16]`, overwritten.
    pub out: &'a mut [f32],
}

impl Op for GemmPanelF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let weights = self.panel.as_chunks::<PANEL_ROWS>().0;
        for first in (0..self.tokens).step_by(4) {
            let x = &self.x[first * self.stride..];
            let out = &mut self.out[first * PANEL_ROWS..];
            match self.tokens - first {
                1 => multiply_f32::<I, 1>(isa, weights, x, self.stride, out),
                2 => multiply_f32::<I, 2>(isa, weights, x, self.stride, out),
                3 => multiply_f32::<I, 3>(isa, weights, x, self.stride, out),
                _ => multiply_f32::<I, 4>(isa, weights, x, self.stride, out),
            }
        }
    }
}

#[inline(always)]
fn multiply_f32<I: Isa, const T: usize>(
    isa: I,
    weights: &[[f32; PANEL_ROWS]],
    x: &[f32],
    stride: usize,
    out: &mut [f32],
) {
    let v = isa.v();
    let mut rows = [&x[..0]; T];
    for t in 0..T {
        rows[t] = &x[t * stride..][..weights.len()];
    }
    let mut acc = [[v.splat(0.0); GROUPS]; T];
    for (k, w) in weights.iter().enumerate() {
        let w = [v.load(&w[..GROUP_ROWS]), v.load(&w[GROUP_ROWS..])];
        for t in 0..T {
            let broadcast = v.splat(rows[t][k]);
            for g in 0..GROUPS {
                acc[t][g] = v.fma(w[g], broadcast, acc[t][g]);
            }
        }
    }
    for t in 0..T {
        for g in 0..GROUPS {
            v.store(&mut out[t * PANEL_ROWS + g * GROUP_ROWS..], acc[t][g]);
        }
    }
}
