//! Where prompts come from and what becomes of them.

use super::support::{DREAM, LLADA, MASK, folder, ids, list, model, on, on_with, run_with};
use serde_json::Value;
use std::path::Path;

fn tokenized(name: &str, args: &str, more: &[&str]) -> Vec<u32> {
    ids(&on_with(name, "tokenize", &format!("{args} --json"), more).json()["tokens"])
}

fn with_input(name: &str, input: &str, args: &str) -> Value {
    let model = model(name);
    let args = args.split_whitespace().chain(["--json", "--model", model.to_str().unwrap()]);
    run_with(input, args).json()
}

#[test]
fn every_source_gives_the_same_tokens() {
    let folder = folder("sources");
    let (text, turns) = (folder.join("text"), folder.join("turns.json"));
    std::fs::write(&text, "mother and child").unwrap();
    std::fs::write(&turns, r#"[{"role": "user", "content": "mother and child"}]"#).unwrap();
    for name in [LLADA, DREAM] {
        let prompt = tokenized(name, "", &["--prompt", "mother and child"]);
        let file = tokenized(name, "", &["--prompt-file", text.to_str().unwrap()]);
        let messages = tokenized(name, "", &["--messages", turns.to_str().unwrap()]);
        assert_eq!((&file, &messages), (&prompt, &prompt), "{name}");
        let piped = with_input(name, "mother and child", "tokenize");
        assert_eq!(ids(&piped["tokens"]), prompt, "{name}");
        let run = with_input(name, "mother and child", "run --max-tokens 1");
        assert_eq!(run["prompt_tokens"], prompt.len(), "{name}");
        let plain = tokenized(name, "--no-chat", &["--prompt", "mother and child"]);
        assert!(plain.len() < prompt.len(), "{name}");
        let printed = on_with(name, "tokenize", "", &["--prompt", "mother and child"]);
        assert_eq!(printed.text(), format!("{}\n", list(&prompt)));
    }
}

#[test]
fn text_and_bytes_come_back() {
    for name in [LLADA, DREAM] {
        let text = "mother <|endoftext|> \u{e9}\n\u{1f600} end\n";
        let ids = tokenized(name, "--no-chat", &["--prompt", text]);
        let bos = usize::from(name == LLADA);
        let back = on(name, "detokenize", &format!("--tokens {}", list(&ids[bos..])));
        assert_eq!(back.text(), text, "{name}");
        let special = tokenized(name, "--no-chat --special", &["--prompt", text]);
        assert!(special.len() < ids.len(), "{name}: the control token is one");
        let json = on(name, "detokenize", &format!("--json --tokens {}", list(&special[bos..])));
        assert_eq!(json.json()["text"], text, "{name}");
    }
}

/// The same text, however an editor, `echo` or another system wrote it down.
#[test]
fn marks_and_last_line_ends_are_no_text() {
    let plain = tokenized(LLADA, "", &["--prompt", "Hello"]);
    let kept = tokenized(LLADA, "--no-chat", &["--prompt", "Hello\n"]);
    let folder = folder("ends");
    for input in ["Hello", "Hello\n", "Hello\r\n", "\u{feff}Hello\n"] {
        assert_eq!(ids(&with_input(LLADA, input, "tokenize")["tokens"]), plain, "{input:?}");
        let named = with_input(LLADA, input, "tokenize --prompt-file -");
        assert_eq!(ids(&named["tokens"]), plain, "{input:?}");
        let path = folder.join("text");
        std::fs::write(&path, input).unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(tokenized(LLADA, "", &["--prompt-file", path]), plain, "{input:?}");
    }
    let turns = "\u{feff}[{\"role\": \"user\", \"content\": \"Hello\"}]\n";
    assert_eq!(ids(&with_input(LLADA, turns, "tokenize --messages -")["tokens"]), plain);
    assert_eq!(ids(&with_input(LLADA, "\u{feff}Hello\n", "tokenize --no-chat")["tokens"]), kept);
}

#[test]
fn a_chat_without_text_is_refused_from_every_source() {
    let empty = folder("empty").join("empty");
    let empty = empty.to_str().unwrap();
    std::fs::write(empty, "\n").unwrap();
    let cases = [
        (on_with(LLADA, "run", "", &["--prompt", ""]), "--prompt is empty"),
        (on_with(LLADA, "tokenize", "", &["--prompt-file", empty]), "empty` is empty"),
        (on(LLADA, "tokenize", ""), "standard input is empty"),
    ];
    for (ran, words) in cases {
        assert_eq!(ran.status, 1, "{}", ran.err);
        assert!(ran.err.contains(words), "{}", ran.err);
    }
    // Without a chat an empty text is one.
    assert_eq!(
        tokenized(LLADA, "--no-chat", &["--prompt", ""]),
        tokenized(LLADA, "--no-chat", &[])
    );
}

#[test]
fn ids_come_from_standard_input_too() {
    let text = "mother and child";
    let ids = list(&tokenized(LLADA, "--no-chat", &["--prompt", text])[1..]);
    let model = model(LLADA);
    for input in [ids.clone(), format!("{ids}\n"), ids.replace(',', " "), ids.replace(',', ",\n")] {
        let ran = run_with(&input, ["detokenize", "--model", model.to_str().unwrap()]);
        assert_eq!(ran.text(), text, "{input:?}: {}", ran.err);
    }
    for twice in ["1,,2", "1,, 2"] {
        let ran = run_with(twice, ["detokenize"]);
        assert!(ran.status == 2 && ran.err.contains("item 2 (``)"), "{twice}: {}", ran.err);
    }
    let ran = run_with("1,x", ["detokenize"]);
    assert!(ran.status == 2 && ran.err.contains("item 2 (`x`)"), "{}", ran.err);
}

#[test]
fn a_template_of_ones_own_replaces_the_files() {
    let folder = folder("template");
    let path = folder.join("template.jinja");
    std::fs::write(&path, "{% for m in messages %}{{ m.content }}{% endfor %}").unwrap();
    let path = path.to_str().unwrap();
    let with = tokenized(LLADA, "", &["--prompt", "mother", "--chat-template", path]);
    let plain = tokenized(LLADA, "--no-chat", &["--prompt", "mother"]);
    assert_eq!(with, plain);
    // One line end is left out, not all: more of them are what was written.
    let args = format!("tokenize --chat-template {path}");
    let ended = |input: &str| ids(&with_input(LLADA, input, &args)["tokens"]);
    assert_eq!(ended("mother\n"), plain);
    assert_eq!(ended("mother\r"), tokenized(LLADA, "--no-chat", &["--prompt", "mother\r"]));
    assert_eq!(ended("mother\n\n"), tokenized(LLADA, "--no-chat", &["--prompt", "mother\n"]));
    let args = "--max-tokens 1 --json";
    let run = on_with(LLADA, "run", args, &["--prompt", "mother", "--chat-template", path]).json();
    assert_eq!(run["prompt_tokens"], with.len());
    let wrong = folder.join("messages.json");
    std::fs::write(&wrong, "{").unwrap();
    let wrong = wrong.to_str().unwrap();
    let ran = on_with(LLADA, "run", "", &["--messages", wrong]);
    assert!(ran.status == 1 && ran.err.contains(wrong), "{}", ran.err);
}

#[test]
fn a_bos_leads_only_where_the_file_asks() {
    assert_eq!(tokenized(LLADA, "--no-chat", &["--prompt", "a"])[0], 2036);
    assert_eq!(tokenized(DREAM, "--no-chat", &["--prompt", "a"]).len(), 1);
    let json = on(LLADA, "run", "--tokens 5 --max-tokens 1 --json").json();
    assert_eq!(json["prompt_tokens"], 1);
}

#[test]
fn a_system_turn_leads() {
    let folder = folder("system");
    let turns = folder.join("turns.json");
    let two = r#"[{"role": "system", "content": "x"}, {"role": "user", "content": "y"}]"#;
    std::fs::write(&turns, two).unwrap();
    let turns = turns.to_str().unwrap();
    for name in [LLADA, DREAM] {
        let flags = tokenized(name, "", &["--prompt", "y", "--system", "x"]);
        assert_eq!(tokenized(name, "", &["--messages", turns]), flags, "{name}");
        let twice = on_with(name, "tokenize", "", &["--messages", turns, "--system", "z"]);
        assert_eq!(twice.status, 1);
        assert!(twice.err.contains("--system"), "{}", twice.err);
    }
}

#[test]
fn vocabulary_files_are_enough_for_text() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference/tokenizer");
    let file = folder.join("qwen2.gguf");
    if !file.exists() {
        println!("skipped: {} is not there", file.display());
        return;
    }
    let file = file.to_str().unwrap();
    let args = ["tokenize", "--model", file, "--prompt", "hi", "--no-chat"];
    let ran = super::support::run(args);
    assert_eq!((ran.status, ran.text()), (0, "6023\n"), "{}", ran.err);
    let ran = super::support::run(["run", "--model", file, "--prompt", "hi"]);
    assert_eq!(ran.status, 1);
}

