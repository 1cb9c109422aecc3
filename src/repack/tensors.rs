//! The tensors of the file as the source of all weights, and their hash.

use super::matrix::Source;
use super::{Threads, Weights};
use crate::gguf::Gguf;
use crate::model::{Fault, Vector};
use crate::plan::{Plan, WeightKind, WeightPlan};
use dllm_cpu::decode::{decode_row, first_nonfinite};
use std::sync::atomic::{AtomicU64, Ordering};

/// The tensors of a file: matrices packed, or copied for the embedding, vectors decoded.
pub struct Tensors<'a> {
    gguf: &'a Gguf,
}

impl<'a> Tensors<'a> {
    /// Those of `gguf`.
    pub fn new(gguf: &'a Gguf) -> Tensors<'a> {
        Tensors { gguf }
    }

    /// Drops the pages of the file that its weights lie in and that are still there: those that
    /// two pieces had in common.
    pub fn release(&self, plan: &Plan) {
        for index in plan.weights.iter().filter_map(tensor) {
            self.gguf.release(&self.gguf.tensors()[index]);
        }
    }

    /// The model's hash (see [`Gguf::hash_with`]), with all tensors of the file read by several
    /// threads and dropped again. `progress` is called with the bytes read so far.
    pub fn hash(&self, threads: &Threads<'_>, progress: &mut dyn FnMut(usize)) -> String {
        let tensors = self.gguf.tensors();
        let hashes: Vec<[AtomicU64; 2]> = tensors.iter().map(|_| Default::default()).collect();
        // The largest first, so that the threads end together.
        let mut order: Vec<usize> = (0..tensors.len()).collect();
        order.sort_by_key(|&index| (std::cmp::Reverse(tensors[index].bytes), index));
        let read = |index: usize| {
            let hash = self.gguf.tensor_hash_releasing(&tensors[index]);
            // The end of the threads orders these with the reading below.
            hashes[index][0].store(hash as u64, Ordering::Relaxed);
            hashes[index][1].store((hash >> 64) as u64, Ordering::Relaxed);
            Ok::<usize, std::convert::Infallible>(tensors[index].bytes)
        };
        let Ok(()) = threads.run(order, read, progress);
        let whole = |[low, high]: [AtomicU64; 2]| {
            u128::from(low.into_inner()) | u128::from(high.into_inner()) << 64
        };
        let hashes: Vec<u128> = hashes.into_iter().map(whole).collect();
        self.gguf.hash_with(&hashes)
    }
}

impl Weights for Tensors<'_> {
    type Fault = Fault;

    fn unit_bytes(&self, weight: &WeightPlan) -> usize {
        match weight.kind {
            WeightKind::Embedding(matrix) => Source::new(self.gguf, matrix).group_bytes(),
            WeightKind::Panels(matrix) => Source::new(self.gguf, matrix).panel_bytes(),
            _ => size_of::<f32>(),
        }
    }

    fn fill(
        &self,
        _index: usize,
        weight: &WeightPlan,
        first_unit: usize,
        to: &mut [u8],
    ) -> Result<(), Fault> {
        match weight.kind {
            WeightKind::Embedding(matrix) => Source::new(self.gguf, matrix).copy(first_unit, to),
            WeightKind::Panels(matrix) => Source::new(self.gguf, matrix).pack(first_unit, to),
            WeightKind::Vector(vector) => {
                read_vector(self.gguf, vector, first_unit, bytemuck::cast_slice_mut(to))
            }
            WeightKind::RopeCos | WeightKind::RopeSin => unreachable!("tables are no weights"),
        }
    }
}

/// Which tensor a weight comes from; none for a table.
fn tensor(weight: &WeightPlan) -> Option<usize> {
    match weight.kind {
        WeightKind::Embedding(matrix) | WeightKind::Panels(matrix) => Some(matrix.tensor),
        WeightKind::Vector(vector) => Some(vector.tensor),
        WeightKind::RopeCos | WeightKind::RopeSin => None,
    }
}

/// The values of a vector from `first` on, decoded.
pub(super) fn read_vector(
    gguf: &Gguf,
    vector: Vector,
    first: usize,
    to: &mut [f32],
) -> Result<(), Fault> {
    let value_bytes = vector.dtype.block_bytes();
    let bytes = gguf.data(&gguf.tensors()[vector.tensor]);
    let bytes = &bytes[first * value_bytes..][..to.len() * value_bytes];
    // A float's block is one value, which is what a vector's rows are.
    if let Some(index) = first_nonfinite(vector.dtype, bytes) {
        return Err(not_finite(gguf, vector.tensor, first + index));
    }
    decode_row(vector.dtype, bytes, to);
    Ok(())
}

pub(super) fn not_finite(gguf: &Gguf, tensor: usize, row: usize) -> Fault {
    Fault::NotFinite { name: gguf.tensors()[tensor].name.clone(), row }
}
