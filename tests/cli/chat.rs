//! `run --interactive`, fed by a pipe.

use crate::support::{DREAM, LLADA, Ran, model, on, run_with};

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
