//! Which CPUs the workers are pinned to: physical cores first, within the process's own mask.

use std::fs;
use std::sync::OnceLock;

/// The CPUs to pin `threads` workers to, in order: one a physical core, then the second threads
/// of cores; empty (no pinning) when there are more workers than CPUs.
pub fn choose(threads: usize) -> Vec<usize> {
    let order = physical_first(allowed(), siblings);
    if threads > order.len() { Vec::new() } else { order[..threads].to_vec() }
}

/// How many workers to use by default: the physical cores that this process may use, or as many as
/// its control group has time for, where that is fewer.
pub fn physical_count() -> usize {
    let allowed = allowed();
    let first = |cpu: &&usize| siblings(**cpu).iter().find(|s| allowed.contains(s)) == Some(*cpu);
    allowed.iter().filter(first).count().clamp(1, parallelism())
}

/// CPUs that this process may use, one at least.
pub fn allowed_count() -> usize {
    allowed().len().max(1)
}

/// Pins the calling thread; false if the system refuses.
pub fn pin(cpu: usize) -> bool {
    /// Bits of the C library's `cpu_set_t`; beyond them is no CPU, and no bit to set.
    const SET_BITS: usize = 1024;
    cpu < SET_BITS && core_affinity::set_for_current(core_affinity::CoreId { id: cpu })
}

/// Reads a list like `0,2-5`.
///
/// # Errors
/// A message that names the part that is no CPU number or range, or that is given twice.
pub fn parse_list(list: &str) -> Result<Vec<usize>, String> {
    /// More than any machine has; a range must not become a huge list.
    const CPU_MAX: usize = 1 << 16;
    let mut cpus = Vec::new();
    for part in list.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
            (Ok(first), Ok(last)) if first <= last && last < CPU_MAX => {
                if let Some(twice) = (first..=last).find(|cpu| cpus.contains(cpu)) {
                    return Err(format!("CPU {twice} is given twice: a CPU runs one thread"));
                }
                cpus.extend(first..=last);
            }
            _ => return Err(format!("`{part}` is no CPU number or range: write `0,2-5`")),
        }
    }
    Ok(cpus)
}

/// The logical CPUs of the process's affinity mask, as it was when first asked for: a caller that
/// has been pinned since shall not leave the next engine one CPU.
fn allowed() -> &'static [usize] {
    static ALLOWED: OnceLock<Vec<usize>> = OnceLock::new();
    ALLOWED.get_or_init(|| {
        parallelism();
        let ids = core_affinity::get_core_ids().unwrap_or_default();
        ids.into_iter().map(|core| core.id).collect()
    })
}

/// Threads that can run at once, by the affinity mask and the quotas of the control groups, as it
/// was when first asked for.
fn parallelism() -> usize {
    static PARALLELISM: OnceLock<usize> = OnceLock::new();
    *PARALLELISM.get_or_init(|| {
        std::thread::available_parallelism().map_or(usize::MAX, std::num::NonZero::get)
    })
}

/// A list like `0,2-5` of ascending numbers.
pub fn shown_list(cpus: &[usize]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        one => one.iter().map(usize::to_string).collect(),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// The CPUs that share a core with this one, itself included.
fn siblings(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let list = fs::read_to_string(path).ok();
    list.and_then(|list| parse_list(list.trim()).ok()).unwrap_or_else(|| vec![cpu])
}

/// First threads of cores, then the others, each in order.
fn physical_first(cpus: &[usize], siblings: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    let rank = |cpu: usize| {
        let before = |s: &&usize| **s < cpu && cpus.contains(*s);
        siblings(cpu).iter().filter(before).count()
    };
    let mut order = cpus.to_vec();
    order.sort_by_key(|cpu| (rank(*cpu), *cpu));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_caller_leaves_the_others_their_cpus() {
        let before = choose(1);
        let all = allowed().len();
        std::thread::spawn(move || {
            assert!(before.first().is_none_or(|cpu| pin(*cpu)));
            assert_eq!(choose(all).len(), all);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn second_threads_of_cores_come_last() {
        let pairs = |cpu: usize| vec![cpu / 2 * 2, cpu / 2 * 2 + 1];
        assert_eq!(physical_first(&[0, 1, 2, 3], pairs), [0, 2, 1, 3]);
        // CPU 0 is not ours, so 1 is the first of its core.
        assert_eq!(physical_first(&[1, 2, 3], pairs), [1, 2, 3]);
    }

    #[test]
    fn lists_are_read_and_refused() {
        assert_eq!(parse_list("0, 2-4").unwrap(), [0, 2, 3, 4]);
        assert_eq!(shown_list(&[0, 2, 3, 4, 7]), "0,2-4,7");
        assert_eq!(shown_list(&[]), "");
        for bad in ["", "a", "3-1", "1,,2", "-1", "0-99999999", "0,0", "1-3,2"] {
            assert!(parse_list(bad).is_err(), "{bad}");
        }
    }
}
