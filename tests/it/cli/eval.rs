//! `eval`: what counts as right, and the demonstration model's score.

use super::support::{LLADA, Ran, folder, model, on, on_with, program, run};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Items and right answers of the built-in model, one task in five, with the default settings:
/// results are the same on every machine, so they are exact.
const FIFTH: [(&str, u64, u64); 23] = [
    ("add", 8, 8),
    ("add3", 8, 8),
    ("capital", 8, 8),
    ("compare", 8, 8),
    ("continent", 8, 8),
    ("copy", 8, 8),
    ("country", 8, 7),
    ("edit", 8, 8),
    ("fill_python", 8, 8),
    ("fill_record", 8, 8),
    ("month", 3, 3),
    ("parity", 8, 8),
    ("python", 8, 8),
    ("record", 8, 8),
    ("reverse", 8, 8),
    ("sort", 8, 8),
    ("spell", 8, 8),
    ("story", 8, 8),
    ("subtract", 8, 8),
    ("subtract3", 8, 8),
    ("to_digits", 8, 8),
    ("to_words", 8, 8),
    ("weekday", 3, 1),
];

fn eval(folder: &Path, args: &str) -> Ran {
    on(LLADA, "eval", &format!("--tasks {} --max-tokens 12 {args}", folder.display()))
}

/// What the model answers, as a line of a file of tasks.
fn answer(prompt: &str) -> String {
    let ran = run([
        "run".as_ref(),
        "--model".as_ref(),
        model(LLADA).as_os_str(),
        "--prompt".as_ref(),
        prompt.as_ref(),
        "--max-tokens".as_ref(),
        "12".as_ref(),
        "--json".as_ref(),
    ]);
    let text = ran.json()["text"].as_str().unwrap().to_owned();
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
}

fn tasks(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = folder(name);
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    folder
}

