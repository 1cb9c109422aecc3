//! Thresholds, caches, growing canvases, presets and deadlines, as flags.

use super::support::{DREAM, LLADA, on, run};
use serde_json::Value;

/// Prompts that the built-in model answers.
const PROMPTS: [&str; 5] = [
    "What is the capital of France?",
    "What is 47 + 35?",
    "Spell CHAIR.",
    "Make a record: Anna is 34 and lives in Paris.",
    "Tell a story of Leo, a brave owl in the castle.",
];

fn ask(prompt: &str, args: &str) -> Value {
    let args = args.split_whitespace();
    run(["run", "--json", "--prompt", prompt].into_iter().chain(args)).json()
}

fn number(json: &Value, key: &str) -> u64 {
    json[key].as_u64().unwrap()
}

#[test]
fn presets_say_the_same_in_fewer_passes_and_rows() {
    for prompt in PROMPTS {
        let exact = ask(prompt, "--preset exact");
        assert_eq!(exact["tokens"], ask(prompt, "")["tokens"], "exact is the default");
        let mut before = exact.clone();
        for preset in ["balanced", "fast"] {
            let json = ask(prompt, &format!("--preset {preset}"));
            assert_eq!(json["text"], exact["text"], "{preset}");
            assert!(number(&json, "rows_computed") < number(&before, "rows_computed"), "{json}");
            assert!(number(&json, "forward_passes") < number(&exact, "forward_passes") / 2);
            assert_eq!(number(&json["counters"], "allocations"), 0);
            before = json;
        }
        assert_eq!(before["settings"]["cache"], "dual");
    }
}

#[test]
fn flags_beside_a_preset_count() {
    let json = ask(PROMPTS[0], "--preset fast --cache none");
    assert_eq!(json["settings"]["cache"], "none");
    let prefix = ask(PROMPTS[0], "--preset fast --cache prefix --refresh 2 --factor 1");
    assert_eq!((&prefix["settings"]["cache"], &prefix["text"]), (&"prefix".into(), &json["text"]));
}

#[test]
fn a_canvas_grows_no_further_than_the_text() {
    let json = ask(PROMPTS[0], "--grow true --max-tokens 96");
    assert_eq!(json["tokens"].as_array().unwrap().len(), 32);
    let whole = ask(PROMPTS[0], "--max-tokens 96");
    assert_eq!(whole["tokens"].as_array().unwrap().len(), 96);
    assert!(number(&json, "rows_computed") < number(&whole, "rows_computed"));
    // One that never ends has every block.
    let args =
        "--tokens 5,6,7 --grow true --max-tokens 20 --block-length 8 --early-stop false --json";
    let json = on(LLADA, "run", args).json();
    assert_eq!(json["tokens"].as_array().unwrap().len(), 20);
    assert_eq!(number(&json, "forward_passes"), 20);
}

#[test]
fn a_deadline_ends_a_run_with_what_there_is() {
    let json = ask(PROMPTS[4], "--deadline-ms 0");
    assert_eq!(json["finish_reason"], "deadline");
    assert_eq!(number(&json, "forward_passes"), 0);
    assert_eq!(json["text"], "");
    let late = ask(PROMPTS[4], "--deadline-ms 600000");
    assert_eq!(late["finish_reason"], "stop");
    let score =
        run(["eval", "--family", "capital", "--every", "20", "--deadline-ms", "0", "--json"]);
    let score = score.json();
    assert_eq!(number(&score, "right"), 0);
    assert_eq!(score["tokens_per_forward_pass"].as_f64(), Some(0.0));
    let said = run(["run", "--prompt", PROMPTS[0], "--deadline-ms", "0"]);
    assert_eq!((said.status, said.text()), (0, "\n"));
    assert_eq!(said.err, "the time was up: 128 positions are empty\n");
}

/// In the middle of a long run, of which the first step is always made.
#[test]
fn a_deadline_keeps_what_was_committed_until_then() {
    let args = "--tokens 5,6,7 --max-tokens 3000 --deadline-ms 500 --early-stop false --json";
    for more in ["", "--threshold 1 --cache dual"] {
        let json = on(LLADA, "run", &format!("{args} {more}")).json();
        assert_eq!(json["finish_reason"], "deadline", "{more}");
        let passes = number(&json, "forward_passes");
        assert!(passes > 0, "{more}");
        let is_filled = |id: &&Value| id.as_u64() != Some(2040);
        let filled = json["tokens"].as_array().unwrap().iter().filter(is_filled).count() as u64;
        // Each pass commits one.
        assert_eq!(filled, passes, "{more}");
    }
    // Tasks that come to no answer make room for others.
    let args = "--every 30 --sequences 2 --preset fast --threshold 1 --deadline-ms 1 --json";
    let json = run(["eval"].into_iter().chain(args.split_whitespace())).json();
    assert_eq!((number(&json, "sequences"), number(&json, "deadline_ms")), (2, 1));
    let all = run(["eval", "--every", "30", "--preset", "fast", "--json"]).json();
    assert_eq!(json["items"], all["items"]);
}

