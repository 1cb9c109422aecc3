//! `run --json`: every field, its type, and what it means.

use super::support::{DREAM, LLADA, MASK, ids, on};
use serde_json::Value;

const STRINGS: &[&str] = &[
    "runtime",
    "version",
    "model",
    "model_hash",
    "arch",
    "device",
    "isa",
    "text",
    "finish_reason",
];
const COUNTS: &[&str] = &[
    "threads",
    "prompt_tokens",
    "forward_passes",
    "rows_computed",
    "arena_bytes",
    "weight_bytes",
    "peak_rss_bytes",
];
/// What the text depends on, under the names of the flags.
const SETTINGS: &[&str] = &[
    "max_tokens",
    "steps",
    "block_length",
    "algorithm",
    "temperature",
    "top_p",
    "top_k",
    "alg_temp",
    "eps",
    "cfg_scale",
    "threshold",
    "factor",
    "cache",
    "refresh",
    "grow",
    "early_stop",
    "forbid_end",
    "distrust_end",
    "seed",
];
const TIMES: &[&str] = &["load_s", "generate_s"];
const GROUPS: &[(&str, &[&str])] = &[
    ("ms_per_step", &["mean", "p50", "p90", "p99", "max"]),
    ("split_ms", &["gemm", "attention", "lm_head", "sampling", "other"]),
    (
        "counters",
        &[
            "allocations",
            "frees",
            "minor_faults",
            "major_faults",
            "voluntary_switches",
            "involuntary_switches",
        ],
    ),
];

#[test]
fn every_field_is_there_with_its_type() {
    for name in [LLADA, DREAM] {
        let json = on(name, "run", "--tokens 5,6,7 --max-tokens 8 --json --trace").json();
        let positive = |value: &Value| value.as_f64().is_some_and(|x| x >= 0.0);
        for key in STRINGS {
            assert!(json[key].is_string(), "{name}: {key}: {}", json[key]);
        }
        for key in COUNTS {
            assert!(json[key].is_u64(), "{name}: {key}: {}", json[key]);
        }
        let settings = json["settings"].as_object().unwrap();
        let mut keys: Vec<&str> = settings.keys().map(String::as_str).collect();
        keys.sort_by_key(|key| SETTINGS.iter().position(|known| known == key));
        assert_eq!(keys, SETTINGS);
        // What was not asked for.
        for key in ["threshold", "factor", "refresh"] {
            assert!(settings[key].is_null(), "{name}: {key}: {}", settings[key]);
        }
        for key in TIMES {
            assert!(positive(&json[key]), "{name}: {key}: {}", json[key]);
        }
        for (group, keys) in GROUPS {
            assert_eq!(json[group].as_object().unwrap().len(), keys.len(), "{group}");
            for key in *keys {
                assert!(positive(&json[group][key]), "{name}: {group}.{key}");
            }
        }
        let fields = STRINGS.len() + COUNTS.len() + TIMES.len() + GROUPS.len();
        assert_eq!(json.as_object().unwrap().len(), fields + 3, "settings, tokens and trace");
        assert_eq!(json["counters"]["allocations"], 0);
        assert_eq!(json["counters"]["frees"], 0);
        assert!(json["peak_rss_bytes"].as_u64() > json["arena_bytes"].as_u64());
        assert!(json["arena_bytes"].as_u64() > json["weight_bytes"].as_u64());
    }
}

#[test]
fn the_settings_are_those_of_the_run() {
    let json = on(LLADA, "run", "--tokens 5,6,7 --max-tokens 40 --json").json();
    assert_eq!(json["runtime"], "dllm-rt");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["arch"], "llada");
    assert_eq!(
        (json["device"].as_str(), json["settings"]["cache"].as_str()),
        (Some("cpu"), Some("none"))
    );
    assert_eq!((&json["prompt_tokens"], &json["settings"]["max_tokens"]), (&3.into(), &40.into()));
    assert_eq!(
        (&json["settings"]["steps"], &json["settings"]["block_length"]),
        (&40.into(), &32.into())
    );
    assert_eq!(
        (&json["settings"]["seed"], &json["settings"]["algorithm"]),
        (&42.into(), &"low_confidence".into())
    );
    let passes = json["forward_passes"].as_u64().unwrap();
    assert_eq!(json["rows_computed"].as_u64(), Some(passes * 43));
    assert_eq!(json["model_hash"].as_str().map(str::len), Some(32));
    assert!(json.get("trace").is_none());
    let guided = "--tokens 5,6,7 --max-tokens 4 --seed 7 --threads 3 --cfg-scale 1.5 --isa scalar";
    let json = on(LLADA, "run", &format!("{guided} --early-stop false --json")).json();
    assert_eq!((&json["forward_passes"], &json["settings"]["steps"]), (&8.into(), &4.into()));
    assert_eq!((&json["settings"]["seed"], &json["threads"]), (&7.into(), &3.into()));
    assert_eq!(json["isa"], "scalar");
    let dream = on(DREAM, "run", "--tokens 5,6,7 --max-tokens 4 --json").json();
    assert_eq!(
        (&dream["arch"], &dream["settings"]["algorithm"]),
        (&"dream".into(), &"entropy".into())
    );
}

#[test]
fn the_trace_ends_in_the_tokens() {
    for name in [LLADA, DREAM] {
        let args = "--tokens 5,6,7 --max-tokens 8 --steps 5 --json --trace --early-stop false";
        let json = on(name, "run", args).json();
        let trace: Vec<Vec<u32>> = json["trace"].as_array().unwrap().iter().map(ids).collect();
        assert_eq!(trace.len(), 5, "{name}");
        assert_eq!(trace[4][3..], ids(&json["tokens"]), "{name}");
        assert!(trace.iter().all(|canvas| canvas[..3] == [5, 6, 7]), "{name}");
        let masks = |canvas: &Vec<u32>| canvas.iter().filter(|id| **id == MASK).count();
        assert!(trace.is_sorted_by_key(|canvas| 8 - masks(canvas)), "{name}");
        assert_eq!(masks(&trace[4]), 0, "{name}");
    }
}

#[test]
fn dream_traces_the_step_that_commits_nothing() {
    let args = "--tokens 5,6,7 --max-tokens 4 --steps 4 --json --trace --temperature 0";
    let json = on(DREAM, "run", args).json();
    assert_eq!(ids(&json["trace"][0]), [5, 6, 7, MASK, MASK, MASK, MASK]);
    assert_eq!(json["trace"].as_array().unwrap().len(), 4);
    assert_eq!(json["settings"]["steps"], 4);
}

#[test]
fn a_stop_text_cuts_the_text_and_no_token() {
    let whole = on(LLADA, "run", "--tokens 5,6,7 --max-tokens 12 --json").json();
    let text = whole["text"].as_str().unwrap();
    assert_eq!(whole["finish_reason"], "length");
    let middle = text.char_indices().nth(text.chars().count() / 2).unwrap().0;
    let (before, stop) = text.split_at(middle);
    let model = super::support::model(LLADA);
    let args = ["run", "--tokens", "5,6,7", "--max-tokens", "12", "--json"];
    let more = ["--stop", "never in it", "--stop", stop, "--model", model.to_str().unwrap()];
    let cut = super::support::run(args.into_iter().chain(more)).json();
    assert_eq!(cut["text"], before);
    assert_eq!(cut["finish_reason"], "stop");
    assert_eq!(cut["tokens"], whole["tokens"]);
}
