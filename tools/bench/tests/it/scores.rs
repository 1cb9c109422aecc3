//! The page of results has the tables that the records give, and the score is what the model
//! promises.

use crate::results;
use dllm_bench::savings::Savings;
use dllm_bench::scores::{Record, Score};
use dllm_bench::tables::{Tables, between, blocks};
use dllm_rt::backend::cpu::load::{self, Threads};

/// Families of which so many answers in 100 must be right.
const SURE: &str = "capital continent country spell reverse compare copy edit record fill_record";
const SURE_MIN: f64 = 95.0;
/// Sums and differences of two digits.
const ARITHMETIC: &[&str] = &["add", "subtract"];
const ARITHMETIC_MIN: f64 = 85.0;
const ALL_MIN: f64 = 90.0;
/// How far quantization may take the score from the model in f32.
const POINTS_MAX: f64 = 1.0;

fn record() -> Record {
    Record::read(&results()).unwrap()
}

#[test]
fn the_page_has_these_tables() {
    let tables = Tables { folder: results(), check: true };
    let checked = tables.put(&blocks(&results()).unwrap());
    assert!(checked.is_ok(), "run `cargo run -p dllm-bench -- tables`");
    let other = tables.put(&[("eval", "another".into())]);
    assert!(other.unwrap_err().to_string().contains("README.md"));
}

#[test]
fn the_recorded_score_is_what_the_model_must_have() {
    let record = record();
    assert_eq!((record.plain().settings.steps, record.plain().settings.max_tokens), (128, 128));
    let plain = &record.plain().scores;
    for name in SURE.split(' ') {
        assert!(plain.per_family[name].percent() >= SURE_MIN, "{name}");
    }
    for name in ARITHMETIC {
        assert!(plain.per_family[*name].percent() >= ARITHMETIC_MIN, "{name}");
    }
    assert!(plain.all.percent() >= ALL_MIN);
    let sum = |count: fn(&Score) -> u64| plain.per_family.values().map(count).sum::<u64>();
    assert_eq!((sum(|s| s.items), sum(|s| s.right)), (plain.all.items, plain.all.right));
    let points = (plain.all.percent() - record.reference.all.percent()).abs();
    assert!(points <= POINTS_MAX, "{points}");
}

/// Otherwise the records are of another model.
#[test]
fn the_records_are_of_the_model_that_is_built_in() {
    let gguf = dllm_rt::demo::gguf().unwrap();
    let threads = Threads { count: 1, enter: &|_| () };
    let hash = load::hash(&gguf, &threads, &mut |_| ());
    assert_eq!(record().ours.model_hash, hash);
    assert_eq!(Savings::read(&results()).unwrap().model_hash, hash);
}

#[test]
fn markers_must_be_one_pair() {
    let block = record().block();
    for text in ["", "<!-- eval:begin -->", "<!-- eval:end --><!-- eval:begin -->"] {
        assert!(between(text, "eval", &block).is_err(), "{text}");
    }
    let text = "a\n<!-- eval:begin -->\nold\n<!-- eval:end -->\nb";
    assert!(between(&text.repeat(2), "eval", &block).is_err());
    let text = between(text, "eval", &block).unwrap();
    assert!(text.starts_with("a\n<!-- eval:begin -->\n\n|") && text.ends_with("-->\nb"), "{text}");
    assert_eq!(between(&text, "eval", &block).unwrap(), text);
}