#[test]
fn holes_are_masks_in_place() {
    let args = "--no-chat --holes --max-tokens 0 --json --trace --early-stop false";
    let json = on_with(LLADA, "run", args, &["--prompt", "mother [[2]] child[[1]]"]).json();
    let before = tokenized(LLADA, "--no-chat", &["--prompt", "mother "]);
    let between = tokenized(LLADA, "--no-chat", &["--prompt", " child"])[1..].to_vec();
    let last = ids(json["trace"].as_array().unwrap().last().unwrap());
    let (first, second) = (before.len(), before.len() + 2 + between.len());
    assert_eq!(last[..first], before);
    assert_eq!(last[first + 2..second], between);
    assert_eq!(last.len(), second + 1);
    assert!(!last.contains(&MASK));
    assert_eq!(
        (&json["settings"]["steps"], &json["settings"]["max_tokens"]),
        (&3.into(), &0.into())
    );
    assert_eq!(ids(&json["tokens"]), [] as [u32; 0]);
    let filled = on(LLADA, "detokenize", &format!("--tokens {}", list(&last[1..])));
    assert_eq!(json["text"], filled.text());
    let holes = json["holes"].as_array().unwrap();
    assert_eq!((&holes[0]["position"], &holes[1]["position"]), (&first.into(), &second.into()));
    assert_eq!(ids(&holes[0]["tokens"]), last[first..first + 2]);
    // The same as with the mask token's own id.
    let mut tokens = before;
    tokens.extend([MASK, MASK]);
    tokens.extend(between);
    tokens.push(MASK);
    let args = format!("--max-tokens 0 --json --tokens {}", list(&tokens));
    assert_eq!(on(LLADA, "run", &args).json()["text"], json["text"]);
}

