//! `run --interactive`, fed by a pipe.

use super::support::{DREAM, LLADA, Ran, model, on, run_with};

fn chat(name: &str, input: &str, args: &str) -> Ran {
    let model = model(name);
    let first = ["run", "--interactive", "--model", model.to_str().unwrap()];
    run_with(input, first.into_iter().chain(args.split_whitespace()))
}

#[test]
fn a_line_is_a_turn_and_turns_are_kept() {
    for name in [LLADA, DREAM] {
        let args = "--max-tokens 6 --temperature 0";
        let first = on(name, "run", &format!("--prompt mother {args}"));
        let other = on(name, "run", &format!("--prompt child {args}"));
        let once = chat(name, "mother\n", args);
        assert_eq!((once.status, &once.out), (0, &first.out), "{}", once.err);
        let forgotten = chat(name, "mother\r\n\n/clear\nchild", args);
        assert_eq!(forgotten.text(), format!("{}{}", first.text(), other.text()), "{name}");
        let kept = chat(name, "mother\nchild\n/exit\nnever\n", args);
        assert_eq!(kept.status, 0);
        let second = kept.text().strip_prefix(first.text()).unwrap();
        assert_ne!(second, other.text(), "{name}: the first turn is forgotten");
        assert_eq!(kept.err, "", "{name}");
    }
}

#[test]
fn a_turn_keeps_nothing_of_the_keys_of_the_one_before() {
    for name in [LLADA, DREAM] {
        let args = "--max-tokens 24 --block-length 8 --threshold 0.3 --grow true --seed 5";
        let turns = "mother\nchild\nmother\n";
        let without = chat(name, turns, args);
        let exact = chat(name, turns, &format!("{args} --cache dual --refresh 1"));
        assert_eq!((exact.status, &exact.out), (0, &without.out), "{name}: {}", exact.err);
        // Certain of nothing, so that blocks take several steps with kept keys.
        let fast = "--preset fast --threshold 1 --max-tokens 24 --block-length 8";
        let twice = chat(name, "mother\n/clear\nmother\n", fast);
        let once = chat(name, "mother\n", fast);
        assert_eq!(twice.text(), once.text().repeat(2), "{name}: {}", twice.err);
    }
}

#[test]
fn a_full_conversation_says_so_and_goes_on() {
    let ran = chat(LLADA, &format!("{}\nhi\n", "a ".repeat(5000)), "--max-tokens 4");
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.err.contains("full") && ran.err.contains("4096"), "{}", ran.err);
    let hi = on(LLADA, "run", "--prompt hi --max-tokens 4");
    assert_eq!(ran.out, hi.out);
}

#[test]
fn no_input_is_no_turn() {
    let ran = chat(LLADA, "", "--max-tokens 4");
    assert_eq!((ran.status, ran.out.len()), (0, 0), "{}", ran.err);
}

#[test]
fn a_line_that_is_too_long_is_left_out_and_the_chat_goes_on() {
    let long = "x".repeat(262_144 + 7);
    let ran = chat(LLADA, &format!("{long}\n{long}\nhi\n"), "--max-tokens 2");
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert_eq!(ran.err.matches("is longer than 262144 bytes").count(), 2, "{}", ran.err);
    assert_eq!(ran.out, chat(LLADA, "hi\n", "--max-tokens 2").out);
}

#[test]
fn the_built_in_model_takes_each_question_by_itself() {
    let question = "What is the capital of France?\n";
    let ran = run_with(&question.repeat(3), ["run", "--interactive"]);
    assert_eq!((ran.status, ran.text()), (0, "Paris\nParis\nParis\n"), "{}", ran.err);
}

#[test]
fn a_chat_without_room_for_a_question_is_refused() {
    let ran = run_with("a\n", ["run", "--interactive", "--max-tokens", "1020"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("context_length is 1024"), "{}", ran.err);
}
