//! What the operators are called, for whoever reads their times.

use crate::step::Program;
use dllm_arena::{Meta, MetaFull, Name};

/// Bytes for names: the lists of all architectures together have a few dozen short ones, and the
/// allocator takes its first chunk of a page at once.
const NAME_BYTES_MAX: usize = 1 << 16;

/// The name of each operator, in the order of the list.
#[derive(Debug)]
pub(super) struct OperatorNames {
    meta: Meta,
    names: Box<[Name]>,
}

impl OperatorNames {
    /// Interns and seals the names of a program.
    pub fn new(program: &Program) -> Result<OperatorNames, MetaFull> {
        let mut meta = Meta::new(NAME_BYTES_MAX);
        let names =
            program.ops().iter().map(|op| meta.intern(op.name)).collect::<Result<_, _>>()?;
        meta.seal();
        Ok(OperatorNames { meta, names })
    }

    /// The sum of `ms` (one value an operator) by name, largest first. Allocates.
    pub fn totals(&self, ms: &[f64]) -> Vec<(String, f64)> {
        let mut totals: Vec<(Name, f64)> = Vec::new();
        for (name, ms) in self.names.iter().zip(ms) {
            match totals.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += ms,
                None => totals.push((*name, *ms)),
            }
        }
        totals.sort_by(|a, b| b.1.total_cmp(&a.1));
        totals.into_iter().map(|(name, ms)| (self.meta.get(name).to_owned(), ms)).collect()
    }
}
