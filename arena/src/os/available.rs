//! How much memory may be used (the smaller of what the machine and the cgroup have left), and how
//! an amount of it is written.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// An amount of memory in binary units, for people: `512 B`, `1.5 KiB`, `5.9 GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..1024 => write!(f, "{} B", self.0),
            1024..0x10_0000 => write!(f, "{:.1} KiB", bytes / 1024.0),
            0x10_0000..0x4000_0000 => write!(f, "{:.1} MiB", bytes / 1048576.0),
            _ => write!(f, "{:.1} GiB", bytes / 1073741824.0),
        }
    }
}

/// Bytes that this process may still use without swapping or being killed; `None` where neither
/// the machine nor a cgroup says.
///
/// The machine's share is `MemAvailable`. A cgroup's is its limit less its usage, where page
/// cache that the kernel can drop does not count as usage (the model file itself ends up there);
/// the tightest of the process's cgroup and its ancestors decides, version 2 and 1 alike.
pub fn available_bytes() -> Option<usize> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| mem_available(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = cgroup_available(Path::new("/sys/fs/cgroup"), &groups);
    smaller(machine, group)
}

/// Keeps what this process has in memory now from being reclaimed: code, stacks and heap, which
/// lie outside of any region. Pages that are not in memory (a mapped file's, say) are not read
/// for it. False where the system refuses.
///
/// A kernel that reclaims cold pages by itself would otherwise cause faults in the middle of a
/// step. It concerns the whole process, so it is for programs, not for libraries.
pub fn lock_process() -> bool {
    // SAFETY: locking changes neither contents nor mappings, so it concerns no reference.
    unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT) == 0 }
}

/// `MemAvailable` of a `/proc/meminfo`, in bytes.
fn mem_available(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The tightest cgroup limit less its usage; `groups` is a `/proc/self/cgroup`, `mount` the place
/// where cgroups are mounted.
fn cgroup_available(mount: &Path, groups: &str) -> Option<usize> {
    let of_line = |line: &str| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        if number == "0" && controllers.is_empty() {
            let hybrid = mount.join("unified");
            smaller(walk(mount, path, &VERSION_2), walk(&hybrid, path, &VERSION_2))
        } else if controllers.split(',').any(|name| name == "memory") {
            walk(&mount.join("memory"), path, &VERSION_1)
        } else {
            None
        }
    };
    groups.lines().filter_map(of_line).min()
}

fn smaller(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    a.into_iter().chain(b).min()
}

/// The names of the files that a version of cgroups keeps its numbers in.
struct Files {
    limit: &'static str,
    usage: &'static str,
    /// Lines of `memory.stat` with the page cache that can be dropped.
    cache: [&'static str; 2],
}

const VERSION_2: Files =
    Files { limit: "memory.max", usage: "memory.current", cache: ["inactive_file", "active_file"] };
const VERSION_1: Files = Files {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cache: ["total_inactive_file", "total_active_file"],
};

/// The tightest of the group `path` below `root` and all its ancestors. A container often sees its
/// own group as the root under a path that is not there, so missing folders are passed over.
fn walk(root: &Path, path: &str, files: &Files) -> Option<usize> {
    let relative = Path::new(path.trim_start_matches('/'));
    let climbs = relative.components().any(|part| part.as_os_str() == "..");
    let start = if climbs { PathBuf::new() } else { relative.to_path_buf() };
    start.ancestors().filter_map(|group| group_available(&root.join(group), files)).min()
}

/// One group's limit less its usage; `None` where it has no limit (version 1 writes a number near
/// 2^63 for that, which the smaller machine's share overrules).
fn group_available(folder: &Path, files: &Files) -> Option<usize> {
    let number = |name: &str| -> Option<usize> {
        fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
    };
    let limit = number(files.limit)?;
    let usage = number(files.usage)?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cache: usize = stat
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| files.cache.contains(name))
        .filter_map(|(_, bytes)| bytes.trim().parse::<usize>().ok())
        .fold(0, usize::saturating_add);
    Some(limit.saturating_sub(usage.saturating_sub(cache)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn amounts_have_one_decimal_of_the_unit_that_fits() {
        let texts =
            [(1023, "1023 B"), (1536, "1.5 KiB"), (64 << 20, "64.0 MiB"), (6 << 30, "6.0 GiB")];
        for (bytes, text) in texts {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }

    #[test]
    fn the_machine_says_what_it_has() {
        let text = "MemTotal:       100 kB\nMemAvailable:    24359 kB\nBuffers: 1 kB\n";
        assert_eq!(mem_available(text), Some(24_359 * 1024));
        assert_eq!(mem_available("MemTotal: 100 kB\n"), None);
        assert_eq!(mem_available("MemAvailable: much\n"), None);
        assert!(available_bytes().unwrap() > 1 << 20);
    }

    #[test]
    fn version_2_takes_the_tightest_ancestor_and_forgives_cache() {
        let tree = tree(&[
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "500\n"),
            ("a/memory.max", "10000\n"),
            ("a/memory.current", "6000\n"),
            ("a/memory.stat", "anon 7\ninactive_file 1500\nactive_file 500\nfile 9999\n"),
            ("memory.max", "90000\n"),
            ("memory.current", "1\n"),
        ]);
        assert_eq!(cgroup_available(tree.path(), "0::/a/b\n"), Some(6000));
        assert_eq!(cgroup_available(tree.path(), "0::/\n"), Some(89_999));
        // The path as the host sees it, which a container does not have.
        assert_eq!(cgroup_available(tree.path(), "0::/kubepods/pod7\n"), Some(89_999));
        assert_eq!(cgroup_available(tree.path(), "0::/../../a\n"), Some(89_999));
        assert_eq!(cgroup_available(tree.path(), "nonsense\n5:cpu:/a\n"), None);
    }

    #[test]
    fn version_1_and_hybrid_mounts() {
        let tree = tree(&[
            ("memory/x/memory.limit_in_bytes", "5000\n"),
            ("memory/x/memory.usage_in_bytes", "7000\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.usage_in_bytes", "7000\n"),
            ("unified/y/memory.max", "3000\n"),
            ("unified/y/memory.current", "1000\n"),
        ]);
        assert_eq!(cgroup_available(tree.path(), "4:memory:/x\n"), Some(0));
        let unlimited = 9_223_372_036_854_771_712 - 7000;
        assert_eq!(cgroup_available(tree.path(), "4:cpu,memory:/z\n"), Some(unlimited));
        assert_eq!(cgroup_available(tree.path(), "4:memory:/z\n0::/y\n"), Some(2000));
    }
}
