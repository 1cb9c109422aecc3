//! Reproducible random numbers (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", 2014: SplitMix64).

/// The state of a generator.
pub struct Random(pub u64);

impl Random {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An integer in `low..=high`.
    pub fn integer(&mut self, low: i64, high: i64) -> i64 {
        low + (self.bits() % (high - low + 1) as u64) as i64
    }

    /// `n` floats in `-size..size`, of 24 random bits each.
    pub fn floats(&mut self, n: usize, size: f32) -> Vec<f32> {
        let mut float = || (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0;
        (0..n).map(|_| float() * size).collect()
    }

    /// `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.bits() as u8).collect()
    }
}
