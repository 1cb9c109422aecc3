//! Parts of a split file: checked against each other and joined.

use super::caps;
use super::fault::{Fault, SplitFault};
use super::{Gguf, TensorIndex};

/// How many parts the model has of which `part` is one; 1 for a file that is not split.
pub fn part_count(part: &Gguf) -> Result<u64, Fault> {
    let count = part.opt_u64("split.count")?.unwrap_or(1).max(1);
    if count > caps::PARTS_MAX {
        let wanted = caps::PARTS_MAX;
        return Err(key_fault("split.count", count, wanted));
    }
    Ok(count)
}

/// Joins the parts of one model, given in their order. A fault comes with the index of the part
/// that has it.
///
/// The metadata are the first part's: llama.cpp's splitter writes only `split.*` into the others.
pub fn join(parts: Vec<Gguf>) -> Result<Gguf, (usize, Fault)> {
    let given = parts.len() as u64;
    for (index, part) in parts.iter().enumerate() {
        check_part(part, index as u64, given).map_err(|fault| (index, fault))?;
    }
    let tensors_found = parts.iter().map(|part| part.tensors.len() as u64).sum();
    let mut parts = parts.into_iter();
    let mut whole = parts.next().ok_or((0, Fault::Split(SplitFault::NoParts)))?;
    if given == 1 {
        return Ok(whole);
    }
    check_total(&whole, tensors_found).map_err(|fault| (0, fault))?;
    for (index, part) in (1..).zip(parts) {
        whole.parts.extend(part.parts);
        let moved = part.tensors.into_iter().map(|mut tensor| {
            tensor.part = index;
            tensor
        });
        whole.tensors.extend(moved);
    }
    whole.by_name = TensorIndex::of(&whole.tensors)
        .map_err(|duplicate| (duplicate.part, duplicate.duplicate()))?;
    Ok(whole)
}

fn check_part(part: &Gguf, index: u64, given: u64) -> Result<(), Fault> {
    let count = part_count(part)?;
    if count != given {
        return Err(Fault::Split(SplitFault::Count { count, given }));
    }
    if count > 1 {
        let number = part.u64("split.no")?;
        if number != index {
            return Err(key_fault("split.no", number, index));
        }
    }
    Ok(())
}

fn check_total(first: &Gguf, found: u64) -> Result<(), Fault> {
    if found > caps::TENSORS_MAX {
        return Err(Fault::Split(SplitFault::TensorsTotal { found }));
    }
    match first.opt_u64("split.tensors.count")? {
        Some(stated) if stated != found => Err(key_fault("split.tensors.count", stated, found)),
        _ => Ok(()),
    }
}

fn key_fault(key: &'static str, found: u64, wanted: u64) -> Fault {
    Fault::Split(SplitFault::Key { key, found, wanted })
}