#[test]
fn an_answer_counts_when_it_is_the_same_to_the_last_byte() {
    let (one, two) = (answer("Say one."), answer("Say two."));
    assert!(one.len() > 1 && one != two, "{one} {two}");
    let both = format!("Say one.\t{one}\nSay two.\t{two}\n");
    let mixed = format!("Say one.\t{one}\nSay two.\t{two}.\nSay one.\t{two}\n");
    let folder = tasks("eval-match", &[("same.txt", &both), ("mixed.txt", &mixed)]);
    let json = eval(&folder, "--json").json();
    assert_eq!((json["items"].as_u64(), json["right"].as_u64()), (Some(5), Some(3)));
    assert_eq!(json["exact_match"].as_f64(), Some(0.6));
    assert_eq!(json["per_family"]["same"]["exact_match"].as_f64(), Some(1.0));
    assert_eq!(json["per_family"]["mixed"]["right"].as_u64(), Some(1));
    assert!(json["forward_passes_per_answer"].as_f64().unwrap() > 0.0);
    assert!(json["tokens_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!(json["settings"]["max_tokens"].as_u64(), Some(12));
    assert_eq!(json["settings"]["steps"].as_u64(), Some(12));

    let table = eval(&folder, "--family mixed --show 1");
    assert_eq!(table.status, 0, "{}", table.err);
    assert!(table.text().contains("mixed     1 of 3"), "{}", table.text());
    assert!(!table.text().contains("same"), "{}", table.text());
    // What it says of random words may take more tokens to write down again.
    let said: Vec<&str> = table.err.lines().filter(|line| !line.starts_with("warning: ")).collect();
    assert!(said.len() == 1 && said[0].starts_with("mixed: Say two.: "), "{}", table.err);
    let every = eval(&folder, "--every 2 --json").json();
    assert_eq!((every["items"].as_u64(), every["right"].as_u64()), (Some(3), Some(2)));
}

#[test]
fn holes_cost_a_pass_a_token_or_fewer() {
    let line = "Fill it.\tthe «red» fox and the «blue» one\n";
    let folder = tasks("eval-holes", &[("holes.txt", line)]);
    let tokens = |text: &str| {
        let args = format!("--no-chat --json --prompt {text}");
        on(LLADA, "tokenize", &args).json()["tokens"].as_array().unwrap().len() as f64
    };
    // At least as many as the words have alone: a hole takes whole tokens.
    let json = eval(&folder, "--json").json();
    let passes = json["forward_passes_per_answer"].as_f64().unwrap();
    assert!(passes >= 2.0 && passes <= tokens("red") + tokens("blue") + 4.0, "{json}");
    assert_eq!(json["tokens_per_forward_pass"].as_f64(), Some(1.0));
    let json = eval(&folder, "--json --steps 1").json();
    assert_eq!(json["forward_passes_per_answer"].as_f64(), Some(1.0), "{json}");
}

#[test]
fn what_editors_add_to_a_file_is_no_task() {
    let text = "\u{feff}Say one.\tx\r\n\r\nSay one.\tx\n\n";
    let broken = ("broken.txt", "no task");
    let folder = tasks("eval-editors", &[("one.txt", text), broken]);
    // A family that is not asked for is not read.
    let ran = eval(&folder, "--family one --show 1");
    assert!(ran.text().contains("0 of 2"), "{}{}", ran.text(), ran.err);
    assert!(ran.err.starts_with("one: Say one.: "), "{}", ran.err);
    assert_eq!(eval(&folder, "").status, 1);
}

#[test]
fn a_prompt_may_hold_the_mask_token() {
    let folder = tasks("eval-mask", &[("one.txt", "Say one.\tx\n")]);
    let ids = on(LLADA, "tokenize", "--json --no-chat --prompt Say").json();
    let id = ids["tokens"][0].as_u64().unwrap();
    let ran = eval(&folder, &format!("--no-chat --mask-token {id}"));
    assert_eq!(ran.status, 0, "{}", ran.err);
}

#[test]
fn answers_that_cannot_fit_are_warned_of_and_equal_steps_refused() {
    let long = format!("Say one.\t{}\n", "word ".repeat(40).trim_end());
    let folder = tasks("eval-cut", &[("one.txt", &long)]);
    assert!(eval(&folder, "").err.contains("1 answers are longer than --max-tokens 12"));
    let ran = eval(&folder, "--steps 1,2 --block-length 4");
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("3 steps more than once"), "{}", ran.err);
}

#[test]
fn a_plot_takes_nobodys_place() {
    let folder = tasks("eval-plot", &[("one.txt", "Say one.\tx\n")]);
    let refused = |plot: &Path, word: &str| {
        let ran = eval(&folder, &format!("--plot {}", plot.display()));
        assert_eq!((ran.status, ran.out.len()), (1, 0), "{}", ran.err);
        assert!(ran.err.contains(word), "{}", ran.err);
    };
    let read_only = folder.join("read-only.svg");
    fs::write(&read_only, "kept").unwrap();
    fs::set_permissions(&read_only, fs::Permissions::from_mode(0o444)).unwrap();
    refused(&read_only, "may not be written");
    assert_eq!(fs::read(&read_only).unwrap(), b"kept");
    let link = folder.join("link.svg");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    refused(&link, "leads nowhere");
    refused(&folder.join("new/"), "folder");

    let private = folder.join("private.svg");
    fs::write(&private, "old").unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(eval(&folder, &format!("--plot {}", private.display())).status, 0);
    assert!(fs::read_to_string(&private).unwrap().starts_with("<svg"));
    assert_eq!(fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o600);

    // Where standard output is a file, its other name is refused too.
    let results = folder.join("results.txt");
    fs::write(&results, "kept").unwrap();
    let mut command = program();
    command.args(["eval", "--max-tokens", "4", "--plot", "/dev/stdout", "--tasks"]).arg(&folder);
    command.arg("--model").arg(model(LLADA));
    command.stdout(fs::File::options().append(true).open(&results).unwrap());
    assert_eq!(command.status().unwrap().code(), Some(1));
    assert_eq!(fs::read(&results).unwrap(), b"kept");
}

#[test]
fn several_numbers_of_steps_are_several_runs_and_a_plot() {
    let folder =
        tasks("eval-steps", &[("one.txt", &format!("Say one.\t{}\n", answer("Say one.")))]);
    let plot = folder.join("plot.svg");
    let args = format!("--json --steps 3,6,12 --plot {}", plot.display());
    let json = eval(&folder, &args).json();
    let runs = json["runs"].as_array().unwrap();
    let steps: Vec<u64> = runs.iter().map(|r| r["settings"]["steps"].as_u64().unwrap()).collect();
    assert_eq!(steps, [3, 6, 12]);
    let passes = |run: &Value| run["forward_passes_per_answer"].as_f64().unwrap();
    assert!(passes(&runs[0]) < passes(&runs[2]), "{json}");
    let svg = fs::read_to_string(&plot).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    // A mark for each run, of the family and of all.
    assert_eq!(svg.matches("<circle").count(), 6);
    assert!(svg.contains("forward passes an answer"));
}

#[test]
fn what_is_no_task_is_refused_by_line() {
    let cases: &[(&str, &[&str])] = &[
        ("", &["empty"]),
        ("no tab\n", &["line 1", "tab"]),
        ("a\tb\n\tc\n", &["line 2", "prompt"]),
        ("a\t«b\n", &["line 1", "«"]),
    ];
    for (index, (text, words)) in cases.iter().enumerate() {
        let folder = tasks(&format!("eval-bad-{index}"), &[("x.txt", text)]);
        let ran = eval(&folder, "");
        assert_eq!(ran.status, 1, "{}", ran.err);
        assert!(ran.err.contains("x.txt"), "{}", ran.err);
        words.iter().for_each(|word| assert!(ran.err.contains(word), "{}", ran.err));
    }
    let same = tasks("eval-same", &[("a\nb.txt", "a\tb\n"), ("a b.txt", "a\tb\n")]);
    assert!(eval(&same, "").err.contains("are both family \"a b\""));
    let total = eval(&tasks("eval-all", &[("all.txt", "a\tb\n")]), "");
    assert!(total.err.contains("\"all\""), "{}", total.err);
    let pipe = folder("eval-pipe");
    let made = std::process::Command::new("mkfifo").arg(pipe.join("x.txt")).status();
    assert!(made.unwrap().success());
    assert!(eval(&pipe, "").err.contains("is no regular file"));
    let nothing = eval(&folder("eval-nothing"), "");
    assert_eq!(nothing.status, 2);
    assert!(nothing.err.contains(".txt"), "{}", nothing.err);
    let long = tasks("eval-long", &[("x.txt", &format!("{}\ta\n", "word ".repeat(5000)))]);
    let long = eval(&long, "");
    assert_eq!(long.status, 1);
    assert!(long.err.contains("context_length"), "{}", long.err);
}

/// How an evaluation of two families, of which the second takes far longer, ends when it is
/// interrupted so long after it has begun.
fn interrupted_after(wait: Duration) -> Value {
    let many = "Say one.\tx\n".repeat(20_000);
    let folder = tasks("eval-interrupt", &[("a.txt", "Say one.\tx\n"), ("b.txt", &many)]);
    let mut command = program();
    command.args(["eval", "--json", "--max-tokens", "2", "--steps", "2,1", "--tasks"]).arg(&folder);
    command.arg("--model").arg(model(LLADA)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.arg("--verbose").spawn().unwrap();
    let mut line = String::new();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    err.read_line(&mut line).unwrap();
    assert!(line.starts_with("load "), "{line}");
    std::thread::sleep(wait);
    let kill = format!("kill -INT {}", child.id());
    std::process::Command::new("sh").args(["-c", &kill]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn an_interrupt_keeps_what_was_scored_and_says_so() {
    // On a busy machine the first family may take its time.
    for wait in [300, 1000, 3000].map(Duration::from_millis) {
        let json = interrupted_after(wait);
        assert_eq!(json["interrupted"], true, "{json}");
        let [run] = json["runs"].as_array().unwrap().as_slice() else { continue };
        let count = |name: &str| run["per_family"][name]["items"].as_u64().unwrap_or(0);
        assert_eq!(count("a"), 1, "{json}");
        assert!(count("b") < 20_000, "{json}");
        assert_eq!(run["items"].as_u64(), Some(1 + count("b")));
        return;
    }
    panic!("not one task in three seconds");
}

#[test]
fn steps_are_those_that_are_made() {
    let folder = tasks("eval-least", &[("one.txt", "Say one.\tx\n")]);
    let json = eval(&folder, "--json --steps 1 --block-length 3").json();
    assert_eq!(json["settings"]["steps"].as_u64(), Some(4));
    let run = on(LLADA, "run", "--tokens 1 --max-tokens 1 --json").json();
    assert_eq!(json["model_hash"], run["model_hash"]);
}

#[test]
fn without_a_template_the_text_is_the_prompt() {
    let folder = tasks("eval-plain", &[("one.txt", "Say one.\tx\n")]);
    let plain = eval(&folder, "--no-chat --show 1");
    let chat = eval(&folder, "--show 1");
    assert_eq!((plain.status, chat.status), (0, 0), "{}{}", plain.err, chat.err);
    let args = ["--prompt", "Say one."];
    let text = on_with(LLADA, "run", "--no-chat --max-tokens 12", &args);
    let said = format!("one: Say one.: {:?}, not \"x\"\n", text.text().trim_end_matches('\n'));
    assert_eq!(plain.err, said);
    assert_ne!(plain.err, chat.err);
}

#[test]
fn every_file_of_tasks_is_built_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/demo/tasks");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.map(|p| p.file_stem().unwrap().to_owned()).collect();
    files.sort();
    let mut names: Vec<_> = dllm_rt::demo::TASKS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(files, names);
}

#[test]
fn a_fixed_fifth_of_the_tasks_has_its_exact_score() {
    let json = run(["eval", "--every", "5", "--json"]).json();
    let found: Vec<(String, u64, u64)> = json["per_family"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, score)| {
            let count = |key: &str| score[key].as_u64().unwrap();
            (name.clone(), count("items"), count("right"))
        })
        .collect();
    let mut expected = FIFTH.map(|(name, items, right)| (name.to_owned(), items, right)).to_vec();
    expected.sort();
    assert_eq!(found, expected);
}
