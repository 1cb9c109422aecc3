//! Counter-based random numbers: each is a function of where it is used, never of what was drawn
//! before, so threads, batch neighbours and caches cannot change a request's text.

/// What a number is used for. Part of the counter, so that two uses never share a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stream {
    /// Gumbel noise on a logit; the index is half the token id.
    Noise = 0,
    /// Which token is drawn from a row's distribution.
    Token = 1,
    /// The confidence of algorithm `random`.
    Confidence = 2,
    /// Whether algorithm `origin` commits a position.
    Transfer = 3,
    /// Gumbel noise on a position's confidence (`alg_temp`).
    Position = 4,
}

/// The four words drawn for one place in a run: Philox 4x32-10 with `seed` as the key and
/// (index, position, step, stream) as the counter.
///
/// Philox: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
pub fn draw(seed: u64, step: u32, position: u32, stream: Stream, index: u32) -> [u32; 4] {
    let key = [seed as u32, (seed >> 32) as u32];
    philox([index, position, step, stream as u32], key)
}

/// One uniform number in the open interval (0, 1) for a place that needs only one.
pub fn draw_uniform(seed: u64, step: u32, position: u32, stream: Stream) -> f64 {
    let words = draw(seed, step, position, stream, 0);
    uniform(fraction_bits(words[0], words[1]))
}

/// Bits of a uniform number: with 52 the half that [`uniform`] adds still fits an `f64` exactly.
pub const FRACTION_BITS: u32 = 52;

/// The upper [`FRACTION_BITS`] bits of two words.
pub fn fraction_bits(high: u32, low: u32) -> u64 {
    (u64::from(high) << 32 | u64::from(low)) >> (64 - FRACTION_BITS)
}

/// `(bits + 1/2) / 2^52`: exact, never 0, never 1. `bits` is below 2^52.
pub fn uniform(bits: u64) -> f64 {
    const UNIT: f64 = 1.0 / (1_u64 << FRACTION_BITS) as f64;
    (bits as f64 + 0.5) * UNIT
}

/// Standard Gumbel noise, `-ln(-ln u)`.
pub fn gumbel(bits: u64) -> f64 {
    -libm::log(-libm::log(uniform(bits)))
}

/// Multipliers and key increments of Philox 4x32 (the paper's table 2 and section 4.3).
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// The paper's recommended number of rounds.
const ROUNDS: usize = 10;

fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let ([mut a, mut b, mut c, mut d], [mut left, mut right]) = (counter, key);
    for _ in 0..ROUNDS {
        let first = u64::from(MULTIPLIERS[0]) * u64::from(a);
        let second = u64::from(MULTIPLIERS[1]) * u64::from(c);
        a = (second >> 32) as u32 ^ b ^ left;
        b = second as u32;
        c = (first >> 32) as u32 ^ d ^ right;
        d = first as u32;
        left = left.wrapping_add(KEY_STEPS[0]);
        right = right.wrapping_add(KEY_STEPS[1]);
    }
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published known-answer vectors (file `kat_vectors` of Random123).
    #[test]
    fn philox_known_answers() {
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let cases = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([!0; 4], [!0; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (pi, [0xa409_3822, 0x299f_31d0], [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(philox(counter, key), expected, "counter {counter:x?}");
        }
    }

    #[test]
    fn every_argument_reaches_the_counter() {
        let base = draw(1, 2, 3, Stream::Noise, 4);
        let others = [
            draw(1 << 40, 2, 3, Stream::Noise, 4),
            draw(1, 3, 3, Stream::Noise, 4),
            draw(1, 2, 4, Stream::Noise, 4),
            draw(1, 2, 3, Stream::Token, 4),
            draw(1, 2, 3, Stream::Noise, 5),
        ];
        for (i, other) in others.iter().enumerate() {
            assert_ne!(*other, base, "argument {i}");
        }
    }

    #[test]
    fn uniform_stays_inside_the_open_interval() {
        let last = (1_u64 << FRACTION_BITS) - 1;
        assert_eq!(fraction_bits(!0, !0), last);
        assert!(uniform(0) > 0.0 && uniform(last) < 1.0);
        assert!(gumbel(0).is_finite() && gumbel(last).is_finite());
        assert_eq!(uniform(last / 2), 0.5 - 1.0 / (1_u64 << 53) as f64);
    }
}
