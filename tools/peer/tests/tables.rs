//! The tables of the page of results are those that the records give.

use dllm_bench::record::Machine;
use dllm_bench::tables::{Tables, between};
use dllm_peer::report::{
    Agreement, Case, FORMAT, ModelReport, Pass, Report, SideFacts, Summary, results,
};
use dllm_peer::table::{BLOCK, block};
use std::fs;
use std::path::Path;

#[test]
fn page_and_records_agree() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/results");
    let reports = results(&folder).unwrap();
    let checked = Tables { folder, check: true }.put(&[(BLOCK, block(&reports).unwrap())]);
    assert!(checked.is_ok(), "run `cargo run -p dllm-peer -- tables`");
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
        isa: isa.into(),
        ..SideFacts::default()
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
    let text = block(&[fixture()]).unwrap();
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
    let (begin, end) = ("<!-- peer:begin -->", "<!-- peer:end -->");
    let with_block = |page: &str, report| between(page, BLOCK, &block(&[report]).unwrap());
    let page = format!("before\n{begin}\nold\n{end}\nafter\n");
    let new = with_block(&page, fixture()).unwrap();
    assert!(new.starts_with(&format!("before\n{begin}\n")), "{new}");
    assert!(new.ends_with(&format!("\n{end}\nafter\n")) && !new.contains("old"), "{new}");
    assert_eq!(with_block(&new, fixture()).unwrap(), new);
    let mut slower = fixture();
    slower.models[0].cases[0].summary[1].ms = 401.0;
    assert_ne!(with_block(&new, slower).unwrap(), new);
    assert!(block(&[]).is_err());
    for page in ["none", &page.repeat(2), &format!("{end}\n{begin}\n"), begin] {
        assert!(with_block(page, fixture()).is_err(), "{page}");
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
