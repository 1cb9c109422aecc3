//! Which instruction sets the running CPU has, told two ways that share no code.
//!
//! `tools/emulate` runs this file on emulated CPUs and compares the printed line with its table.

#![cfg(target_arch = "x86_64")]

/// The kernels that the CPU can run, by the names of `--isa`, as the standard library detects them.
fn detected() -> Vec<&'static str> {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let avxvnni = avx2 && is_x86_feature_detected!("avxvnni");
    let avx512vnni = avx2
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw");
    let all = [("scalar", true), ("avx2", avx2), ("avxvnni", avxvnni), ("avx512vnni", avx512vnni)];
    all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
}

/// The same from the operating system's list of CPU flags; nothing where there is none.
fn listed_by_the_system() -> Option<Vec<&'static str>> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("flags"))?;
    let flags: Vec<&str> = line.split_ascii_whitespace().collect();
    let has = |names: &[&str]| names.iter().all(|name| flags.contains(name));
    let avx2 = has(&["avx2", "fma"]);
    let avxvnni = avx2 && has(&["avx_vnni"]);
    let avx512vnni = avx2 && has(&["avx512_vnni", "avx512vl", "avx512bw"]);
    let all = [("scalar", true), ("avx2", avx2), ("avxvnni", avxvnni), ("avx512vnni", avx512vnni)];
    Some(all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect())
}

#[test]
fn detection_agrees_with_the_operating_system() {
    println!("kernels: {}", detected().join(" "));
    if let Some(listed) = listed_by_the_system() {
        assert_eq!(detected(), listed);
    }
}
