//! The types with an f16 scale, and perhaps an f16 min, for every 32 weights.
//!
//! All but Q8_0 keep weights 0 to 15 in the low nibbles of 16 bytes and 16 to 31 in the high ones.

use super::bits::{SIGNS, read, split_nibbles};
use crate::dtype::*;

impl Unpack for Q4_0 {
    fn codes(block: &[u8], slot: usize, tile: &mut Tile) {
        nibbles(&block[2..18], tile.slot(slot));
    }
}

impl Unpack for Q4_1 {
    fn codes(block: &[u8], slot: usize, tile: &mut Tile) {
        nibbles(&block[4..20], tile.slot(slot));
    }
}

impl Unpack for Q5_0 {
    fn codes(block: &[u8], slot: usize, tile: &mut Tile) {
        nibbles(&block[6..22], tile.slot(slot));
        fifth_bits(&block[2..6], tile.slot(slot));
    }
}

impl Unpack for Q5_1 {
    fn codes(block: &[u8], slot: usize, tile: &mut Tile) {
        nibbles(&block[8..24], tile.slot(slot));
        fifth_bits(&block[4..8], tile.slot(slot));
    }
}

impl Unpack for Q8_0 {
    const HAS_WORDS: bool = true;

    fn codes(block: &[u8], slot: usize, tile: &mut Tile) {
        for (code, &signed) in tile.slot(slot).iter_mut().zip(&block[2..34]) {
            // Adding 128 to a two's complement byte is flipping its sign bit.
            *code = signed ^ 0x80;
        }
    }

    #[inline(always)]
    fn words(block: &[u8], slot: usize, words: &mut [u32; WORDS]) {
        words.as_chunks_mut::<8>().0[slot] = read::<8>(&block[2..34]).map(|word| word ^ SIGNS);
    }
}

impl Unpack for IQ4_NL {
    fn codes(block: &[u8], slot: usize, tile: &mut Tile) {
        Q4_0::codes(block, slot, tile);
    }
}

fn nibbles(packed: &[u8], codes: &mut [u8; SMALL_WEIGHTS]) {
    let (low, high) = codes.split_at_mut(16);
    split_nibbles(packed, low, high);
}

/// Adds 16 to each code whose bit is set; weight `i` has bit `i` of the little-endian word.
fn fifth_bits(bits: &[u8], codes: &mut [u8; SMALL_WEIGHTS]) {
    for (eight, &byte) in codes.as_chunks_mut::<8>().0.iter_mut().zip(bits) {
        for (i, code) in eight.iter_mut().enumerate() {
            *code |= (byte >> i & 1) << 4;
        }
    }
}
