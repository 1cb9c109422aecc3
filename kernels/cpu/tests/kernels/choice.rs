//! The choice among instruction sets.

use dllm_cpu::{Kernels, NAMES};

#[test]
fn isa_names_of_the_kernels_run() {
    let names: Vec<_> = Kernels::all().map(Kernels::name).collect();
    // On a line of its own, whatever the harness has begun to print.
    println!("\nkernels run: {}", names.join(" "));
    assert_eq!(names[0], "scalar");
}

#[test]
fn names_in_order_slowest_first() {
    assert_eq!(NAMES, ["scalar", "avx2", "avxvnni", "avx512vnni"]);
    let there: Vec<_> = Kernels::all().map(Kernels::name).collect();
    let expected: Vec<_> = NAMES.iter().copied().filter(|name| there.contains(name)).collect();
    assert_eq!(there, expected);
    assert_eq!(Kernels::best().map(Kernels::name), there.last().copied());
}

#[test]
fn each_name_gives_its_own_kernels_where_the_cpu_has_them() {
    let there: Vec<_> = Kernels::all().map(Kernels::name).collect();
    for &name in NAMES {
        let found = Kernels::by_name(name).map(Kernels::name);
        assert_eq!(found, there.contains(&name).then_some(name));
    }
}

/// The CPU's features as the standard library knows them, set by set.
#[test]
#[cfg(target_arch = "x86_64")]
fn kernels_are_there_when_the_cpu_has_the_features() {
    use std::is_x86_feature_detected as has;
    let avx2 = has!("avx2") && has!("fma");
    let expected = [
        ("scalar", true),
        ("avx2", avx2),
        ("avxvnni", avx2 && has!("avxvnni")),
        ("avx512vnni", avx2 && has!("avx512vnni") && has!("avx512vl")),
    ];
    for (name, there) in expected {
        assert_eq!(Kernels::by_name(name).is_some(), there, "{name}");
    }
}

#[test]
fn other_names_are_unknown() {
    for name in ["", "AVX2", "avx", "avx2 ", "avx512", "neon", "auto"] {
        assert!(Kernels::by_name(name).is_none(), "{name:?}");
    }
}
