//! Files of one crate that use each other in a circle, parents and children included.
//!
//! An item is looked up where it is defined, through re-exports: a `mod.rs` that only declares and
//! re-exports is therefore in no circle, and one with definitions of its own is, where its children
//! use them and they use it. Tests do not count.

use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many re-exports may stand between a name and its definition; ends `pub use a::a`.
const STEPS_MAX: usize = 16;
/// Words before the name of what a file defines.
const DEFINES: &[&str] =
    &["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules!"];

/// Each circle as `a.rs:1 (names b::B) -> b.rs:2 (names a::A) -> a.rs`: the shortest through every
/// file that is in one.
pub fn circles(sources: &[Source]) -> Vec<String> {
    let roots = |source: &&Source| {
        ["src/lib.rs", "src/main.rs"].iter().any(|root| {
            source.path.strip_suffix(root).is_some_and(|f| f.is_empty() || f.ends_with('/'))
        })
    };
    let crates = sources.iter().filter(roots).map(|root| Crate::read(sources, root));
    crates.flat_map(|files| files.circles()).collect()
}

/// The files that a root leads to by `mod`; the root is the first.
struct Crate {
    files: Vec<File>,
}

/// What one file says.
struct File {
    path: String,
    parent: usize,
    children: BTreeMap<String, usize>,
    defines: BTreeSet<String>,
    uses: Vec<Use>,
    /// Paths outside `use`, with their lines.
    paths: Vec<(usize, Vec<String>)>,
    /// Every word outside `use`.
    words: BTreeSet<String>,
}

/// One branch of a `use`.
struct Use {
    line: usize,
    path: Vec<String>,
    /// What the file calls it; a glob has no name.
    name: Option<String>,
    /// Others may name it through this file.
    public: bool,
}

/// What a path leads to: a file as a module, or an item that a file defines.
#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    Item(usize),
}

/// From one file to another: line and path of the first place that names it.
type Edges = BTreeMap<usize, (usize, String)>;

impl Crate {
    fn read(sources: &[Source], root: &Source) -> Self {
        let mut files = Crate { files: Vec::new() };
        files.add(sources, root, 0);
        files
    }

    /// Reads a file and those that it declares; gives its index.
    fn add(&mut self, sources: &[Source], source: &Source, parent: usize) -> usize {
        let (file, declared) = File::read(source, parent);
        let index = self.files.len();
        self.files.push(file);
        let (folder, name) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
        let below = match name {
            "lib.rs" | "main.rs" | "mod.rs" => folder.to_string(),
            _ => source.path.trim_end_matches(".rs").to_string(),
        };
        for child in declared {
            let places = [format!("{below}/{child}.rs"), format!("{below}/{child}/mod.rs")];
            if let Some(found) = sources.iter().find(|source| places.contains(&source.path)) {
                let number = self.add(sources, found, index);
                self.files[index].children.insert(child, number);
            }
        }
        index
    }

    /// What `path` means in file `at`; nothing where it leads out of the crate.
    fn resolve(&self, at: usize, path: &[String], steps: usize) -> Option<Target> {
        let mut found = match path.first()?.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(at),
            "super" => Target::Module(self.files[at].parent),
            name => self.find(at, name, steps)?,
        };
        for name in &path[1..] {
            let Target::Module(module) = found else { break };
            found = match name.as_str() {
                "self" => found,
                "super" => Target::Module(self.files[module].parent),
                _ => self.find(module, name, steps).unwrap_or(Target::Item(module)),
            };
        }
        Some(found)
    }

    /// What `name` means in file `at`.
    fn find(&self, at: usize, name: &str, steps: usize) -> Option<Target> {
        let (file, steps) = (&self.files[at], steps.checked_sub(1)?);
        if let Some(child) = file.children.get(name) {
            return Some(Target::Module(*child));
        }
        if file.defines.contains(name) {
            return Some(Target::Item(at));
        }
        let named = file.uses.iter().find(|u| u.name.as_deref() == Some(name));
        if let Some(named) = named {
            return self.resolve(at, &named.path, steps);
        }
        let globs = file.uses.iter().filter(|u| u.name.is_none());
        let mut modules = globs.filter_map(|u| self.resolve(at, &u.path, steps));
        modules.find_map(|target| match target {
            Target::Module(module) if module != at => self.find(module, name, steps),
            _ => None,
        })
    }

    fn edges(&self, at: usize) -> Edges {
        let mut edges = Edges::new();
        let mut add = |line: usize, path: &[String]| {
            if let Some(Target::Item(to)) = self.resolve(at, path, STEPS_MAX)
                && to != at
            {
                edges.entry(to).or_insert((line, path.join("::")));
            }
        };
        let file = &self.files[at];
        for u in &file.uses {
            match &u.name {
                // A re-export alone uses nothing.
                Some(name) if u.public && !file.words.contains(name) => {}
                Some(_) => add(u.line, &u.path),
                None => file.words.iter().for_each(|word| {
                    let Some(Target::Module(module)) = self.resolve(at, &u.path, STEPS_MAX) else {
                        return;
                    };
                    if self.find(module, word, STEPS_MAX).is_some() {
                        add(u.line, &[&u.path[..], std::slice::from_ref(word)].concat());
                    }
                }),
            }
        }
        file.paths.iter().for_each(|(line, path)| add(*line, path));
        edges
    }

    fn circles(&self) -> Vec<String> {
        let edges: Vec<Edges> = (0..self.files.len()).map(|at| self.edges(at)).collect();
        let mut seen = BTreeSet::new();
        let mut said = Vec::new();
        for start in 0..edges.len() {
            let Some(circle) = shortest(&edges, start) else { continue };
            if seen.insert(circle.iter().copied().collect::<BTreeSet<usize>>()) {
                said.push(self.say(&edges, &circle));
            }
        }
        said
    }

    fn say(&self, edges: &[Edges], circle: &[usize]) -> String {
        let mut said = String::new();
        for (i, &at) in circle.iter().enumerate() {
            let (line, path) = &edges[at][&circle[(i + 1) % circle.len()]];
            said += &format!("{}:{line} (names {path}) -> ", self.files[at].path);
        }
        said + &self.files[circle[0]].path
    }
}

