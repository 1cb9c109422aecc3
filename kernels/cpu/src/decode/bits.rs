//! What the types' decoders are made of: halves, nibbles, and words of 4 codes.

use super::float::f16_to_f32;

/// The f16 at a byte offset.
pub(super) fn f16_at(block: &[u8], offset: usize) -> f32 {
    f16_to_f32(u16::from_le_bytes([block[offset], block[offset + 1]]))
}

/// Writes the low nibbles of `packed` to `low` and its high nibbles to `high`.
pub(super) fn split_nibbles(packed: &[u8], low: &mut [u8], high: &mut [u8]) {
    for ((&byte, low), high) in packed.iter().zip(low).zip(high) {
        *low = byte & 15;
        *high = byte >> 4;
    }
}

/// The lowest bit of each byte of a word.
pub(super) const BIT: u32 = 0x0101_0101;
/// The lowest two.
pub(super) const TWO_BITS: u32 = 0x0303_0303;
/// The highest bit.
pub(super) const SIGNS: u32 = 0x8080_8080;

/// The lower half of each byte.
pub(super) fn low_nibbles(word: u32) -> u32 {
    word & 0x0f0f_0f0f
}

/// The upper half of each byte.
pub(super) fn high_nibbles(word: u32) -> u32 {
    word >> 4 & 0x0f0f_0f0f
}

/// The little-endian words of `4 N` bytes.
#[inline(always)]
pub(super) fn read<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}
