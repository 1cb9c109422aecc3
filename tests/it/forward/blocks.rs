//! Rows of every tensor type as a file has them: random, and of a given size.

use crate::common::gguf_writer::tensor_type;
use dllm_cpu::decode::decode_row;
use dllm_cpu::dtype::Dtype;

/// The bits of one in half precision.
const HALF_ONE: u16 = 0x3c00;

/// A stream of random numbers (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014).
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly spread over `low..high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// `rms` is the root mean square, zero the mean.
    pub fn centred(&mut self, rms: f64) -> f64 {
        let largest = 3f64.sqrt() * rms;
        self.between(-largest, largest)
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.bits() as u8).collect()
    }
}

/// The type's number in a file.
pub fn number(dtype: Dtype) -> u32 {
    match dtype {
        Dtype::F32 => tensor_type::F32,
        Dtype::F16 => tensor_type::F16,
        Dtype::BF16 => tensor_type::BF16,
        Dtype::Q4_0 => tensor_type::Q4_0,
        Dtype::Q4_1 => tensor_type::Q4_1,
        Dtype::Q5_0 => tensor_type::Q5_0,
        Dtype::Q5_1 => tensor_type::Q5_1,
        Dtype::Q8_0 => tensor_type::Q8_0,
        Dtype::Q2_K => tensor_type::Q2_K,
        Dtype::Q3_K => tensor_type::Q3_K,
        Dtype::Q4_K => tensor_type::Q4_K,
        Dtype::Q5_K => tensor_type::Q5_K,
        Dtype::Q6_K => tensor_type::Q6_K,
        Dtype::IQ4_NL => tensor_type::IQ4_NL,
        Dtype::IQ4_XS => tensor_type::IQ4_XS,
    }
}

/// Bytes of values in a float type, cut off after the bits that it has.
pub fn floats(dtype: Dtype, values: &[f64]) -> Vec<u8> {
    let bytes = |value: f64| match dtype {
        Dtype::F32 => (value as f32).to_le_bytes().to_vec(),
        Dtype::F16 => half(value).to_le_bytes().to_vec(),
        Dtype::BF16 => (value as f32).to_le_bytes()[2..].to_vec(),
        _ => panic!("{dtype} is no float type"),
    };
    values.iter().flat_map(|value| bytes(*value)).collect()
}

/// A row of `cols` weights whose root mean square is about `rms`.
pub fn row(dtype: Dtype, cols: usize, rms: f64, random: &mut Random) -> Vec<u8> {
    if dtype.is_float() {
        let values: Vec<f64> = (0..cols).map(|_| random.centred(rms)).collect();
        return floats(dtype, &values);
    }
    let blocks = cols / dtype.block_weights();
    (0..blocks).flat_map(|_| block(dtype, rms, random)).collect()
}

/// A block of random codes and integer scales. Its super-scale is chosen for the size, of either
/// sign, and its min takes off about the mean of the weights.
fn block(dtype: Dtype, rms: f64, random: &mut Random) -> Vec<u8> {
    let mut block = random.bytes(dtype.block_bytes());
    let (scale_at, min_at) = halves(dtype);
    let mut set = |scale: u16, min: u16| {
        block[scale_at..][..2].copy_from_slice(&scale.to_le_bytes());
        if let Some(at) = min_at {
            block[at..][..2].copy_from_slice(&min.to_le_bytes());
        }
        let mut weights = vec![0.0; dtype.block_weights()];
        decode_row(dtype, &block, &mut weights);
        (mean(&weights), weights)
    };
    let (mean_of_codes, weights) = set(HALF_ONE, 0);
    let offset = if min_at.is_some() { mean_of_codes } else { 0.0 };
    let squares = weights.iter().map(|w| (f64::from(*w) - offset).powi(2)).sum::<f64>();
    let sign = if random.bits().is_multiple_of(2) { 1.0 } else { -1.0 };
    let size = (squares / weights.len() as f64).sqrt();
    let scale = sign * random.between(0.5, 1.5) * rms / size;
    let (mean_of_mins, _) = set(0, HALF_ONE);
    let min = -scale * mean_of_codes / mean_of_mins * random.between(0.8, 1.2);
    set(half(scale), if min_at.is_some() { half(min) } else { 0 });
    block
}

/// Offsets of the scale and of the min in a block, as ggml's structs have them.
fn halves(dtype: Dtype) -> (usize, Option<usize>) {
    match dtype {
        Dtype::Q4_0 | Dtype::Q5_0 | Dtype::Q8_0 | Dtype::IQ4_NL | Dtype::IQ4_XS => (0, None),
        Dtype::Q4_1 | Dtype::Q5_1 | Dtype::Q4_K | Dtype::Q5_K => (0, Some(2)),
        Dtype::Q2_K => (80, Some(82)),
        Dtype::Q3_K => (108, None),
        Dtype::Q6_K => (208, None),
        Dtype::F32 | Dtype::F16 | Dtype::BF16 => panic!("{dtype} has no blocks"),
    }
}

fn mean(values: &[f32]) -> f64 {
    values.iter().map(|x| f64::from(*x)).sum::<f64>() / values.len() as f64
}

/// The half-precision number next to `value` towards zero.
fn half(value: f64) -> u16 {
    let sign = if value < 0.0 { 0x8000 } else { 0 };
    let size = value.abs();
    assert!(size < 65504.0, "{value} is too large for half precision");
    if size < 2f64.powi(-14) {
        return sign | (size * 2f64.powi(24)) as u16;
    }
    // The exponent's bias falls from 1023 to 15, and 42 of 52 bits of the fraction fall away.
    sign | ((size.to_bits() >> 42) - ((1023 - 15) << 10)) as u16
}