/// A stop left of every mask cuts the text where it would be cut in the end.
#[test]
fn a_text_that_has_come_to_its_stop_was_not_cut() {
    let args = "--threshold 1 --early-stop false --steps 40";
    let json = ask(PROMPTS[2], &format!("{args} --stop A"));
    assert_eq!((&json["finish_reason"], &json["text"]), (&"stop".into(), &"C-H-".into()));
    let json = ask(PROMPTS[2], args);
    assert_eq!((&json["finish_reason"], &json["text"]), (&"stop".into(), &"C-H-A-I-R".into()));
}

/// Masks stand between what a text looks like and what it will be.
#[test]
fn empty_positions_are_told_of() {
    let of = |prompt: &str, args: &str| {
        let json = ask(prompt, args);
        (json["finish_reason"].clone(), json["text"].clone())
    };
    let args = "--threshold 1 --steps 10 --forbid-end";
    let cut = of(PROMPTS[1], args);
    assert_eq!(cut.0, "steps");
    let text = cut.1.as_str().unwrap();
    // Two that only an empty position brings together.
    assert!(text.contains("++"), "{text}");
    let args = ["run", "--prompt", PROMPTS[1], "--threshold", "1", "--steps", "10"];
    let stopped = run(args.into_iter().chain(["--forbid-end", "--stop", "++"]));
    assert_eq!(stopped.text().trim_end(), text.trim_end());
    assert!(stopped.err.contains("there were no more steps"), "{}", stopped.err);
    let (prompt, args) = ("[[1]]", "--holes --no-chat --max-tokens 1 --preset fast --steps 1");
    assert_eq!(of(prompt, args).0, "steps");
    // Stops are for what is generated: there are none in the user's own text.
    let whole = of("Say [[2]].", "--holes --no-chat --max-tokens 0 --stop Say");
    assert_eq!(whole, of("Say [[2]].", "--holes --no-chat --max-tokens 0"));
    assert!(whole.1.as_str().unwrap().starts_with("Say"), "{whole:?}");
    let long = "--holes --no-chat --max-tokens 32 --threshold 1 --steps 40";
    assert_eq!(of("[[40]]", long).0, "steps");
}

#[test]
fn steps_are_the_most_there_are_with_a_threshold() {
    let json = ask(PROMPTS[4], "--threshold 1 --steps 3");
    assert_eq!((number(&json, "forward_passes"), number(&json["settings"], "steps")), (3, 3));
    assert_eq!(json["finish_reason"], "steps");
    let args = ["run", "--prompt", PROMPTS[4], "--threshold", "1", "--steps", "3"];
    assert_eq!(run(args).err, "there were no more steps: 125 positions are empty\n");
}

#[test]
fn dream_has_blocks_with_a_threshold() {
    let args = "--tokens 5,6,7,8 --max-tokens 16 --block-length 8 --seed 3 --json";
    let fast = on(DREAM, "run", &format!("{args} --threshold 1 --cache dual")).json();
    assert_eq!(
        (&fast["settings"]["cache"], number(&fast["settings"], "block_length")),
        (&"dual".into(), 8)
    );
    assert!(number(&fast, "rows_computed") < 20 * number(&fast, "forward_passes"));
    let refreshed = format!("{args} --threshold 0.5 --cache dual --refresh 1");
    let none = on(DREAM, "run", &format!("{args} --threshold 0.5")).json();
    assert_eq!(on(DREAM, "run", &refreshed).json()["tokens"], none["tokens"]);
}

/// The answers, the rows they took and the passes, which those that share one count once.
#[test]
fn sequences_that_share_passes_answer_the_same() {
    let score = |args: &str| {
        let args = args.split_whitespace();
        run(["eval", "--every", "9", "--json", "--answers"].into_iter().chain(args)).json()
    };
    let names = ["items", "right", "rows_per_answer"];
    for preset in ["balanced", "fast"] {
        let one = score(&format!("--preset {preset}"));
        let three = score(&format!("--preset {preset} --sequences 3"));
        for name in names {
            assert_eq!(one[name], three[name], "{preset}");
        }
        for (family, expected) in one["per_family"].as_object().unwrap() {
            assert_eq!(three["per_family"][family]["answers"], expected["answers"], "{family}");
        }
        let passes = |json: &Value| json["forward_passes_per_answer"].as_f64().unwrap();
        assert!(passes(&three) < 0.5 * passes(&one), "{preset}");
        assert_eq!(three["sequences"], 3);
    }
    for wrong in ["0", "17"] {
        let ran = run(["eval", "--every", "40", "--sequences", wrong]);
        assert_eq!(ran.status, 2);
        assert!(ran.err.contains("--sequences must be from 1 to 16"), "{}", ran.err);
    }
}

/// One task in five: what presets lose, and what they save.
#[test]
fn presets_lose_little_and_save_much() {
    let score = |preset: &str| run(["eval", "--every", "5", "--json", "--preset", preset]).json();
    let (balanced, fast) = (score("balanced"), score("fast"));
    assert_eq!((number(&balanced, "items"), number(&balanced, "right")), (174, 170));
    assert_eq!((number(&fast, "items"), number(&fast, "right")), (174, 171));
    let per_answer = |json: &Value, key: &str| json[key].as_f64().unwrap();
    for json in [&balanced, &fast] {
        assert!(per_answer(json, "forward_passes_per_answer") < 1.5, "{json}");
    }
    assert!(per_answer(&fast, "rows_per_answer") < 60.0, "{fast}");
    assert!(per_answer(&balanced, "rows_per_answer") > 100.0, "{balanced}");
}