/// The shortest circle through a file, from it on.
fn shortest(edges: &[Edges], start: usize) -> Option<Vec<usize>> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for &to in edges[at].keys() {
            if to == start {
                let mut circle = vec![at];
                while let Some(&at) = before.get(&circle[circle.len() - 1]) {
                    circle.push(at);
                }
                circle.reverse();
                return Some(circle);
            }
            before.entry(to).or_insert_with(|| {
                queue.push_back(to);
                at
            });
        }
    }
    None
}

impl File {
    /// What a file says, and the modules that it declares.
    fn read(source: &Source, parent: usize) -> (Self, Vec<String>) {
        let mut file = File {
            path: source.path.clone(),
            parent,
            children: BTreeMap::new(),
            defines: BTreeSet::new(),
            uses: Vec::new(),
            paths: Vec::new(),
            words: BTreeSet::new(),
        };
        let mut declared = Vec::new();
        let tokens = tokens(source);
        let text = |at: usize| tokens.get(at).map_or("", |(_, text)| text.as_str());
        let (mut at, mut depth) = (0, 0usize);
        while at < tokens.len() {
            let before = if at == 0 { "" } else { text(at - 1) };
            match text(at) {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "use" => {
                    let public = before == "pub" || before == ")";
                    at = branches(&tokens, at + 1, &[], public, &mut file.uses);
                    continue;
                }
                "mod" if text(at + 2) == ";" => declared.push(text(at + 1).to_string()),
                keyword if DEFINES.contains(&keyword) && depth == 0 => {
                    file.defines.insert(text(at + 1).to_string());
                }
                word if is_word(word) => {
                    file.words.insert(word.to_string());
                    if text(at + 1) == "::" && before != "::" {
                        let mut path = vec![word.to_string()];
                        while text(at + 1) == "::" && is_word(text(at + 2)) {
                            at += 2;
                            path.push(text(at).to_string());
                        }
                        file.paths.push((tokens[at].0, path));
                    }
                }
                _ => {}
            }
            at += 1;
        }
        (file, declared)
    }
}

/// Reads one branch of a `use` from token `at` on; gives the token after it.
fn branches(
    tokens: &[(usize, String)],
    mut at: usize,
    above: &[String],
    public: bool,
    uses: &mut Vec<Use>,
) -> usize {
    let mut path = above.to_vec();
    while let Some((line, text)) = tokens.get(at) {
        at += 1;
        match text.as_str() {
            "::" => {}
            "{" => {
                while tokens.get(at).is_some_and(|(_, text)| text != "}") {
                    at = branches(tokens, at, &path, public, uses);
                    at += usize::from(tokens.get(at).is_some_and(|(_, text)| text == ","));
                }
                return at + 1;
            }
            "*" => {
                uses.push(Use { line: *line, path, name: None, public });
                return at;
            }
            word if is_word(word) => {
                path.push(word.to_string());
                let next = tokens.get(at).map_or("", |(_, text)| text.as_str());
                if next == "::" {
                    continue;
                }
                // `a::{self}` calls `a` by its own name.
                let mut name = path.iter().rev().find(|name| *name != "self").cloned();
                if next == "as" {
                    name = tokens.get(at + 1).map(|(_, text)| text.clone());
                    at += 2;
                }
                uses.push(Use { line: *line, path, name, public });
                return at;
            }
            _ => return at,
        }
    }
    at
}

fn is_word(text: &str) -> bool {
    text.starts_with(|symbol: char| symbol.is_alphabetic() || symbol == '_')
}

/// Words, `::` and single symbols of the code outside tests, with their lines from one.
fn tokens(source: &Source) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for (index, line) in source.product_code() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let in_word = |symbol: char| symbol.is_alphanumeric() || symbol == '_';
            let mut bytes = match first {
                _ if in_word(first) => rest.find(|s| !in_word(s)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                _ => first.len_utf8(),
            };
            bytes += usize::from(&rest[..bytes] == "macro_rules" && rest[bytes..].starts_with('!'));
            found.push((index + 1, rest[..bytes].to_string()));
            rest = rest[bytes..].trim_start();
        }
    }
    found
}
