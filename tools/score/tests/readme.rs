//! The README has the table that the recorded runs give, and it has what the model promises.

use dllm_rt::repack::{Tensors, Threads};
use score::{Record, Score};
use std::fs;
use std::path::Path;

/// Families of which 95 in 100 answers must be right.
const SURE: &[&str] = &[
    "capital",
    "continent",
    "country",
    "spell",
    "reverse",
    "compare",
    "copy",
    "edit",
    "record",
    "fill_record",
];
const SURE_MIN: f64 = 0.95;
/// Sums and differences of two digits.
const ARITHMETIC: &[&str] = &["add", "subtract"];
const ARITHMETIC_MIN: f64 = 0.85;
const ALL_MIN: f64 = 0.90;
/// How far quantization may take the score from the model in f32.
const POINTS_MAX: f64 = 1.0;

fn top() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn record() -> Record {
    Record::read(&top().join("benches/results")).unwrap()
}

fn share(score: &Score) -> f64 {
    score.right as f64 / score.items as f64
}

#[test]
fn the_readme_has_this_table() {
    let readme = fs::read_to_string(top().join("README.md")).unwrap();
    assert!(record().within(&readme).unwrap() == readme, "run `cargo run -p score -- readme`");
}

#[test]
fn the_recorded_score_is_what_the_model_must_have() {
    let record = record();
    assert_eq!((record.plain().settings.steps, record.plain().settings.max_tokens), (128, 128));
    let plain = &record.plain().scores;
    for name in SURE {
        assert!(share(&plain.per_family[*name]) >= SURE_MIN, "{name}");
    }
    for name in ARITHMETIC {
        assert!(share(&plain.per_family[*name]) >= ARITHMETIC_MIN, "{name}");
    }
    assert!(share(&plain.all) >= ALL_MIN);
    let sum = |count: fn(&Score) -> u64| plain.per_family.values().map(count).sum::<u64>();
    assert_eq!((sum(|s| s.items), sum(|s| s.right)), (plain.all.items, plain.all.right));
    let points = 100.0 * (share(&plain.all) - share(&record.reference.all)).abs();
    assert!(points <= POINTS_MAX, "{points}");
}

/// Otherwise the record is of another model.
#[test]
fn the_record_is_of_the_model_that_is_built_in() {
    let gguf = dllm_rt::demo::gguf().unwrap();
    let threads = Threads { count: 1, enter: &|_| () };
    let hash = Tensors::new(&gguf).hash(&threads, &mut |_| ());
    assert_eq!(record().ours.model_hash, hash);
}

#[test]
fn markers_must_be_one_pair() {
    let record = record();
    for text in ["", "<!-- eval:begin -->", "<!-- eval:end --><!-- eval:begin -->"] {
        assert!(record.within(text).is_err(), "{text}");
    }
    let text = record.within("a\n<!-- eval:begin -->\nold\n<!-- eval:end -->\nb").unwrap();
    assert!(text.starts_with("a\n<!-- eval:begin -->\n\n|") && text.ends_with("-->\nb"), "{text}");
    assert_eq!(record.within(&text).unwrap(), text);
}
