//! Random blocks: all bits random but those of the scales, which give the weights their size.

use dllm_cpu::dtype::Dtype;

/// The golden ratio's fraction in 64 bits: the step of the counter that [`mix`] scrambles.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Sizes that a scale may have around its mean, so that neighbouring blocks differ.
const SIZES: usize = 16;

/// Fills rows of `cols` weights with random ones of mean zero (types without a min: half a step
/// below it, as their codes are) and a standard deviation of `1 / sqrt(cols)` (of the float types:
/// between half of that and all of it). `out` holds whole rows as a file does; `key` decides their
/// contents.
///
/// # Panics
/// Where `out` is no whole number of blocks.
pub fn fill_rows(dtype: Dtype, cols: usize, key: u64, out: &mut [u8]) {
    assert!(out.len().is_multiple_of(dtype.block_bytes()), "{dtype}: {} bytes", out.len());
    fill_random(key, out);
    let deviation = 1.0 / (cols.max(1) as f32).sqrt();
    match scales(dtype) {
        Some(scales) => scales.put(deviation, dtype.block_bytes(), out),
        None => fit_floats(dtype, deviation, out),
    }
}

/// f32 values from 0.5 to 1.
pub(super) fn fill_norm(key: u64, out: &mut [u8]) {
    fill_random(key, out);
    fit_words::<4>(out, 0x007f_ffff, 0.5f32.to_bits());
}

