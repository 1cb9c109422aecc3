//! Exact widening of the 16-bit float types, by bit arithmetic.
//!
//! Written out because a conversion instruction would have to be asked for at every call on a CPU
//! that may lack it, and because the result then cannot depend on the CPU's subnormal modes.

/// The f32 equal to the IEEE half with these bits; subnormals, infinities and NaNs included.
#[inline]
pub const fn f16_to_f32(bits: u16) -> f32 {
    /// What a normal number's exponent field gains: f32's bias less f16's.
    const REBIAS: u32 = 127 - 15;
    let sign = ((bits & 0x8000) as u32) << 16;
    let magnitude = (bits & 0x7fff) as u32;
    // Ones and zeros instead of branches, so that a loop over halves can be vectorized.
    let is_subnormal = (magnitude < 0x0400) as u32;
    let is_special = (magnitude >= 0x7c00) as u32;
    // A field of 31 gains twice as much and becomes 255. A subnormal's field of 0 counts as 1,
    // which puts 2^-14 before its fraction: taking that off again is exact.
    let exponent_gain = REBIAS + is_special * REBIAS + is_subnormal;
    let excess = f32::from_bits(is_subnormal * ((REBIAS + 1) << 23));
    let wide = f32::from_bits((magnitude << 13) + (exponent_gain << 23)) - excess;
    f32::from_bits(sign | wide.to_bits())
}

/// The f32 equal to the bfloat16 with these bits.
#[inline]
pub const fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}
