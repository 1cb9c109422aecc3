//! The types with integer sub-block scales under an f16 super-scale for every 256 weights.
//!
//! Codes lie in runs of 32 bytes that each serve several runs of 32 weights, one per bit field.

use super::bits::{BIT, TWO_BITS, high_nibbles, low_nibbles, read, split_nibbles};
use crate::dtype::*;

impl Unpack for Q2_K {
    fn sub_scales(block: &[u8], tile: &mut Tile) {
        for (s, &both) in block[..16].iter().enumerate() {
            tile.scales[s] = both & 15;
            tile.mins[s] = both >> 4;
        }
    }

    fn codes(block: &[u8], _slot: usize, tile: &mut Tile) {
        two_bits(&block[16..80], &mut tile.codes);
    }
}

impl Unpack for Q3_K {
    fn sub_scales(block: &[u8], tile: &mut Tile) {
        let (low, high) = block[96..108].split_at(8);
        for s in 0..16 {
            let low_bits = low[s % 8] >> (s / 8 * 4) & 15;
            let high_bits = high[s % 4] >> (s / 4 * 2) & 3;
            tile.scales[s] = (low_bits | high_bits << 4).wrapping_sub(32);
        }
    }

    fn codes(block: &[u8], _slot: usize, tile: &mut Tile) {
        two_bits(&block[32..96], &mut tile.codes);
        one_bits(&block[..32], 2, &mut tile.codes);
    }
}

impl Unpack for Q4_K {
    const HAS_WORDS: bool = true;

    fn sub_scales(block: &[u8], tile: &mut Tile) {
        six_bits(&block[4..16], tile);
    }

    fn codes(block: &[u8], _slot: usize, tile: &mut Tile) {
        nibble_pairs::<32>(&block[16..144], &mut tile.codes);
    }

    /// The file pairs the same weights in a byte as the packed block does.
    #[inline(always)]
    fn words(block: &[u8], _slot: usize, words: &mut [u32; WORDS]) {
        words[..32].copy_from_slice(&read::<32>(&block[16..144]));
    }
}

impl Unpack for Q5_K {
    const HAS_WORDS: bool = true;

    fn sub_scales(block: &[u8], tile: &mut Tile) {
        six_bits(&block[4..16], tile);
    }

    fn codes(block: &[u8], _slot: usize, tile: &mut Tile) {
        nibble_pairs::<32>(&block[48..176], &mut tile.codes);
        one_bits(&block[16..48], 4, &mut tile.codes);
    }

    #[inline(always)]
    fn words(block: &[u8], _slot: usize, words: &mut [u32; WORDS]) {
        let high = read::<8>(&block[16..48]);
        for (pair, words) in words.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let both = read::<8>(&block[48 + 32 * pair..80 + 32 * pair]);
            for i in 0..8 {
                let fifth = high[i] >> (2 * pair);
                words[i] = low_nibbles(both[i]) | (fifth & BIT) << 4;
                words[i + 8] = high_nibbles(both[i]) | (fifth >> 1 & BIT) << 4;
            }
        }
    }
}

impl Unpack for Q6_K {
    const HAS_WORDS: bool = true;

    fn sub_scales(block: &[u8], tile: &mut Tile) {
        tile.scales.copy_from_slice(&block[192..208]);
    }

    fn codes(block: &[u8], _slot: usize, tile: &mut Tile) {
        nibble_pairs::<64>(&block[..128], &mut tile.codes);
        let mut high = [0; SUPER_WEIGHTS];
        two_bits(&block[128..192], &mut high);
        for (code, high) in tile.codes.iter_mut().zip(high) {
            *code |= high << 4;
        }
    }

    #[inline(always)]
    fn words(block: &[u8], _slot: usize, words: &mut [u32; WORDS]) {
        for (half, words) in words.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let low = read::<16>(&block[64 * half..64 * half + 64]);
            let high = read::<8>(&block[128 + 32 * half..160 + 32 * half]);
            for i in 0..8 {
                words[i] = low_nibbles(low[i]) | (high[i] & TWO_BITS) << 4;
                words[i + 8] = low_nibbles(low[i + 8]) | (high[i] >> 2 & TWO_BITS) << 4;
                words[i + 16] = high_nibbles(low[i]) | (high[i] >> 4 & TWO_BITS) << 4;
                words[i + 24] = high_nibbles(low[i + 8]) | (high[i] >> 6 & TWO_BITS) << 4;
            }
        }
    }
}

impl Unpack for IQ4_XS {
    fn sub_scales(block: &[u8], tile: &mut Tile) {
        let high = u16::from_le_bytes([block[2], block[3]]);
        for s in 0..8 {
            let low_bits = block[4 + s / 2] >> (s % 2 * 4) & 15;
            let high_bits = (high >> (2 * s) & 3) as u8;
            tile.scales[s] = (low_bits | high_bits << 4).wrapping_sub(32);
        }
    }

    fn codes(block: &[u8], _slot: usize, tile: &mut Tile) {
        nibble_pairs::<16>(&block[8..136], &mut tile.codes);
    }
}

/// 8 scales and 8 mins of 6 bits. The first four of either are the low bits of a byte; the last
/// four have their low nibble in bytes 8 to 11 and their high two bits above the first four.
#[inline(always)]
fn six_bits(packed: &[u8], tile: &mut Tile) {
    // Four bytes at a time: a word holds one field of four sub-blocks.
    let [scales, mins, nibbles] = read(packed);
    let (low_six, low_four, next_two) = (0x3f3f_3f3f, 0x0f0f_0f0f, 0x3030_3030);
    let eight = |first: u32, last: u32| (u64::from(first) | u64::from(last) << 32).to_le_bytes();
    let late_scales = nibbles & low_four | scales >> 2 & next_two;
    let late_mins = nibbles >> 4 & low_four | mins >> 2 & next_two;
    tile.scales.as_chunks_mut().0[0] = eight(scales & low_six, late_scales);
    tile.mins.as_chunks_mut().0[0] = eight(mins & low_six, late_mins);
}

/// Each run of `RUN` bytes holds `RUN` weights in its low nibbles and the next `RUN` in its high.
fn nibble_pairs<const RUN: usize>(packed: &[u8], codes: &mut [u8; SUPER_WEIGHTS]) {
    for (run, pair) in packed.chunks_exact(RUN).zip(codes.chunks_exact_mut(2 * RUN)) {
        let (low, high) = pair.split_at_mut(RUN);
        split_nibbles(run, low, high);
    }
}

/// Each run of 32 bytes holds 128 weights: 32 in bits 0 and 1, the next 32 in bits 2 and 3, ...
fn two_bits(packed: &[u8], codes: &mut [u8; SUPER_WEIGHTS]) {
    for (run, out) in packed.chunks_exact(32).zip(codes.chunks_exact_mut(128)) {
        for (field, codes) in out.chunks_exact_mut(32).enumerate() {
            for (code, &byte) in codes.iter_mut().zip(run) {
                *code = byte >> (2 * field) & 3;
            }
        }
    }
}

/// Puts bit `i` of 32 bytes above the codes of the `i`-th 32 weights, at bit `place`.
fn one_bits(packed: &[u8], place: u32, codes: &mut [u8; SUPER_WEIGHTS]) {
    for (i, codes) in codes.chunks_exact_mut(32).enumerate() {
        for (code, &byte) in codes.iter_mut().zip(packed) {
            *code |= (byte >> i & 1) << place;
        }
    }
}
