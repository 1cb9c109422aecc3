//! Decodes rows of a file's tensors to f32, as the `gguf` Python package does, bit for bit.

use crate::dtype::Dtype;

/// Decodes a row.
pub fn decode_row(_dtype: Dtype, _src: &[u8], _dst: &mut [f32]) {
    unimplemented!("the interface only")
}

/// First block with a scale or min that is not finite.
pub fn first_nonfinite(_dtype: Dtype, _src: &[u8]) -> Option<usize> {
    unimplemented!("the interface only")
}
