//! One super-block of a panel, unpacked to what the multiply loop reads.

use super::activations::CODE_WORDS;
use crate::dtype::{Format, GROUP_ROWS, PANEL_ROWS};
use crate::isa::{Isa, Simd, VecI};

/// Packed blocks of a panel's super-block.
pub(super) const GROUPS: usize = PANEL_ROWS / GROUP_ROWS;

/// One super-block of 16 rows, unpacked: what every format looks like to the multiply loop.
#[repr(align(64))]
pub(super) struct Tile {
    /// Codes by group and vector: 4 weights of each of 8 rows.
    pub(super) codes: [[[u8; 32]; CODE_WORDS]; GROUPS],
    /// Sub-block scales as [`Isa::widen`] wants them; unused by types with f32 sub-block scales.
    pub(super) scales: [[[i32; GROUP_ROWS]; 16]; GROUPS],
    /// What multiplies the activation sums, two sub-blocks (int16) a lane: the mins, or the
    /// sub-block scale times the code offset.
    pub(super) sum_factors: [[[i32; GROUP_ROWS]; 8]; GROUPS],
    /// f32 scales: of the super-block in entry 0, or of each 32 weights.
    pub(super) d: [[[f32; GROUP_ROWS]; 8]; GROUPS],
    /// f32 mins, likewise.
    pub(super) m: [[[f32; GROUP_ROWS]; 8]; GROUPS],
}

impl Tile {
    pub(super) const EMPTY: Tile = Tile {
        codes: [[[0; 32]; CODE_WORDS]; GROUPS],
        scales: [[[0; GROUP_ROWS]; 16]; GROUPS],
        sum_factors: [[[0; GROUP_ROWS]; 8]; GROUPS],
        d: [[[0.0; GROUP_ROWS]; 8]; GROUPS],
        m: [[[0.0; GROUP_ROWS]; 8]; GROUPS],
    };

    #[inline(always)]
    pub(super) fn unpack<I: Isa, F: Format>(&mut self, isa: I, g: usize, block: &[u8]) {
        self.unpack_codes::<I, F>(isa, g, &block[F::CODES..F::BLOCK_BYTES]);
        let floats = if F::SUPER { 1 } else { 8 };
        read_floats(&block[F::D..], &mut self.d[g][..floats]);
        if F::MIN {
            read_floats(&block[F::DMIN..], &mut self.m[g][..floats]);
        }
        if F::SUPER {
            self.unpack_scales::<I, F>(isa, g, block);
        }
    }

    #[inline(always)]
    fn unpack_codes<I: Isa, F: Format>(&mut self, isa: I, g: usize, codes: &[u8]) {
        let v = isa.v();
        let vectors = codes.as_chunks::<32>().0;
        let tile = &mut self.codes[g];
        let shift = v.splat_i32(i32::from_le_bytes([F::OFFSET as u8; 4]));
        let finish = |code: VecI<I>| {
            let code = if let Some(table) = &F::TABLE { v.look_up(table, code) } else { code };
            if signed::<I, F>() { v.sub_bytes(code, shift) } else { code }
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
    fn unpack_scales<I: Isa, F: Format>(&mut self, isa: I, g: usize, block: &[u8]) {
        let v = isa.v();
        let scales: &[[u8; GROUP_ROWS]] = &block[F::SCALES..].as_chunks().0[..F::N_SUB];
        let scale = |s: usize| if F::MIN { v.load_u8(&scales[s]) } else { v.load_i8(&scales[s]) };
        for s in 0..F::N_SUB {
            v.store_i32(&mut self.scales[g][s], isa.scale_lanes(scale(s)));
        }
        let mins = block[if F::MIN { F::MINS } else { F::SCALES }..].as_chunks().0;
        let offset = v.splat_i32(F::OFFSET);
        let factor =
            |s: usize| if F::MIN { v.load_u8(&mins[s]) } else { v.mul_i32(offset, scale(s)) };
        for p in 0..F::N_SUB / 2 {
            let pair = v.pair_i16(factor(2 * p), factor(2 * p + 1));
            v.store_i32(&mut self.sum_factors[g][p], pair);
        }
    }
}

/// Whether the tile holds signed weights, the offset already subtracted.
#[inline(always)]
pub(crate) const fn signed<I: Isa, F: Format>() -> bool {
    F::CODE_MAX > I::UNSIGNED_MAX
}

#[inline(always)]
fn read_floats(bytes: &[u8], to: &mut [[f32; GROUP_ROWS]]) {
    for (o, b) in to.as_flattened_mut().iter_mut().zip(bytes.as_chunks::<4>().0) {
        *o = f32::from_le_bytes(*b);
    }
}
