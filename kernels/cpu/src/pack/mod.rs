//! Rewrites rows of a file's matrix into panels of 16 rows, the layout that the GEMM reads.
//!
//! A panel is one work item. Of a float type it holds f32 `[cols][16]`. Of a quantized type it
//! holds, for each 256 weights of the columns (the last ones padded), a packed block of rows 0 to
//! 7, then one of rows 8 to 15. All is little-endian.
//!
//! A packed block has the parts below in this order; one that the type lacks is empty. With `r` the
//! row in the group, `s` the sub-block and `k` the weight in the super-block:
//!
//! | part | types with a super-scale per 256 | types with a scale per 32 |
//! |---|---|---|
//! | scales | f32 `[r]` | f32 `[s][r]` |
//! | mins, if there are any | f32 `[r]` | f32 `[s][r]` |
//! | integer scales | one byte `[s][r]`, unsigned if there are mins, else signed | none |
//! | integer mins, if there are any | u8 `[s][r]` | none |
//! | codes | see below | see below |
//!
//! A weight is `d * scale * code - dmin * min` with a super-scale, else `d * code + dmin`: the
//! file's sign in both cases. Codes take one byte, at `(k / 4) * 32 + r * 4 + k % 4`, or, if the
//! type has no more than 16 of them, half of the byte at
//! `(k / 64) * 256 + (k % 32 / 4) * 32 + r * 4 + k % 4`: the low half when `k % 64 < 32`, otherwise
//! the high half. Either way a 32-byte load meets 4 consecutive weights of each row.

mod blocks;
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
    cols.div_ceil(SUPER_WEIGHTS).saturating_mul(groups * dtype.packed_block_bytes())
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
        _ => dtype.visit(PackBlocks { rows, dst }).unwrap_or_default(),
    }
}

struct PackBlocks<'a> {
    rows: &'a [&'a [u8]],
    dst: &'a mut [u8],
}

impl Visitor for PackBlocks<'_> {
    type Output = ();

    fn visit<F: Unpack>(self) {
        pack_blocks::<F>(self.rows, self.dst);
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
