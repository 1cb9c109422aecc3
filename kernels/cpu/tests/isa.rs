//! The choice of kernels agrees with what the operating system says of the CPU.
//!
//! `tools/emulate` runs this file on emulated CPUs and compares the printed line with its table.

#![cfg(target_arch = "x86_64")]

use dllm_cpu::{Kernels, NAMES};

/// The kernels that the CPU can run, from the system's list of flags; nothing where there is none.
fn listed_by_the_system() -> Option<Vec<&'static str>> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("flags"))?;
    let flags: Vec<&str> = line.split_ascii_whitespace().collect();
    let needs: [&[&str]; 4] = [
        &[],
        &["avx2", "fma"],
        &["avx2", "fma", "avx_vnni"],
        &["avx2", "fma", "avx512_vnni", "avx512vl"],
    ];
    let has = |flag: &&str| flags.contains(flag);
    let listed = NAMES.iter().zip(needs).filter(|(_, needs)| needs.iter().all(has));
    Some(listed.map(|(name, _)| *name).collect())
}

#[test]
fn the_choice_of_kernels_agrees_with_the_operating_system() {
    let chosen: Vec<&str> = Kernels::all().map(Kernels::name).collect();
    println!("kernels run: {}", chosen.join(" "));
    assert_eq!(Kernels::best().map(Kernels::name), chosen.last().copied());
    if let Some(listed) = listed_by_the_system() {
        assert_eq!(chosen, listed);
    }
}

/// The CPU's features as the standard library knows them, set by set.
#[test]
fn each_name_gives_its_own_kernels_where_the_cpu_has_the_features() {
    use std::is_x86_feature_detected as has;
    let avx2 = has!("avx2") && has!("fma");
    let expected = [
        ("scalar", true),
        ("avx2", avx2),
        ("avxvnni", avx2 && has!("avxvnni")),
        ("avx512vnni", avx2 && has!("avx512vnni") && has!("avx512vl")),
    ];
    assert_eq!(NAMES, expected.map(|(name, _)| name), "slowest first");
    for (name, there) in expected {
        let found = Kernels::by_name(name).map(Kernels::name);
        assert_eq!(found, there.then_some(name));
    }
}

#[test]
fn other_names_are_unknown() {
    for name in ["", "AVX2", "avx", "avx2 ", "avx512", "avx9", "neon", "auto"] {
        assert!(Kernels::by_name(name).is_none(), "{name:?}");
    }
}
