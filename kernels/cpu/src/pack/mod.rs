//! Rewrites rows of a file's matrix into panels of 16 rows, the layout that the GEMM reads.

use crate::dtype::*;

/// Bytes of the packed panel of [`PANEL_ROWS`] rows of `cols` weights. Saturates on overflow, so
/// that an absurd size fails where it is laid out.
pub const fn panel_bytes(dtype: Dtype, cols: usize) -> usize {
    let groups = PANEL_ROWS / GROUP_ROWS;
    match dtype {
        Dtype::F32 | Dtype::F16 | Dtype::BF16 => cols.saturating_mul(PANEL_ROWS * size_of::<f32>()),
        _ => cols
            .div_ceil(SUPER_WEIGHTS)
            .saturating_mul(groups * packed_block_bytes(dtype)),
    }
}

/// Bytes of a packed block of [`GROUP_ROWS`] rows by [`SUPER_WEIGHTS`] weights, or 0 for the float
/// types, which are not packed in blocks.
pub const fn packed_block_bytes(dtype: Dtype) -> usize {
    match dtype {
        Dtype::F32 | Dtype::F16 | Dtype::BF16 => 0,
        Dtype::Q4_0 => Q4_0::BLOCK_BYTES,
        Dtype::Q4_1 => Q4_1::BLOCK_BYTES,
        Dtype::Q5_0 => Q5_0::BLOCK_BYTES,
        Dtype::Q5_1 => Q5_1::BLOCK_BYTES,
        Dtype::Q8_0 => Q8_0::BLOCK_BYTES,
        Dtype::Q2_K => Q2_K::BLOCK_BYTES,
        Dtype::Q3_K => Q3_K::BLOCK_BYTES,
        Dtype::Q4_K => Q4_K::BLOCK_BYTES,
        Dtype::Q5_K => Q5_K::BLOCK_BYTES,
        Dtype::Q6_K => Q6_K::BLOCK_BYTES,
        Dtype::IQ4_NL => IQ4_NL::BLOCK_BYTES,
        Dtype::IQ4_XS => IQ4_XS::BLOCK_BYTES,
    }
}

/// Packs 1 to [`PANEL_ROWS`] rows.
pub fn pack_panel(_dtype: Dtype, _rows: &[&[u8]], _cols: usize, _dst: &mut [u8]) {
    unimplemented!("the interface only")
}
