//! Huge pages, locking and pinning do what they say. One test, since it looks at what the kernel
//! says of the whole process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "it/common/models.rs"]
mod models;

use dllm_rt::{Engine, Limits, Lock, Options};
use std::collections::BTreeMap;
use std::fs;

const LIMITS: Limits = Limits { logits: true, ..Limits::new(32, 32, 2) };

fn load(options: &Options) -> Engine {
    Engine::load(&models::open(models::LLADA), LIMITS, options, &mut |_, _| ()).unwrap()
}

fn status(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim().to_owned()
}

fn locked_bytes() -> usize {
    let kib = status("/proc/self/status", "VmLck:");
    kib.trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// Bytes of mappings for which huge pages were asked.
fn advised_bytes() -> usize {
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut size_kib, mut sum_kib) = (0, 0);
    for line in smaps.lines() {
        if let Some(size) = line.strip_prefix("Size:") {
            size_kib = size.trim().trim_end_matches(" kB").parse().unwrap();
        }
        if line.strip_prefix("VmFlags:").is_some_and(|flags| flags.contains(" hg")) {
            sum_kib += size_kib;
        }
    }
    sum_kib * 1024
}

/// The CPUs that each thread with such a name may run on.
fn pinned(name: &str) -> BTreeMap<String, String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let statuses = tasks.map(|task| task.join("status").to_str().unwrap().to_owned());
    let of_name = statuses.filter(|path| status(path, "Name:").starts_with(name));
    of_name.map(|path| (status(&path, "Name:"), status(&path, "Cpus_allowed_list:"))).collect()
}

#[test]
fn the_options_of_memory_and_cpus_do_what_they_say() {
    locking();
    huge_pages();
    pinning();
}

fn locking() {
    let before = locked_bytes();
    let engine = load(&Options { lock: Lock::Off, ..Options::default() });
    assert!(!engine.load_report().is_locked && engine.warnings().is_empty());
    assert_eq!(locked_bytes(), before);
    for lock in [Lock::Auto, Lock::On] {
        let engine = load(&Options { lock, ..Options::default() });
        if engine.load_report().is_locked {
            assert!(locked_bytes() - before >= engine.arena_bytes());
            assert!(engine.warnings().is_empty(), "{:?}", engine.warnings());
        } else {
            assert!(engine.warnings()[0].contains("RLIMIT_MEMLOCK"), "{:?}", engine.warnings());
        }
    }
    assert_eq!(locked_bytes(), before);
}

fn huge_pages() {
    let before = advised_bytes();
    let engine = load(&Options { lock: Lock::Off, ..Options::default() });
    assert_eq!((advised_bytes(), engine.load_report().huge_bytes), (before, None));
    let engine = load(&Options { huge_pages: true, lock: Lock::Off, ..Options::default() });
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let is_off = setting.is_ok_and(|setting| setting.contains("[never]"));
    if is_off || !engine.warnings().is_empty() {
        assert!(engine.warnings()[0].contains("huge pages"), "{:?}", engine.warnings());
    } else {
        assert!(advised_bytes() - before >= engine.arena_bytes());
        let huge_bytes = engine.load_report().huge_bytes.unwrap();
        assert!(huge_bytes <= engine.arena_bytes().next_multiple_of(4096), "{huge_bytes}");
    }
}

fn pinning() {
    let own = status("/proc/self/status", "Cpus_allowed_list:");
    let cpu: usize = own.split([',', '-']).next_back().unwrap().parse().unwrap();
    let cpus =
        |list: Vec<usize>| Options { cpus: Some(list), lock: Lock::Off, ..Default::default() };
    let engine = load(&cpus(vec![cpu, cpu]));
    assert!(engine.warnings().is_empty(), "{:?}", engine.warnings());
    let workers = pinned("dllm-worker");
    assert_eq!(
        workers.into_iter().collect::<Vec<_>>(),
        [("dllm-worker-1".into(), cpu.to_string())]
    );
    // Only the program pins its caller.
    assert_eq!(status("/proc/thread-self/status", "Cpus_allowed_list:"), own);
    drop(engine);
    // There are no such CPUs; the second has no bit in the C library's set.
    for none in [1023, 60_000] {
        let engine = load(&cpus(vec![cpu, none]));
        assert_eq!(engine.warnings(), [format!("cannot pin threads to CPUs {none}")]);
    }
    let engine = load(&Options { pin_caller: true, ..cpus(vec![60_000, cpu]) });
    assert_eq!(engine.warnings(), ["cannot pin the calling thread to CPU 60000"]);
    drop(engine);
    load(&Options { pin_caller: true, ..cpus(vec![cpu, cpu]) });
    assert_eq!(status("/proc/thread-self/status", "Cpus_allowed_list:"), cpu.to_string());
}
