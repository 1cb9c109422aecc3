//! Decodes a file's tensors: to f32, bit for bit as the `gguf` Python package does, and to the
//! one form (`Tile`) from which every type is decoded and packed.
//!
//! `small` and `kquant` hold what is particular to a type, its bits in the file, and nothing else.

mod bits;
mod finite;
mod float;
mod kquant;
mod small;

pub use finite::first_nonfinite;
pub use float::{bf16_to_f32, f16_to_f32};

use crate::dtype::*;
use bits::f16_at;

/// Decodes a row, or any run of whole blocks: `src` of [`Dtype::row_bytes`]`(dst.len())` bytes to
/// `dst.len()` weights.
///
/// The result equals that of `gguf.quants.dequantize` in every bit. Scale times code is exact: an
/// f16 has 11 significant bits, scale and code together at most 12 more, and f32 has room for
/// 24. So adding the min is the only rounding, and the order of the factors does not matter.
///
/// # Panics
/// If the lengths do not belong together; they are the caller's to check, once per tensor.
pub fn decode_row(dtype: Dtype, src: &[u8], dst: &mut [f32]) {
    assert_eq!(dtype.row_bytes(dst.len()), Some(src.len()), "{dtype}: {} weights", dst.len());
    match dtype {
        Dtype::F32 => decode_floats(src, dst, f32::from_le_bytes),
        Dtype::F16 => decode_floats(src, dst, |bytes| f16_to_f32(u16::from_le_bytes(bytes))),
        Dtype::BF16 => decode_floats(src, dst, |bytes| bf16_to_f32(u16::from_le_bytes(bytes))),
        _ => dtype.visit(Decode { src, dst }).unwrap_or_default(),
    }
}

/// [`decode_row`] of a float type of `N` bytes.
fn decode_floats<const N: usize>(src: &[u8], dst: &mut [f32], widen: impl Fn([u8; N]) -> f32) {
    for (weight, &bytes) in dst.iter_mut().zip(src.as_chunks().0) {
        *weight = widen(bytes);
    }
}

/// Unpacks the scales and mins of one block of the file to slot `slot` of the tile.
pub(crate) fn unpack_scales<F: Unpack>(block: &[u8], slot: usize, tile: &mut Tile) {
    let at = F::FACTS.scale_at;
    tile.d[slot] = f16_at(block, at);
    if F::MIN {
        tile.m[slot] = f16_at(block, at + 2);
    }
    F::sub_scales(block, tile);
}

struct Decode<'a> {
    src: &'a [u8],
    dst: &'a mut [f32],
}

impl Visitor for Decode<'_> {
    type Output = ();

    fn visit<F: Unpack>(self) {
        decode_blocks::<F>(self.src, self.dst);
    }
}

/// [`decode_row`] of a quantized type. Not inlined: in the visitor it is not vectorized, since
/// there the compiler forgets that the slices do not overlap.
#[inline(never)]
fn decode_blocks<F: Unpack>(src: &[u8], dst: &mut [f32]) {
    let mut tile = Tile::ZERO;
    let blocks = src.chunks_exact(F::FILE_BYTES);
    for (block, weights) in blocks.zip(dst.chunks_exact_mut(F::FILE_WEIGHTS)) {
        unpack_scales::<F>(block, 0, &mut tile);
        F::codes(block, 0, &mut tile);
        for (s, sub) in weights.chunks_exact_mut(F::SUB).enumerate() {
            let codes = &tile.codes[s * F::SUB..];
            let (scale, min) = scale_and_min::<F>(&tile, s);
            for (weight, &code) in sub.iter_mut().zip(codes) {
                let product = scale * centred::<F>(code);
                *weight = if F::MIN { product + min } else { product };
            }
        }
    }
}

/// The scale of sub-block `s` of a block unpacked to slot 0, and what is added to its weights.
fn scale_and_min<F: Format>(tile: &Tile, s: usize) -> (f32, f32) {
    if !F::SUPER {
        return (tile.d[s], tile.m[s]);
    }
    let scale = tile.d[0] * f32::from(tile.scales[s].cast_signed());
    // Negated after rounding, so adding it is the subtraction that the formula asks for.
    (scale, -(tile.m[0] * f32::from(tile.mins[s])))
}

/// The signed value of a code.
fn centred<F: Format>(code: u8) -> f32 {
    let value = match F::TABLE {
        Some(table) => table[usize::from(code & 15)],
        None => code,
    };
    (i32::from(value) - F::OFFSET) as f32
}
