//! The check that keeps NaN and infinity out of the kernels, made once over a file's tensor.

use crate::dtype::{Dtype, Unpack, Visitor};

/// Elements tested between looks at the outcome: long enough to be vectorized, short enough that
/// the one with the fault is then found at once.
const RUN: usize = 1024;

/// The exponent bits of an IEEE half.
const F16_EXPONENT: u16 = 0x7c00;
/// The same of a bfloat16.
const BF16_EXPONENT: u16 = 0x7f80;

/// Index of the first block with an f16 scale or min that is NaN or infinite; of the first such
/// element for the float types. `None` is the promise that every weight decodes to a finite
/// value: the largest finite f16 times the largest integer scale and code is far inside f32.
///
/// # Panics
/// If `src` is not a whole number of blocks.
pub fn first_nonfinite(dtype: Dtype, src: &[u8]) -> Option<usize> {
    assert!(src.len().is_multiple_of(dtype.block_bytes()), "{dtype}: {} bytes", src.len());
    match dtype {
        // The exponent of an F32 lies in its upper half, as a BF16's does.
        Dtype::F32 => first_float::<4>(src, 2, BF16_EXPONENT),
        Dtype::F16 => first_float::<2>(src, 0, F16_EXPONENT),
        Dtype::BF16 => first_float::<2>(src, 0, BF16_EXPONENT),
        _ => dtype.visit(FirstBlock(src)).flatten(),
    }
}

/// [`first_nonfinite`] of a quantized type.
struct FirstBlock<'a>(&'a [u8]);

impl Visitor for FirstBlock<'_> {
    type Output = Option<usize>;

    fn visit<F: Unpack>(self) -> Option<usize> {
        let (scale, min) = (F::FACTS.scale_at, F::FACTS.scale_at + 2 * usize::from(F::MIN));
        first(self.0, F::FILE_BYTES, |blocks| {
            blocks.chunks_exact(F::FILE_BYTES).fold(false, |any, block| {
                any | exponent_full(block, scale, F16_EXPONENT)
                    | exponent_full(block, min, F16_EXPONENT)
            })
        })
    }
}

/// [`first_nonfinite`] of a float type of `N` bytes, whose exponent is in the 16 bits at byte `at`.
fn first_float<const N: usize>(src: &[u8], at: usize, exponent: u16) -> Option<usize> {
    first(src, N, |floats| {
        let floats = floats.as_chunks::<N>().0.iter();
        floats.fold(false, |any, float| any | exponent_full(float, at, exponent))
    })
}

/// Index of the first bad element of `bytes` bytes; `any_bad` tests any number of them without a
/// branch.
#[inline(always)]
fn first(src: &[u8], bytes: usize, any_bad: impl Fn(&[u8]) -> bool) -> Option<usize> {
    let run = src.chunks(RUN * bytes).position(&any_bad)?;
    let at = src[run * RUN * bytes..].chunks(bytes).position(any_bad)?;
    Some(run * RUN + at)
}

/// Whether all exponent bits of the 16 at byte `at` are set, as in infinities and NaNs.
#[inline(always)]
fn exponent_full(bytes: &[u8], at: usize, exponent: u16) -> bool {
    u16::from_le_bytes([bytes[at], bytes[at + 1]]) & exponent == exponent
}
