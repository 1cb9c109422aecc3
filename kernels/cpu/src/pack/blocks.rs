//! Rows of a quantized type to packed blocks of 8 rows by 256 weights.
//!
//! Each row's part of a super-block becomes words of 4 codes and a few scales; then those of eight
//! rows are interleaved.

use super::interleave::{self, SUBS_MAX};
use crate::decode::unpack_scales;
use crate::dtype::*;

/// Packs rows of whole file blocks to `dst`, a whole panel.
pub fn pack_blocks<F: Unpack>(rows: &[&[u8]], dst: &mut [u8]) {
    let mut group = Group::ZERO;
    let super_bytes = SUPER_WEIGHTS / F::FILE_WEIGHTS * F::FILE_BYTES;
    for (sb, halves) in dst.chunks_exact_mut(2 * F::BLOCK_BYTES).enumerate() {
        for (half, packed) in halves.chunks_exact_mut(F::BLOCK_BYTES).enumerate() {
            for r in 0..GROUP_ROWS {
                let row = rows.get(half * GROUP_ROWS + r).copied().unwrap_or_default();
                let start = (sb * super_bytes).min(row.len());
                let end = (start + super_bytes).min(row.len());
                group.take::<F>(&row[start..end], r);
            }
            group.put::<F>(packed);
        }
    }
}

/// Eight rows of a super-block, in the units that are interleaved.
struct Group {
    /// The row at hand.
    tile: Tile,
    words: [[u32; WORDS]; GROUP_ROWS],
    scales: [[u8; SUBS_MAX]; GROUP_ROWS],
    mins: [[u8; SUBS_MAX]; GROUP_ROWS],
    d: [[f32; SLOTS]; GROUP_ROWS],
    m: [[f32; SLOTS]; GROUP_ROWS],
}

impl Group {
    const ZERO: Group = Group {
        tile: Tile::ZERO,
        words: [[0; WORDS]; GROUP_ROWS],
        scales: [[0; SUBS_MAX]; GROUP_ROWS],
        mins: [[0; SUBS_MAX]; GROUP_ROWS],
        d: [[0.0; SLOTS]; GROUP_ROWS],
        m: [[0.0; SLOTS]; GROUP_ROWS],
    };

    /// Unpacks row `r`'s part of a super-block, which is short, or empty, where the row ends.
    #[inline(always)]
    fn take<F: Unpack>(&mut self, src: &[u8], r: usize) {
        let tile = &mut self.tile;
        if src.len() < SUPER_WEIGHTS / F::FILE_WEIGHTS * F::FILE_BYTES {
            *tile = Tile::ZERO;
            self.words[r] = [0; WORDS];
        }
        for (slot, block) in src.chunks_exact(F::FILE_BYTES).enumerate() {
            unpack_scales::<F>(block, slot, tile);
            if F::HAS_WORDS {
                F::words(block, slot, &mut self.words[r]);
            } else {
                F::codes(block, slot, tile);
            }
        }
        self.d[r][..F::FLOATS].copy_from_slice(&tile.d[..F::FLOATS]);
        self.m[r][..F::FLOATS].copy_from_slice(&tile.m[..F::FLOATS]);
        if F::SUPER {
            self.scales[r][..F::N_SUB].copy_from_slice(&tile.scales[..F::N_SUB]);
            self.mins[r][..F::N_SUB].copy_from_slice(&tile.mins[..F::N_SUB]);
        }
        match (F::HAS_WORDS, F::NIBBLE) {
            (true, _) => {}
            (_, true) => nibble_words(&tile.codes, &mut self.words[r]),
            (_, false) => byte_words(&tile.codes, &mut self.words[r]),
        }
    }

    /// Writes the packed block.
    fn put<F: Format>(&self, packed: &mut [u8]) {
        put_floats(&self.d, F::FLOATS, &mut packed[F::D..]);
        if F::MIN {
            put_floats(&self.m, F::FLOATS, &mut packed[F::DMIN..]);
        }
        if F::SUPER {
            interleave::bytes(&self.scales, F::N_SUB, &mut packed[F::SCALES..]);
            if F::MIN {
                interleave::bytes(&self.mins, F::N_SUB, &mut packed[F::MINS..]);
            }
        }
        interleave::words(&self.words, packed[F::CODES..].as_chunks_mut().0);
    }
}

/// Words of 4 codes of a byte.
fn byte_words(codes: &[u8; SUPER_WEIGHTS], words: &mut [u32; WORDS]) {
    for (word, four) in words.iter_mut().zip(codes.as_chunks().0) {
        *word = u32::from_le_bytes(*four);
    }
}

/// Words of 4 codes of half a byte, each below the one that comes 32 weights later.
fn nibble_words(codes: &[u8; SUPER_WEIGHTS], words: &mut [u32; WORDS]) {
    for (words, pair) in words.chunks_exact_mut(8).zip(codes.as_chunks::<64>().0) {
        let (low, high) = pair.split_at(32);
        let fours = low.as_chunks().0.iter().zip(high.as_chunks().0);
        for (word, (low, high)) in words.iter_mut().zip(fours) {
            *word = u32::from_le_bytes(*low) | u32::from_le_bytes(*high) << 4;
        }
    }
}

/// Writes one float a row of each of the first `floats` sub-blocks.
fn put_floats(rows: &[[f32; SLOTS]; GROUP_ROWS], floats: usize, out: &mut [u8]) {
    let places = out.as_chunks_mut::<{ GROUP_ROWS * size_of::<f32>() }>().0;
    for (s, place) in places[..floats].iter_mut().enumerate() {
        for (lane, row) in place.as_chunks_mut().0.iter_mut().zip(rows) {
            *lane = row[s].to_le_bytes();
        }
    }
}
