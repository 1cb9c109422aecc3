//! What saves work, as it was recorded, and what was promised of it.

use crate::results;
use dllm_bench::savings::{Case, Row, Savings, THREADS};
use dllm_rt::denoise::{Cache, GenerationParameters, Preset, RequestParameters};
use dllm_rt::sample::Kind;

/// `fast` has at least so many times the plain loop's tokens a second.
const GAIN_MIN: f64 = 4.0;
/// And loses at most so many points of exact match.
const POINTS_MAX: f64 = 1.0;
/// It takes at most such a part of the plain loop's time for a short answer.
const SHORT_MAX: f64 = 1.0 / 3.0;

fn savings() -> Savings {
    Savings::read(&results()).unwrap()
}

fn percent(row: &Row) -> f64 {
    100.0 * row.right as f64 / row.items as f64
}

/// Otherwise the rows are of presets as they once were.
#[test]
fn the_presets_are_the_recorded_ones() {
    let checked =
        |asked: &RequestParameters| GenerationParameters::new(Kind::Llada, asked).unwrap();
    let of = |preset| checked(&RequestParameters { preset, ..Default::default() });
    let balanced = RequestParameters { threshold: Some(0.9), ..RequestParameters::default() };
    assert_eq!(of(Preset::Balanced), checked(&balanced));
    assert_eq!(Case::balanced().flags().join(" "), "--threshold 0.9 --cache none");
    let fast = RequestParameters {
        threshold: Some(0.8),
        cache: Some(Cache::Dual),
        refresh: Some(4),
        grow: Some(true),
        ..RequestParameters::default()
    };
    assert_eq!(of(Preset::Fast), checked(&fast));
}

#[test]
fn fast_is_as_fast_and_as_good_as_promised() {
    let savings = savings();
    let (plain, fast) = (savings.row(&Case::plain()), savings.row(&Case::fast()));
    assert!(percent(plain) - percent(fast) <= POINTS_MAX);
    for at in 0..THREADS.len() {
        assert!(savings.ratio(&Case::fast(), at, |times| &times.tokens_per_s) >= GAIN_MIN);
        assert!(savings.ratio(&Case::fast(), at, |times| &times.short_ms) <= SHORT_MAX);
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
