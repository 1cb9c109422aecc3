//! The tensor table: names, shapes, types, and where the data lie.

use super::caps;
use super::cursor::Cursor;
use super::error::{Error, TensorError};
use super::names::{ByName, Named};
use super::text::quoted;
use super::types::{self, GgmlType};

/// Bytes of the shortest entry: a name of one character, a dimension, a type, an offset.
const ENTRY_BYTES_MIN: usize = 8 + 1 + 4 + 8 + 4 + 8;

/// One tensor of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorInfo {
    /// Its name.
    pub name: String,
    /// Elements along each dimension, the fastest first: `dims[0]` is the length of a row, the
    /// number of columns. Dimensions that it does not have are 1.
    pub dims: [u64; 4],
    /// How many dimensions it has, 1 to 4.
    pub dim_count: usize,
    /// ggml's number of its type; one of [`types`](super::types).
    pub type_id: u32,
    /// Index of the part that holds its data.
    pub part: usize,
    /// Byte offset of its data from the start of that part.
    pub offset: usize,
    /// Bytes of data.
    pub bytes: usize,
}

impl TensorInfo {
    /// Elements of a row.
    pub fn cols(&self) -> u64 {
        self.dims[0]
    }

    /// Rows over all further dimensions.
    pub fn rows(&self) -> u64 {
        // The product of all four dimensions fitted 64 bits when the entry was read.
        self.dims[1..].iter().fold(1, |rows: u64, &dim| rows.saturating_mul(dim))
    }

    /// Elements in all.
    pub fn elements(&self) -> u64 {
        self.rows().saturating_mul(self.cols())
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.bytes / (self.rows().max(1) as usize)
    }

    /// The dimensions that it has, the fastest first.
    pub fn shape(&self) -> &[u64] {
        &self.dims[..self.dim_count.min(self.dims.len())]
    }

    /// Its type, if `type_id` is one that ggml defines, as it is for every tensor of a file.
    pub fn ggml_type(&self) -> Option<&'static GgmlType> {
        types::by_id(self.type_id)
    }

    /// The name of its type.
    pub fn type_name(&self) -> &'static str {
        self.ggml_type().map_or("unknown", |ty| ty.name)
    }

    /// The error of having the name of another tensor.
    pub(super) fn duplicate(&self) -> Error {
        Error::tensor(&self.name, TensorError::Duplicate)
    }
}

impl Named for TensorInfo {
    fn name(&self) -> &str {
        &self.name
    }
}

/// A tensor as the table has it: `offset` counts from the start of the data section.
struct Entry {
    info: TensorInfo,
    offset: u64,
    bytes: u64,
}

/// Reads `count` entries at `cursor` and checks them against each other and the part, which has
/// `file_bytes` bytes and the alignment `alignment`, in bytes.
///
/// Gives the tensors in the file's order and the byte offset of the data section, up to which the
/// cursor's bytes must reach, unless the file ends before.
pub fn read_table(
    cursor: &mut Cursor<'_>,
    count: u64,
    alignment: u32,
    file_bytes: usize,
) -> Result<(ByName<TensorInfo>, usize), Error> {
    let mut entries = Vec::with_capacity((count as usize).min(cursor.left() / ENTRY_BYTES_MIN));
    for _ in 0..count {
        entries.push(Entry::read(cursor)?);
    }
    let data_start = cursor.at().next_multiple_of(alignment as usize);
    let padding = data_start.min(file_bytes).saturating_sub(cursor.at());
    cursor.take(padding as u64, "padding of the header")?;
    let data_bytes = file_bytes.saturating_sub(data_start) as u64;
    let tensors = entries
        .into_iter()
        .map(|entry| entry.placed(alignment, data_start, data_bytes))
        .collect::<Result<Vec<_>, _>>()?;
    check_overlap(&tensors)?;
    let tensors = ByName::new(tensors).map_err(|twice| twice.duplicate())?;
    Ok((tensors, data_start))
}

impl Entry {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let name = cursor.name(caps::TENSOR_NAME_BYTES_MAX, "tensor name")?;
        let error = |error| Error::tensor(name, error);
        let shown = quoted(name);
        let found = cursor.u32(format_args!("number of dimensions of the tensor {shown}"))?;
        if found == 0 || found > caps::DIMS_MAX {
            return Err(error(TensorError::Dims { found }));
        }
        let dim_count = found as usize;
        let mut dims = [1; 4];
        for (axis, length) in dims[..dim_count].iter_mut().enumerate() {
            *length = cursor.u64(format_args!("dimension {axis} of the tensor {shown}"))?;
            if *length == 0 {
                return Err(error(TensorError::DimZero { axis }));
            }
        }
        let type_id = cursor.u32(format_args!("type of the tensor {shown}"))?;
        let offset = cursor.u64(format_args!("offset of the tensor {shown}"))?;
        let bytes = data_bytes(dims, type_id).map_err(error)?;
        let name = name.to_owned();
        let info = TensorInfo { name, dims, dim_count, type_id, part: 0, offset: 0, bytes: 0 };
        Ok(Self { info, offset, bytes })
    }

    /// The tensor at its place in the part, whose data section starts at byte `data_start` and
    /// has `data_bytes` bytes.
    fn placed(
        self,
        alignment: u32,
        data_start: usize,
        data_bytes: u64,
    ) -> Result<TensorInfo, Error> {
        let Self { mut info, offset, bytes } = self;
        if !offset.is_multiple_of(u64::from(alignment)) {
            let error = TensorError::Misaligned { offset, alignment };
            return Err(Error::tensor(&info.name, error));
        }
        match offset.checked_add(bytes) {
            // Both are at most `data_bytes`, which came from a `usize`.
            Some(end) if end <= data_bytes => {
                info.offset = data_start + offset as usize;
                info.bytes = bytes as usize;
                Ok(info)
            }
            _ => {
                let error = TensorError::OutOfFile { offset, bytes, data_bytes };
                Err(Error::tensor(&info.name, error))
            }
        }
    }
}

/// Bytes of a tensor of this shape and type. The number of its elements fits 63 bits, so that a
/// signed index can hold it, as ggml asks.
fn data_bytes(shape: [u64; 4], type_id: u32) -> Result<u64, TensorError> {
    let ty = types::by_id(type_id).ok_or(TensorError::TypeUnknown { id: type_id })?;
    let cols = shape[0];
    if !cols.is_multiple_of(ty.block_len) {
        let (type_name, block_len) = (ty.name, ty.block_len);
        return Err(TensorError::RowBlock { cols, type_name, block_len });
    }
    let product =
        |first: u64| shape[1..].iter().try_fold(first, |product, &dim| product.checked_mul(dim));
    product(cols)
        .filter(|&elements| elements <= i64::MAX as u64)
        .and_then(|_| product((cols / ty.block_len).checked_mul(ty.block_bytes)?))
        .ok_or(TensorError::ShapeOverflow { shape })
}

/// Refuses a tensor that starts before the one in front of it ends.
fn check_overlap(tensors: &[TensorInfo]) -> Result<(), Error> {
    let mut by_offset: Vec<&TensorInfo> = tensors.iter().collect();
    by_offset.sort_unstable_by_key(|tensor| tensor.offset);
    for pair in by_offset.windows(2) {
        let [first, second] = pair else { continue };
        if second.offset < first.offset + first.bytes {
            let other = first.name.clone();
            return Err(Error::tensor(&second.name, TensorError::Overlap { other }));
        }
    }
    Ok(())
}
