//! Which part of the package names which: read from the paths in the code, compared with a table.

use crate::rules::occurrences;
use crate::source::{Offence, Source};

/// How the crates are called in the table of edges.
const CRATES: &[(&str, &str)] = &[
    ("dllm_rt", "lib"),
    ("dllm_arena", "arena"),
    ("dllm_cpu", "kernels"),
    ("dllm_cuda", "kernels"),
];
/// Crates below which nothing of ours lies.
const GROUND: &[(&str, &str)] = &[("arena/", "dllm_arena"), ("kernels/", "")];

/// Paths that a part may not name, outside tests.
pub fn forbidden(source: &Source, edges: &[(&str, &[&str])]) -> Vec<Offence> {
    if source.path.ends_with("Cargo.toml") {
        return forbidden_dependencies(source);
    }
    if !source.is_product() {
        return Vec::new();
    }
    let Some(part) = part(&source.path) else {
        return named_crates(source);
    };
    let Some((_, allowed)) = edges.iter().find(|(name, _)| *name == part) else {
        return vec![Offence::at(0, format!("part {part} is not in the table of edges"))];
    };
    let mut found = Vec::new();
    for (line, target) in targets(source, part, edges) {
        let first = target.split("::").next().unwrap_or(&target);
        let below = |entry: &str| target == entry || target.starts_with(&format!("{entry}::"));
        if first != part && !allowed.iter().any(|entry| below(entry)) {
            found.push(Offence::at(line, format!("{part} may not use {target}")));
        }
    }
    found
}

/// The part that a file of the root package belongs to: `src/vocab/words.rs` to `vocab`.
fn part(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("src/")?;
    Some(rest.split('/').next()?.trim_end_matches(".rs"))
}

/// `dllm-` dependencies of the crates that may have none.
fn forbidden_dependencies(source: &Source) -> Vec<Offence> {
    if !GROUND.iter().any(|(folder, _)| source.path.starts_with(folder)) {
        return Vec::new();
    }
    let ours = |line: &&String| line.starts_with("dllm-") || line.contains(".dllm-");
    let lines = source.text.iter().enumerate().filter(|(_, line)| ours(line));
    lines.map(|(i, _)| Offence::at(i, "depends on nothing of ours")).collect()
}

/// The same in the code of those crates.
fn named_crates(source: &Source) -> Vec<Offence> {
    let own = if source.path.starts_with("arena/") { "dllm_arena" } else { "dllm_c" };
    let mut found = Vec::new();
    for (index, line) in source.product_code() {
        let named = CRATES.iter().filter(|(name, _)| !occurrences(line, name).is_empty());
        let foreign = named.filter(|(name, _)| !name.starts_with(own));
        found.extend(foreign.map(|(name, _)| Offence::at(index, format!("may not use {name}"))));
    }
    found
}

/// Every path of ours that the file names, as (line, path in the table's words).
fn targets(source: &Source, own: &str, edges: &[(&str, &[&str])]) -> Vec<(usize, String)> {
    let is_part = |name: &str| edges.iter().any(|(part, _)| *part == name);
    let blank_tests = |(i, line): (usize, &String)| match source.test[i] {
        true => "\n".to_string(),
        false => format!("{line}\n"),
    };
    let code: String = source.code.iter().enumerate().map(blank_tests).collect();
    let line_of = |at: usize| code[..at].matches('\n').count();
    let mut found = Vec::new();
    for (name, word) in CRATES {
        for at in occurrences(&code, name) {
            let paths = paths_after(&code[at + name.len()..]);
            let whole = if paths.is_empty() { vec![String::new()] } else { paths };
            let named = |path: String| format!("{word}::{path}").trim_end_matches(':').to_string();
            found.extend(whole.into_iter().map(|path| (line_of(at), named(path))));
        }
    }
    for (root, is_crate) in roots(&source.path) {
        for at in occurrences(&code, &root) {
            for path in paths_after(&code[at + root.len()..]) {
                let first = path.split("::").next().unwrap_or("").to_string();
                // `crate::Name` is a public name of the library, or the binary's own.
                let binary = matches!(own, "main" | "cli" | "serve" | "profile");
                match is_part(&first) {
                    true => found.push((line_of(at), path)),
                    false if is_crate && !binary => {
                        found.push((line_of(at), format!("lib::{path}")))
                    }
                    false => {}
                }
            }
        }
    }
    found
}

/// The words that lead to the root of the crate from a file, and whether they always do.
fn roots(path: &str) -> [(String, bool); 2] {
    let depth = path.matches('/').count() - usize::from(path.ends_with("/mod.rs"));
    [("crate".to_string(), true), (vec!["super"; depth].join("::"), false)]
}

/// The paths of the tree that follows a root: `::a::{b, c::D}` gives `a::b` and `a::c::D`.
fn paths_after(text: &str) -> Vec<String> {
    let Some(rest) = text.trim_start().strip_prefix("::") else {
        return Vec::new();
    };
    tree(rest).0
}

/// The paths of one tree and the text after it.
fn tree(text: &str) -> (Vec<String>, &str) {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        let mut paths = Vec::new();
        loop {
            let before = rest.len();
            let (branch, after) = tree(rest);
            paths.extend(branch);
            rest = after.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest);
            if let Some(after) = rest.trim_start().strip_prefix('}') {
                return (paths, after);
            }
            if rest.len() == before {
                return (paths, rest); // not a tree
            }
        }
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '*'));
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    if name.is_empty() {
        return (Vec::new(), rest);
    }
    if let Some(after) = rest.trim_start().strip_prefix("::") {
        let (branches, rest) = tree(after);
        if !branches.is_empty() {
            return (branches.iter().map(|b| format!("{name}::{b}")).collect(), rest);
        }
        return (vec![name.to_string()], rest);
    }
    let renamed = rest.trim_start().strip_prefix("as ");
    let rest =
        renamed.map_or(rest, |after| after.trim_start_matches(|c: char| c != ',' && c != '}'));
    (vec![name.to_string()], rest)
}
