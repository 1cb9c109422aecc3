//! The README's table is the one that the committed results give.

use dllm_peer::readme::{BEGIN, END, block, results, with_block};
use dllm_peer::report::{
    Agreement, Case, FORMAT, Machine, ModelReport, Pass, Report, SideFacts, Summary,
};
use std::fs;
use std::path::Path;

#[test]
fn readme_and_results_agree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let reports = results(&root.join("benches/results")).unwrap();
    assert!(!reports.is_empty(), "benches/results holds no results");
    let expected = with_block(&readme, &reports).unwrap();
    assert!(readme == expected, "run `cargo run -p dllm-peer -- readme`");
}

/// As llama.cpp describes itself.
const SYSTEM: &str = "CPU : SSE3 = 1 | AVX2 = 1 | AVX512 = 0 | AVX512_VNNI = 1 | REPACK = 1 | ";

/// Three turns of two programs; the ratios of the turns are 4, 5 and 4.5.
fn fixture() -> Report {
    let pass = |ms: f64| Pass { ms, cpu_ms: 0.5 * ms, idle_ms: 0.0 };
    let turns: Vec<Vec<Pass>> = [(100.0, 400.0), (80.0, 400.0), (120.0, 540.0)]
        .iter()
        .map(|&(ours, theirs)| vec![pass(ours), pass(theirs)])
        .collect();
    let summary = Case::summarize(&turns, 1, 1e9 * 10.0);
    let side = |name: &str, commit: Option<&str>, isa: &str| SideFacts {
        name: name.into(),
        commit: commit.map(Into::into),
        build: vec![],
        settings: vec![],
        isa: isa.into(),
    };
    let case = Case {
        tokens: 10,
        threads: 1,
        agreement: vec![Some(Agreement { rms: 0.05, max: 0.2 }), None],
        turns,
        summary,
    };
    let model = ModelReport {
        name: "some-model".into(),
        arch: "llada".into(),
        layers: 2,
        width: 4096,
        vocab: 1000,
        types: vec!["Q4_K".into(), "Q6_K".into()],
        bytes: 1,
        macs_per_token: 1_000_000_000,
        cases: vec![case],
    };
    let machine = Machine { cpu: "A CPU".into(), cpus: 2, flags: vec![], load: 0.0 };
    let sides =
        vec![side("dllm-rt", None, "avx2"), side("llama.cpp", Some("0123456789abcdef"), SYSTEM)];
    Report { format: FORMAT, machine, sides, models: vec![model] }
}

#[test]
fn the_table_holds_medians_and_paired_ratios() {
    let text = block(&[fixture()]);
    // 10 G multiply-adds in a median of 100 and 400 ms; the median ratio is not 400 / 100.
    let expected = "\
A CPU, 2 CPUs; dllm-rt on avx2; llama.cpp 012345678 (AVX2 AVX512_VNNI).

| model | tokens | threads | dllm-rt | llama.cpp |
|---|---|---|---|---|
| some-model, 2 layers, Q4_K Q6_K | 10 | 1 | 100 ms, 100 GMAC/s | 400 ms, 25 GMAC/s, \
**4.50 x** (4.00 to 5.00) |
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_block_is_replaced_and_nothing_else() {
    let readme = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
    let new = with_block(&readme, &[fixture()]).unwrap();
    assert!(new.starts_with(&format!("before\n{BEGIN}\n")), "{new}");
    assert!(new.ends_with(&format!("\n{END}\nafter\n")) && !new.contains("old"), "{new}");
    assert_eq!(with_block(&new, &[fixture()]).unwrap(), new);
    let mut slower = fixture();
    slower.models[0].cases[0].summary[1].ms = 401.0;
    assert_ne!(with_block(&new, &[slower]).unwrap(), new);
}

#[test]
fn results_and_their_place_come_together() {
    let place = format!("{BEGIN}\n{END}\n");
    assert_eq!(with_block("none", &[]).unwrap(), "none");
    for (readme, reports) in [
        ("none", vec![fixture()]),
        (place.as_str(), vec![]),
        (&place.repeat(2), vec![fixture()]),
        (&format!("{END}\n{BEGIN}\n"), vec![fixture()]),
        (BEGIN, vec![fixture()]),
    ] {
        assert!(with_block(readme, &reports).is_err(), "{readme}");
    }
}

#[test]
fn results_are_read_in_order_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, report: &Report| {
        fs::write(folder.path().join(name), serde_json::to_string(report).unwrap()).unwrap();
    };
    assert!(results(&folder.path().join("missing")).unwrap().is_empty());
    let mut second = fixture();
    second.machine.cpu = "B CPU".into();
    put("peer-b.json", &second);
    put("peer-a.json", &fixture());
    fs::write(folder.path().join("gemm.json"), "not ours").unwrap();
    assert_eq!(results(folder.path()).unwrap(), [fixture(), second]);
    let spoiled: [fn(&mut Report); 3] = [
        |report| report.format += 1,
        |report| {
            report.models[0].cases[0].summary[0] =
                Summary { ms: 99.0, ..report.models[0].cases[0].summary[0] }
        },
        |report| report.models[0].cases[0].turns[1].truncate(1),
    ];
    for spoil in spoiled {
        let mut report = fixture();
        spoil(&mut report);
        put("peer-a.json", &report);
        let message = results(folder.path()).unwrap_err().to_string();
        assert!(message.contains("peer-a.json"), "{message}");
    }
}
