//! Files of the tree, read and split into code and comments for the rules.

use std::fs;
use std::path::Path;

/// Folders that hold what programs wrote, not what people did.
const GENERATED: &[&str] = &["target", "corpus", "artifacts", "coverage", "__pycache__"];
/// What the rules read; anything else is data.
const TEXT: &[&str] = &["rs", "toml", "md", "py", "sh", "c", "cpp", "h", "cu", "cuh", "yml"];

/// Something that a rule does not allow.
pub struct Offence {
    /// Counted from one.
    pub line: usize,
    pub what: String,
}

impl Offence {
    /// At a line counted from zero.
    pub fn at(index: usize, what: impl Into<String>) -> Self {
        Offence { line: index + 1, what: what.into() }
    }
}

/// One text file. For Rust, `code` has comments and the insides of strings blanked out, `comments`
/// has everything else blanked out; both keep the columns and lines of `text`.
pub struct Source {
    /// Relative to the root, with forward slashes.
    pub path: String,
    pub text: Vec<String>,
    pub code: Vec<String>,
    pub comments: Vec<String>,
    /// Whether a line belongs to a test.
    pub test: Vec<bool>,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let (code, comments) =
            if path.ends_with(".rs") { split(text) } else { (text.to_string(), String::new()) };
        let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
        let (text, code) = (lines(text), lines(&code));
        let mut comments = lines(&comments);
        comments.resize(text.len(), String::new());
        let test = test_lines(path, &code);
        Source { path: path.to_string(), text, code, comments, test }
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the file is part of a crate that users run, as opposed to tests and tools.
    pub fn is_product(&self) -> bool {
        let in_product =
            ["src/", "arena/src/", "kernels/"].iter().any(|f| self.path.starts_with(f));
        self.is_rust() && in_product && !is_test_file(&self.path)
    }

    /// Lines of code outside tests, with their indices.
    pub fn product_code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.iter().enumerate().filter(|(i, _)| !self.test[*i]);
        lines.map(|(i, line)| (i, line.as_str()))
    }
}

/// Every text file below `root`, in the order of their paths.
pub fn tree(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    collect(root, "", &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 10, "the walk found next to nothing below {}", root.display());
    found
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<Source>) {
    for name in names(folder) {
        let (path, full) = (format!("{prefix}{name}"), folder.join(&name));
        if full.is_symlink() || GENERATED.contains(&name.as_str()) {
            continue;
        }
        if full.is_dir() {
            if !name.starts_with('.') || path == ".ci" {
                collect(&full, &format!("{path}/"), found);
            }
        } else if is_text(&path) {
            let text = fs::read_to_string(&full)
                .unwrap_or_else(|fault| panic!("{path} is not readable text: {fault}"));
            found.push(Source::new(&path, &text));
        }
    }
}

fn is_text(path: &str) -> bool {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    path.starts_with(".ci/") || TEXT.contains(&extension) && !path.contains("/data/")
}

/// The names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|fault| panic!("{} cannot be listed: {fault}", folder.display()));
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Bytes of everything below a folder that is no Rust source.
pub fn data_bytes(folder: &Path) -> u64 {
    let mut bytes = 0;
    for name in names(folder) {
        let path = folder.join(&name);
        if path.is_dir() {
            bytes += data_bytes(&path);
        } else if !name.ends_with(".rs") {
            bytes += fs::metadata(&path).unwrap().len();
        }
    }
    bytes
}

fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let folders: Vec<&str> = path.split('/').collect();
    ["tests", "benches", "fuzz"].iter().any(|folder| folders.contains(folder))
        || name == "tests.rs"
        || name.ends_with("_tests.rs")
}

/// Attributes of items that only tests build.
const TEST_ONLY: &[&str] = &["#[cfg(test)]", "#[cfg(all(test", "#[cfg(loom)]"];

/// Marks test files whole, elsewhere the items that only tests build.
fn test_lines(path: &str, code: &[String]) -> Vec<bool> {
    let mut test = vec![is_test_file(path); code.len()];
    for (first, line) in code.iter().enumerate() {
        if !TEST_ONLY.iter().any(|attribute| line.contains(attribute)) {
            continue;
        }
        let column = line.find("#[cfg(").unwrap_or(0);
        let after_attribute = line[column..].find(']').map_or(line.len(), |end| column + end + 1);
        let last = item_end(code, first, after_attribute);
        test[first..=last].fill(true);
    }
    test
}

