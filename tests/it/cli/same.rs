//! The same tokens whatever the threads, the instruction set, and the work that is not needed.

use super::support::{DREAM, LLADA, ids, on};
use serde_json::Value;

/// Random choices too: they depend on the seed alone.
const SAMPLED: &[(&str, &str)] = &[
    (LLADA, "--temperature 0.7 --cfg-scale 0.5 --algorithm random --steps 7"),
    (LLADA, ""),
    (DREAM, "--temperature 0.9 --top-k 20 --alg-temp 0.5 --steps 7"),
    (DREAM, "--algorithm origin"),
];

fn generated(name: &str, args: &str) -> Value {
    let args = format!("--tokens 5,6,2040,7,8 --max-tokens 11 --json --trace {args}");
    on(name, "run", &args).json()
}

#[test]
fn threads_and_instruction_sets_change_nothing() {
    let refusal = on(LLADA, "run", "--tokens 5 --isa none").err;
    let isas = refusal.trim().rsplit_once("this CPU has ").unwrap().1.split(", ");
    let isas: Vec<&str> = isas.collect();
    assert!(isas.contains(&"scalar"), "{refusal}");
    for (name, args) in SAMPLED {
        let first = generated(name, &format!("{args} --threads 1"));
        assert!(!ids(&first["tokens"]).is_empty());
        let variants = ["--threads 2", "--threads 3", "--threads 5"].map(String::from);
        let variants = variants.into_iter().chain(isas.iter().map(|isa| format!("--isa {isa}")));
        for variant in variants {
            let other = generated(name, &format!("{args} {variant}"));
            assert_eq!(other["trace"], first["trace"], "{name} {args} {variant}");
            assert_eq!(other["text"], first["text"], "{name} {args} {variant}");
        }
    }
}

#[test]
fn seeds_change_random_choices() {
    let seeds = [1, 2, 3].map(|seed| {
        let args = format!("--temperature 1 --seed {seed}");
        ids(&generated(DREAM, &args)["tokens"])
    });
    assert!(seeds[0] != seeds[1] || seeds[1] != seeds[2]);
}

#[test]
fn logits_of_every_position_change_no_token() {
    // 9 rows in the canvas; 8, 7, ... 1 wanted.
    for (full, rows) in [("", "36 rows of logits"), ("--full-logits", "72 rows of logits")] {
        let args = format!("--tokens 5 --max-tokens 8 --early-stop false --verbose {full}");
        let said = on(LLADA, "run", &args).err;
        assert!(said.contains(rows), "{rows:?} is not in {said:?}");
    }
    for (name, args) in SAMPLED {
        let plain = generated(name, args);
        let full = generated(name, &format!("{args} --full-logits"));
        assert_eq!(full["trace"], plain["trace"], "{name} {args}");
        assert_eq!(full["forward_passes"], plain["forward_passes"], "{name} {args}");
    }
}

#[test]
fn plain_output_is_the_json_text() {
    for name in [LLADA, DREAM] {
        let args = "--tokens 5,6,7 --max-tokens 9";
        let json = on(name, "run", &format!("{args} --json")).json();
        let plain = on(name, "run", args);
        assert_eq!(plain.text(), format!("{}\n", json["text"].as_str().unwrap()), "{name}");
        assert_eq!(plain.err, "");
        let watched = on(name, "run", &format!("{args} --watch"));
        assert_eq!(watched.out, plain.out, "{name}");
        let steps: Vec<&str> = watched.err.lines().collect();
        assert_eq!(steps.len(), 9, "{name}: {}", watched.err);
        assert!(steps[0].starts_with("step 1/9: ") && steps[0].contains('·'), "{}", steps[0]);
        assert!(!steps[8].contains('·') && !watched.err.contains('\u{1b}'), "{}", steps[8]);
    }
}
