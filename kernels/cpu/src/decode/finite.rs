//! The check that keeps NaN and infinity out of the kernels, made once over a file's tensor.

use crate::dtype::Dtype;

/// Elements tested between looks at the outcome: long enough to be vectorized, short enough that
/// the one with the fault is then found at once.
const RUN: usize = 1024;

/// The exponent bits of an IEEE half; all ones in infinities and NaNs.
const F16_EXPONENT: u16 = 0x7c00;
/// The same of a bfloat16.
const BF16_EXPONENT: u16 = 0x7f80;
/// The same of an f32.
const F32_EXPONENT: u32 = 0x7f80_0000;

/// Index of the first block with an f16 scale or min that is NaN or infinite; of the first such
/// element for the float types. `None` is the promise that every weight decodes to a finite
/// value: the largest finite f16 times the largest integer scale and code is far inside f32.
///
/// # Panics
/// If `src` is not a whole number of blocks.
pub fn first_nonfinite(dtype: Dtype, src: &[u8]) -> Option<usize> {
    assert!(src.len().is_multiple_of(dtype.block_bytes()), "{dtype}: {} bytes", src.len());
    match dtype {
        Dtype::F32 => first(src.as_chunks().0, |&x| exponent_full_32(x)),
        Dtype::F16 => first(src.as_chunks().0, |&x| exponent_full_16(x, F16_EXPONENT)),
        Dtype::BF16 => first(src.as_chunks().0, |&x| exponent_full_16(x, BF16_EXPONENT)),
        Dtype::Q4_0 | Dtype::IQ4_NL => first_block::<18>(src, 0, 0),
        Dtype::Q4_1 => first_block::<20>(src, 0, 2),
        Dtype::Q5_0 => first_block::<22>(src, 0, 0),
        Dtype::Q5_1 => first_block::<24>(src, 0, 2),
        Dtype::Q8_0 => first_block::<34>(src, 0, 0),
        Dtype::Q2_K => first_block::<84>(src, 80, 82),
        Dtype::Q3_K => first_block::<110>(src, 108, 108),
        Dtype::Q4_K => first_block::<144>(src, 0, 2),
        Dtype::Q5_K => first_block::<176>(src, 0, 2),
        Dtype::Q6_K => first_block::<210>(src, 208, 208),
        Dtype::IQ4_XS => first_block::<136>(src, 0, 0),
    }
}

/// The first block of `N` bytes whose f16 at offset `a` or `b` is not finite.
fn first_block<const N: usize>(src: &[u8], a: usize, b: usize) -> Option<usize> {
    first(src.as_chunks::<N>().0, |block| {
        exponent_full_16([block[a], block[a + 1]], F16_EXPONENT)
            | exponent_full_16([block[b], block[b + 1]], F16_EXPONENT)
    })
}

/// Index of the first element that is bad, testing whole runs without a branch.
fn first<T>(elements: &[T], bad: impl Fn(&T) -> bool) -> Option<usize> {
    for (run, items) in elements.chunks(RUN).enumerate() {
        if items.iter().fold(false, |any, item| any | bad(item)) {
            return items.iter().position(&bad).map(|at| run * RUN + at);
        }
    }
    None
}

fn exponent_full_32(bytes: [u8; 4]) -> bool {
    u32::from_le_bytes(bytes) & F32_EXPONENT == F32_EXPONENT
}

fn exponent_full_16(bytes: [u8; 2], exponent: u16) -> bool {
    u16::from_le_bytes(bytes) & exponent == exponent
}
