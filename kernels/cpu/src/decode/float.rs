//! Exact widening of the 16-bit float types, by bit arithmetic.
//!
//! Written out because a conversion instruction would have to be asked for at every call on a CPU
//! that may lack it, and because the result then cannot depend on the CPU's subnormal modes.

use crate::dtype::Dtype;

/// The f32 equal to the IEEE half with these bits; subnormals, infinities and NaNs included.
pub const fn f16_to_f32(bits: u16) -> f32 {
    /// 0.5, whose last fraction bit is worth 2^-24, as is a subnormal half's.
    const HALF_BITS: u32 = 126 << 23;
    /// What the exponent field gains: f32's bias less f16's, at f32's place.
    const REBIAS: u32 = (127 - 15) << 23;
    let sign = ((bits & 0x8000) as u32) << 16;
    let magnitude = (bits & 0x7fff) as u32;
    let wide = if magnitude >= 0x7c00 {
        0x7f80_0000 | (magnitude << 13)
    } else if magnitude < 0x0400 {
        (f32::from_bits(HALF_BITS | magnitude) - 0.5).to_bits()
    } else {
        (magnitude << 13) + REBIAS
    };
    f32::from_bits(sign | wide)
}

/// The f32 equal to the bfloat16 with these bits.
pub const fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

/// The values of a run of floats of type `dtype`; nothing if it is a quantized type.
pub(crate) fn floats(dtype: Dtype, src: &[u8]) -> impl Iterator<Item = f32> {
    let singles = if dtype == Dtype::F32 { src } else { &[] };
    let halves = if dtype == Dtype::F16 { src } else { &[] };
    let brains = if dtype == Dtype::BF16 { src } else { &[] };
    let singles = singles.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
    let halves = halves.as_chunks().0.iter().map(|&bytes| f16_to_f32(u16::from_le_bytes(bytes)));
    let brains = brains.as_chunks().0.iter().map(|&bytes| bf16_to_f32(u16::from_le_bytes(bytes)));
    singles.chain(halves).chain(brains)
}