/// f32 values of either sign, from 1/16 to 1/8.
pub(super) fn fill_bias(key: u64, out: &mut [u8]) {
    fill_random(key, out);
    fit_words::<4>(out, 0x807f_ffff, 0.0625f32.to_bits());
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", 2014).
pub(super) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Eight random bytes a turn of a counter that starts at `key`.
fn fill_random(key: u64, out: &mut [u8]) {
    let (words, rest) = out.as_chunks_mut::<8>();
    let mut counter = key;
    for word in words {
        *word = mix(counter).to_le_bytes();
        counter = counter.wrapping_add(STEP);
    }
    let last = mix(counter).to_le_bytes();
    rest.copy_from_slice(&last[..rest.len()]);
}

/// Where the f16 scales of a block lie, and what its codes make of them.
struct Scales {
    scale_at: usize,
    min_at: Option<usize>,
    /// Standard deviation of the weights where the scale is 1 and every other bit random.
    deviation: f32,
    /// The min that makes their mean zero, likewise; added or subtracted as the type does it.
    min: f32,
}

/// `None` for the float types. Deviations: of the product of random scales, where the type has
/// them, and random codes less its offset, and of the random mins.
fn scales(dtype: Dtype) -> Option<Scales> {
    let plain = |scale_at, deviation| Scales { scale_at, min_at: None, deviation, min: 0.0 };
    let with_min =
        |scale_at, deviation, min| Scales { scale_at, min_at: Some(scale_at + 2), deviation, min };
    Some(match dtype {
        Dtype::F32 | Dtype::F16 | Dtype::BF16 => return None,
        Dtype::Q4_0 => plain(0, 4.64),
        Dtype::Q5_0 => plain(0, 9.25),
        Dtype::Q8_0 => plain(0, 73.9),
        Dtype::IQ4_NL => plain(0, 67.4),
        Dtype::IQ4_XS => plain(0, 1247.0),
        Dtype::Q6_K => plain(208, 1366.0),
        Dtype::Q3_K => plain(108, 43.3),
        Dtype::Q4_1 => with_min(0, 4.61, -7.5),
        Dtype::Q5_1 => with_min(0, 9.23, -15.5),
        Dtype::Q4_K => with_min(0, 258.0, 7.5),
        Dtype::Q5_K => with_min(0, 527.0, 15.5),
        Dtype::Q2_K => with_min(80, 13.9, 1.5),
    })
}

impl Scales {
    /// Writes the scales of every block, in one of [`SIZES`] sizes that its random bits choose.
    fn put(&self, deviation: f32, block_bytes: usize, out: &mut [u8]) {
        let mut table = [[[0; 2]; 2]; SIZES];
        for (index, [scale, min]) in table.iter_mut().enumerate() {
            // Evenly from 3/4 to 5/4.
            let size = 0.75 + 0.5 * index as f32 / (SIZES - 1) as f32;
            let value = size * deviation / self.deviation;
            *scale = f16_bits(value).to_le_bytes();
            *min = f16_bits(value * self.min).to_le_bytes();
        }
        for block in out.chunks_exact_mut(block_bytes) {
            let [scale, min] = table[usize::from(block[self.scale_at]) % SIZES];
            block[self.scale_at..self.scale_at + 2].copy_from_slice(&scale);
            if let Some(at) = self.min_at {
                block[at..at + 2].copy_from_slice(&min);
            }
        }
    }
}

/// The nearest f16, subnormal ones included, of a finite value below 65,504.
fn f16_bits(value: f32) -> u16 {
    // With the exponent's bias of an f16 the bits are those of an f16, 13 too many of them.
    let bits = (value.abs() * f32::from_bits((127 - 112) << 23)).to_bits();
    let sign = if value < 0.0 { 0x8000 } else { 0 };
    sign | ((bits + 0x0fff + ((bits >> 13) & 1)) >> 13) as u16
}

/// Keeps sign and mantissa of random floats and gives all the exponent of the largest power of two
/// for which the root mean square, 1.53 times it, does not exceed `deviation`.
fn fit_floats(dtype: Dtype, deviation: f32, out: &mut [u8]) {
    let power = f32::from_bits((deviation / 1.5276).to_bits() & 0x7f80_0000);
    match dtype {
        Dtype::F16 => fit_words::<2>(out, 0x83ff, f16_bits(power).into()),
        Dtype::BF16 => fit_words::<2>(out, 0x807f, power.to_bits() >> 16),
        _ => fit_words::<4>(out, 0x807f_ffff, power.to_bits()),
    }
}

/// `word & keep | set` for every little-endian word of `N` bytes.
fn fit_words<const N: usize>(out: &mut [u8], keep: u32, set: u32) {
    let (keep, set) = (keep.to_le_bytes(), set.to_le_bytes());
    for word in out.as_chunks_mut::<N>().0 {
        for (byte, (keep, set)) in word.iter_mut().zip(keep.iter().zip(set)) {
            *byte = *byte & keep | set;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dllm_cpu::decode::{decode_row, first_nonfinite};

    /// 256 blocks of every type: mean and deviation of the decoded weights within four standard
    /// errors and the last digit of the constants.
    #[test]
    fn weights_have_the_size_that_is_promised() {
        for dtype in Dtype::ALL {
            for cols in [256, 4096, 18_944] {
                let rows = 65_536 / cols + 1;
                let mut bytes = vec![0; rows * dtype.row_bytes(cols).unwrap()];
                fill_rows(dtype, cols, 7, &mut bytes);
                assert_eq!(first_nonfinite(dtype, &bytes), None);
                let mut values = vec![0.0; rows * cols];
                decode_row(dtype, &bytes, &mut values);
                let count = values.len() as f64;
                let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / count;
                let square = values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / count;
                let deviation = (square * cols as f64).sqrt();
                // Scales and mins are shared by 16 to 32 weights, so few of them are independent.
                let error = 4.0 / (count / 32.0).sqrt();
                let low = if dtype.is_float() { 0.5 } else { 1.0 };
                let range = low - error..1.02 + error;
                assert!(range.contains(&deviation), "{dtype} {cols}: {deviation} not in {range:?}");
                // Codes of b bits about 2^(b-1) have a mean of -1/2 and a deviation of
                // sqrt((4^b - 1) / 12): a share of at most 0.218, that of the 3 bits of Q3_K.
                let share = mean * (cols as f64).sqrt();
                assert!(share.abs() < 0.22 + error, "{dtype} {cols}: mean {mean}");
            }
        }
    }

    #[test]
    fn halves_are_rounded_to_nearest() {
        for (value, bits) in [
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65_504.0, 0x7bff),
            (6.103_515_6e-5, 0x0400),
            (5.960_464_5e-8, 0x0001),
            (1.0 + 1.0 / 2048.0, 0x3c00),
            (1.0 + 3.0 / 2048.0, 0x3c02),
            (0.0, 0),
        ] {
            assert_eq!(f16_bits(value), bits, "{value}");
        }
    }

    #[test]
    fn another_key_gives_other_bytes_and_the_same_key_the_same() {
        let fill = |key, len| {
            let mut bytes = vec![0; len];
            fill_random(key, &mut bytes);
            bytes
        };
        assert_eq!(fill(1, 50), fill(1, 56)[..50]);
        assert_ne!(fill(1, 50), fill(2, 50));
        assert!(fill(3, 50)[44..].iter().any(|byte| *byte != 0), "the last bytes stay zero");
    }
}