/// The line on which the item that starts after `(line, column)` ends: its closing brace, or a
/// semicolon before any brace.
fn item_end(code: &[String], line: usize, column: usize) -> usize {
    let (mut braces, mut brackets) = (0usize, 0usize);
    for (index, text) in code.iter().enumerate().skip(line) {
        let from = if index == line { column } else { 0 };
        for symbol in text.chars().skip(from) {
            match symbol {
                '{' => braces += 1,
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets = brackets.saturating_sub(1),
                '}' if braces <= 1 => return index,
                '}' => braces -= 1,
                ';' if braces == 0 && brackets == 0 => return index,
                _ => {}
            }
        }
    }
    code.len().saturating_sub(1)
}

/// Splits Rust text into code and comments, each with the other blanked out; the insides of
/// strings and characters are blank in both.
fn split(text: &str) -> (String, String) {
    let symbols: Vec<char> = text.chars().collect();
    let (mut code, mut comments) = (String::new(), String::new());
    let mut at = 0;
    while at < symbols.len() {
        let (end, kind) = token(&symbols, at);
        for (index, &symbol) in symbols[at..end].iter().enumerate() {
            let edge = index == 0 || at + index + 1 == end;
            let (in_code, in_comment) = match kind {
                Kind::Code => (symbol, ' '),
                Kind::Comment => (' ', symbol),
                Kind::Literal => (if edge { symbol } else { ' ' }, ' '),
            };
            code.push(if symbol == '\n' { '\n' } else { in_code });
            comments.push(if symbol == '\n' { '\n' } else { in_comment });
        }
        at = end;
    }
    (code, comments)
}

#[derive(Clone, Copy)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// The end of the token at `at`, and what it is.
fn token(symbols: &[char], at: usize) -> (usize, Kind) {
    let peek = |ahead: usize| symbols.get(at + ahead).copied().unwrap_or('\0');
    let in_word = at > 0 && (symbols[at - 1].is_alphanumeric() || symbols[at - 1] == '_');
    match (peek(0), peek(1)) {
        ('/', '/') => {
            let length = symbols[at..].iter().position(|&s| s == '\n');
            (length.map_or(symbols.len(), |length| at + length), Kind::Comment)
        }
        ('/', '*') => (block_comment_end(symbols, at), Kind::Comment),
        ('"', _) => (quoted_end(symbols, at, '"'), Kind::Literal),
        ('\'', '\\') => (quoted_end(symbols, at, '\''), Kind::Literal),
        ('\'', _) if peek(2) == '\'' => (at + 3, Kind::Literal),
        ('r', '"' | '#') if !in_word || matches!(symbols[at - 1], 'b' | 'c') => {
            match raw_string_end(symbols, at + 1) {
                Some(end) => (end, Kind::Literal),
                None => (at + 1, Kind::Code),
            }
        }
        _ => (at + 1, Kind::Code),
    }
}

fn block_comment_end(symbols: &[char], at: usize) -> usize {
    let (mut depth, mut here) = (0, at);
    while here + 1 < symbols.len() {
        match (symbols[here], symbols[here + 1]) {
            ('/', '*') => (depth, here) = (depth + 1, here + 2),
            ('*', '/') => (depth, here) = (depth - 1, here + 2),
            _ => here += 1,
        }
        if depth == 0 {
            return here;
        }
    }
    symbols.len()
}

fn quoted_end(symbols: &[char], at: usize, quote: char) -> usize {
    let mut here = at + 1;
    while here < symbols.len() && symbols[here] != quote {
        here += if symbols[here] == '\\' { 2 } else { 1 };
    }
    (here + 1).min(symbols.len())
}

/// The end of a raw string whose hashes, if any, begin at `at`; nothing for a raw identifier.
fn raw_string_end(symbols: &[char], at: usize) -> Option<usize> {
    let hashes = symbols[at..].iter().take_while(|&&s| s == '#').count();
    if symbols.get(at + hashes) != Some(&'"') {
        return None;
    }
    let mut here = at + hashes + 1;
    while here < symbols.len() {
        let closing = symbols[here + 1..].iter().take(hashes).filter(|&&s| s == '#').count();
        if symbols[here] == '"' && closing == hashes {
            return Some(here + 1 + hashes);
        }
        here += 1;
    }
    Some(symbols.len())
}
