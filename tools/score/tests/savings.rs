//! What saves work, as it was recorded, and what was promised of it.

use dllm_rt::denoise::{Cache, Pace, Preset, Settings};
use dllm_rt::repack::{Tensors, Threads};
use dllm_rt::sample::Kind;
use score::savings::{Case, Row, Savings, THREADS};
use std::fs;
use std::path::Path;

/// `fast` has at least so many times the plain loop's tokens a second.
const GAIN_MIN: f64 = 4.0;
/// And loses at most so many points of exact match.
const POINTS_MAX: f64 = 1.0;
/// It takes at most such a part of the plain loop's time for a short answer.
const SHORT_MAX: f64 = 1.0 / 3.0;

fn top() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn savings() -> Savings {
    Savings::read(&top().join("benches/results")).unwrap()
}

fn percent(row: &Row) -> f64 {
    100.0 * row.right as f64 / row.items as f64
}

#[test]
fn the_readme_has_this_table() {
    let readme = fs::read_to_string(top().join("README.md")).unwrap();
    assert!(savings().within(&readme).unwrap() == readme, "run `cargo run -p score -- readme`");
}

/// Otherwise the record is of another model.
#[test]
fn the_record_is_of_the_model_that_is_built_in() {
    let gguf = dllm_rt::demo::gguf().unwrap();
    let threads = Threads { count: 1, enter: &|_| () };
    assert_eq!(savings().model_hash, Tensors::new(&gguf).hash(&threads, &mut |_| ()));
}

/// Otherwise the rows are of presets as they once were.
#[test]
fn the_presets_are_the_recorded_ones() {
    let balanced = Settings { pace: Pace::Threshold(0.9), ..Settings::default() };
    assert_eq!(Preset::Balanced.settings(Kind::Llada, None), balanced);
    assert_eq!(Case::balanced().flags().join(" "), "--threshold 0.9 --cache none");
    let fast = Settings {
        pace: Pace::Threshold(0.8),
        cache: Cache::Dual,
        refresh: Some(4),
        grow: true,
        ..Settings::default()
    };
    assert_eq!(Preset::Fast.settings(Kind::Llada, None), fast);
}

#[test]
fn fast_is_as_fast_and_as_good_as_promised() {
    let savings = savings();
    let (plain, fast) = (savings.row(&Case::plain()), savings.row(&Case::fast()));
    assert!(percent(plain) - percent(fast) <= POINTS_MAX);
    for at in 0..THREADS.len() {
        assert!(savings.gain(&Case::fast(), at) >= GAIN_MIN);
        assert!(savings.short(&Case::fast(), at) <= SHORT_MAX);
    }
}

/// A whole pass every step is no cache at all.
#[test]
fn with_a_refresh_of_one_no_answer_is_another() {
    for row in &savings().rows {
        if row.case.refresh == Some(1) {
            assert_eq!(row.other_than_uncached, Some(0), "{:?}", row.case);
        }
    }
}

/// A cache computes fewer rows the less it is refreshed, and dual fewer than prefix.
#[test]
fn caches_save_rows() {
    let savings = savings();
    for row in &savings.rows {
        let Case { pace, cache, refresh } = &row.case;
        let of = |cache: &str, refresh| {
            savings.row(&Case { pace: pace.clone(), cache: cache.into(), refresh }).rows_per_answer
        };
        if cache == "dual" && refresh.is_none() {
            let rows = [of("dual", None), of("dual", Some(4)), of("dual", Some(1))];
            assert!(rows.is_sorted(), "{pace}: {rows:?}");
            assert!(rows[0] <= of("prefix", None), "{pace}");
        }
    }
}
