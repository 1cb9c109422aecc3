//! The form that a row's super-block takes between the file and its use.

use super::f16_to_f32;
use crate::dtype::{Format, SUPER_WEIGHTS};

/// Blocks of 32 weights in a super-block.
pub(crate) const SLOTS: usize = SUPER_WEIGHTS / 32;

/// 256 weights of one row: one block of a type with super-scales, or 8 slots of 32 weights.
#[derive(Clone)]
pub(crate) struct Tile {
    /// Unsigned codes in the order of the weights; indices into the table where there is one.
    pub codes: [u8; SUPER_WEIGHTS],
    /// f32 scales, one a slot. With super-scales, only `d[0]`.
    pub d: [f32; SLOTS],
    /// f32 mins as in the file, one a slot. With super-scales, only `m[0]`.
    pub m: [f32; SLOTS],
    /// Integer sub-block scales: i8 in two's complement, which the unsigned ones, having at most 6
    /// bits, are as well.
    pub scales: [u8; 16],
    /// Integer sub-block mins.
    pub mins: [u8; 16],
}

impl Tile {
    /// Weights that are all zero in every type, as their scales are.
    pub const ZERO: Tile = Tile {
        codes: [0; SUPER_WEIGHTS],
        d: [0.0; SLOTS],
        m: [0.0; SLOTS],
        scales: [0; 16],
        mins: [0; 16],
    };

    /// The codes of a slot of 32 weights.
    pub fn slot(&mut self, slot: usize) -> &mut [u8; 32] {
        &mut self.codes.as_chunks_mut().0[slot]
    }
}

/// How a type's bits lie in the file.
pub(crate) trait Unpack: Format {
    /// Unpacks the scales and mins of one block of the file, `block` of [`Format::FILE_BYTES`]
    /// bytes, to slot `slot` of the tile: 0 for a type with super-scales, whose block fills the
    /// tile.
    fn scales(block: &[u8], slot: usize, tile: &mut Tile);

    /// Unpacks its codes.
    fn codes(block: &[u8], slot: usize, tile: &mut Tile);

    /// Unpacks both.
    fn unpack(block: &[u8], slot: usize, tile: &mut Tile) {
        Self::scales(block, slot, tile);
        Self::codes(block, slot, tile);
    }
}

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
