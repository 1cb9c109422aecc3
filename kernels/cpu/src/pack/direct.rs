//! Short ways from a file's block to words of 4 codes, for the types that files are made of most.
//!
//! The way that every type has leads over codes of a byte each ([`Unpack::codes`]). Where a word
//! of the file holds the bits of 4 neighbouring codes, these take whole words: fewer steps,
//! and a few instructions for a whole row where the compiler finds them.

use super::blocks::WORDS;
use crate::decode::Unpack;
use crate::dtype::*;

/// A type as it is packed.
pub trait Direct: Unpack {
    /// Whether [`Direct::words`] is to be used.
    const DIRECT: bool = false;

    /// Writes the words of one block of the file, of which `slot` is the place in its super-block.
    fn words(_block: &[u8], _slot: usize, _words: &mut [u32; WORDS]) {}
}

impl Direct for Q4_0 {}
impl Direct for Q4_1 {}
impl Direct for Q5_0 {}
impl Direct for Q5_1 {}
impl Direct for Q2_K {}
impl Direct for Q3_K {}
impl Direct for IQ4_NL {}
impl Direct for IQ4_XS {}

impl Direct for Q4_K {
    const DIRECT: bool = true;

    /// The file pairs the same weights in a byte as the packed block does.
    #[inline(always)]
    fn words(block: &[u8], _slot: usize, words: &mut [u32; WORDS]) {
        words[..32].copy_from_slice(&read::<32>(&block[16..144]));
    }
}

impl Direct for Q5_K {
    const DIRECT: bool = true;

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

impl Direct for Q6_K {
    const DIRECT: bool = true;

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

impl Direct for Q8_0 {
    const DIRECT: bool = true;

    #[inline(always)]
    fn words(block: &[u8], slot: usize, words: &mut [u32; WORDS]) {
        let words = &mut words.as_chunks_mut::<8>().0[slot];
        // Adding 128 to a two's complement byte is flipping its sign bit.
        *words = read::<8>(&block[2..34]).map(|word| word ^ SIGNS);
    }
}

/// The lowest bit of each byte of a word.
const BIT: u32 = 0x0101_0101;
/// The lowest two.
const TWO_BITS: u32 = 0x0303_0303;
/// The lower half.
const NIBBLES: u32 = 0x0f0f_0f0f;
/// The highest bit.
const SIGNS: u32 = 0x8080_8080;

/// The lower half of each byte.
fn low_nibbles(word: u32) -> u32 {
    word & NIBBLES
}

/// The upper half of each byte.
fn high_nibbles(word: u32) -> u32 {
    word >> 4 & NIBBLES
}

/// The little-endian words of `4 N` bytes.
#[inline(always)]
fn read<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}
