//! Rewrites rows of a file's matrix into panels of 16 rows, the layout that the GEMM reads.
//!
//! A panel is one work item. Of a quantized type it holds, for each 256 weights of the columns
//! (the last ones padded), a packed block of rows 0 to 7, then one of rows 8 to 15; the block is
//! described at [`Format`]. Of a float type it holds f32 `[cols][16]`. All is little-endian.

mod blocks;
mod direct;
mod interleave;

use crate::decode::decode_row;
use crate::dtype::*;
use blocks::pack_blocks;

/// Bytes of a packed panel of [`PANEL_ROWS`] rows of `cols` weights. Saturates on overflow, so
/// that an absurd size fails where memory is asked for.
pub const fn panel_bytes(dtype: Dtype, cols: usize) -> usize {
    if dtype.is_float() {
        return cols.saturating_mul(COLUMN_BYTES);
    }
    let groups = PANEL_ROWS / GROUP_ROWS;
    cols.div_ceil(SUPER_WEIGHTS).saturating_mul(groups * packed_block_bytes(dtype))
}

/// Bytes of a packed block of [`GROUP_ROWS`] rows by [`SUPER_WEIGHTS`] weights
/// ([`Format::BLOCK_BYTES`]); 0 for the float types, which have no blocks.
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

/// Packs 1 to [`PANEL_ROWS`] rows of `cols` weights into `dst`, every byte of which is written.
/// Each row has [`Dtype::row_bytes`]`(cols)` bytes, `dst` has [`panel_bytes`]`(dtype, cols)`. Rows
/// that are missing and columns up to the next 256 get zero scales and zero codes.
///
/// # Panics
/// If the counts and lengths do not belong together; they are the caller's to check, once per
/// tensor.
pub fn pack_panel(dtype: Dtype, rows: &[&[u8]], cols: usize, dst: &mut [u8]) {
    assert!((1..=PANEL_ROWS).contains(&rows.len()), "{} rows in a panel", rows.len());
    for row in rows {
        assert_eq!(dtype.row_bytes(cols), Some(row.len()), "{dtype}: a row of {cols} weights");
    }
    assert_eq!(dst.len(), panel_bytes(dtype, cols), "{dtype}: a panel of {cols} columns");
    match dtype {
        Dtype::F32 | Dtype::F16 | Dtype::BF16 => pack_floats(dtype, rows, dst),
        Dtype::Q4_0 => pack_blocks::<Q4_0>(rows, dst),
        Dtype::Q4_1 => pack_blocks::<Q4_1>(rows, dst),
        Dtype::Q5_0 => pack_blocks::<Q5_0>(rows, dst),
        Dtype::Q5_1 => pack_blocks::<Q5_1>(rows, dst),
        Dtype::Q8_0 => pack_blocks::<Q8_0>(rows, dst),
        Dtype::Q2_K => pack_blocks::<Q2_K>(rows, dst),
        Dtype::Q3_K => pack_blocks::<Q3_K>(rows, dst),
        Dtype::Q4_K => pack_blocks::<Q4_K>(rows, dst),
        Dtype::Q5_K => pack_blocks::<Q5_K>(rows, dst),
        Dtype::Q6_K => pack_blocks::<Q6_K>(rows, dst),
        Dtype::IQ4_NL => pack_blocks::<IQ4_NL>(rows, dst),
        Dtype::IQ4_XS => pack_blocks::<IQ4_XS>(rows, dst),
    }
}

/// Bytes of one column of a float panel.
const COLUMN_BYTES: usize = PANEL_ROWS * size_of::<f32>();

/// Columns of a float panel filled for all rows before the next ones: 16 KiB, so that they stay
/// in L1 while the rows' writes interleave.
const FLOAT_RUN: usize = 256;

fn pack_floats(dtype: Dtype, rows: &[&[u8]], dst: &mut [u8]) {
    let run_bytes = FLOAT_RUN * dtype.block_bytes();
    let mut values = [0.0_f32; FLOAT_RUN];
    let columns = dst.as_chunks_mut::<COLUMN_BYTES>().0;
    for (run, columns) in columns.chunks_mut(FLOAT_RUN).enumerate() {
        let values = &mut values[..columns.len()];
        for r in 0..PANEL_ROWS {
            match rows.get(r) {
                Some(row) => {
                    let src = &row[run * run_bytes..][..columns.len() * dtype.block_bytes()];
                    decode_row(dtype, src, values);
                }
                None => values.fill(0.0),
            }
            put_column_values(values, r, columns);
        }
    }
}

/// Writes row `r`'s value of each column.
fn put_column_values(values: &[f32], r: usize, columns: &mut [[u8; COLUMN_BYTES]]) {
    let at = r * size_of::<f32>();
    for (column, value) in columns.iter_mut().zip(values) {
        column[at..at + size_of::<f32>()].copy_from_slice(&value.to_le_bytes());
    }
}
