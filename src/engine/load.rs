//! Filling the arena, and what is to be said of it.

use super::Options;
use crate::error::Error;
use crate::gguf::Gguf;
use crate::model::Model;
use crate::packed::{Folder, Outcome, Source};
use crate::plan::Plan;
use crate::repack::{self, Threads};
use crate::team::cpus;
use dllm_arena::Region;
use std::time::Instant;

/// How a load went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Seconds until the arena was full: with the writing of a packed file, where one was written.
    pub fill_s: f64,
    /// Whether the weights came from a packed file.
    pub is_from_packed: bool,
    /// Whether the arena is locked in memory.
    pub is_locked: bool,
    /// Bytes of the arena that lie in huge pages; `None` where none were asked for or the system
    /// does not say.
    pub huge_bytes: Option<usize>,
    /// What was done and why, for those who ask.
    pub notes: Vec<String>,
}

/// A full arena.
pub(super) struct Filled {
    pub region: Region,
    pub report: LoadReport,
    pub warnings: Vec<String>,
}

/// Maps the arena and fills it. `progress` is called with the bytes dealt with and their total.
pub(super) fn fill(
    gguf: &Gguf,
    model: &Model,
    plan: &Plan,
    options: &Options,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Filled, Error> {
    let start = Instant::now();
    let folder = options.packed_cache.as_deref().map(Folder::open).transpose()?;
    let memory = dllm_arena::Options { huge_pages: options.huge_pages, lock: options.lock };
    let mut region = Region::map(plan.total_bytes, &memory)?;
    // Where the workers will be: a caller that is pinned already would keep them all on its CPU.
    let cpus = options.cpus(plan.limits.threads);
    let enter = |number: usize| {
        // Refusals are told when the workers are pinned to the same CPUs.
        let _ = cpus.get(number).map(|cpu| cpus::pin(*cpu));
    };
    let count = plan.limits.threads.min(cpus::allowed_count());
    let threads = Threads { count, enter: &enter };
    let outcome = match folder {
        Some(folder) => {
            folder.fill(Source { gguf, model, plan, threads: &threads }, &mut region, progress)?
        }
        None => {
            let total_bytes = region.bytes();
            let progress = &mut |done| progress(done, total_bytes);
            repack::fill(gguf, model, plan, &mut region, &threads, progress)?;
            Outcome::default()
        }
    };
    let mut warnings = region.warnings().to_vec();
    warnings.extend(outcome.warnings);
    let huge_bytes = if options.huge_pages { region.huge_bytes() } else { None };
    warnings.extend(huge_bytes.and_then(|huge| few_huge_pages(&region, huge)));
    let report = LoadReport {
        fill_s: start.elapsed().as_secs_f64(),
        is_from_packed: outcome.is_from_packed,
        is_locked: region.locked(),
        huge_bytes,
        notes: outcome.notes,
    };
    Ok(Filled { region, report, warnings })
}

/// What to say where huge pages were to be had for a small part only: the rest of memory is in
/// pieces.
fn few_huge_pages(region: &Region, huge_bytes: usize) -> Option<String> {
    /// A region that is not a few huge pages long has few, whatever the memory is like.
    const BYTES_MIN: usize = 64 << 20;
    let is_told = !region.warnings().is_empty();
    if is_told || region.bytes() < BYTES_MIN || huge_bytes >= region.bytes() / 10 * 9 {
        return None;
    }
    let (huge, all) = (crate::error::Gib(huge_bytes), crate::error::Gib(region.bytes()));
    Some(format!("only {huge} of the arena's {all} are in huge pages: memory is fragmented"))
}