#[test]
fn holes_in_a_chat_turn_are_masks_between_its_words() {
    for name in [LLADA, DREAM] {
        let args = "--holes --max-tokens 4 --json --trace --temperature 0";
        let json = on_with(name, "run", args, &["--prompt", "mother [[3]] child"]).json();
        let whole = tokenized(name, "", &["--prompt", "mother  child"]);
        let hole = json["holes"][0].clone();
        let position = hole["position"].as_u64().unwrap() as usize;
        let last = ids(json["trace"].as_array().unwrap().last().unwrap());
        assert_eq!(last[..position - 2], whole[..position - 2], "{name}: the template leads");
        assert_eq!(last[position..position + 3], ids(&hole["tokens"]), "{name}");
        assert_eq!(ids(&json["tokens"]), last[last.len() - 4..], "{name}");
        assert!(!last.contains(&MASK), "{name}");
    }
    // Without the flag the brackets are text.
    let json = on(LLADA, "run", "--prompt [[3]] --max-tokens 2 --json").json();
    assert!(json.get("holes").is_none());
}

#[test]
fn the_mask_token_can_be_given() {
    let args = "--tokens 5,6,600 --max-tokens 0 --mask-token 600 --json";
    let json = on(LLADA, "run", args).json();
    assert_eq!(json["settings"]["steps"], 1);
    assert_ne!(ids(&json["holes"][0]["tokens"]), [600]);
}

#[test]
fn bad_texts_are_refused_by_name() {
    let folder = folder("texts");
    let (bytes, turns) = (folder.join("bytes"), folder.join("turns"));
    std::fs::write(&bytes, b"abc\xff").unwrap();
    std::fs::write(&turns, r#"[{"role": "robot", "content": "a"}]"#).unwrap();
    let ran = on_with(LLADA, "run", "", &["--prompt-file", bytes.to_str().unwrap()]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("offset 3") && ran.err.contains("bytes"), "{}", ran.err);
    let ran = on_with(LLADA, "run", "", &["--messages", turns.to_str().unwrap()]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("messages[0]") && ran.err.contains("robot"), "{}", ran.err);
}
