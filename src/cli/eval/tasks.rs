//! Tasks with one right answer, as text.
//!
//! A file is a family of tasks, a line a task: a prompt, a tab and the answer, in both of which
//! `\n` is a line break, `\t` a tab and `\\` a backslash. Where the answer has holes, `«...»`
//! around what is to be filled in, the rest of it is given; neither mark can be part of an answer.

use crate::cli::args::one_line;
use crate::cli::failure::Failure;
use crate::cli::prompt::read_file;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes of a file of tasks: some hundred thousand lines, days of work for any model.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Names that a family cannot have: the total's, and none.
const RESERVED: [&str; 2] = ["all", ""];
/// Families that an error lists.
const KNOWN_SHOWN: usize = 40;

/// Tasks of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// The file's name without its ending.
    pub name: String,
    pub tasks: Vec<Task>,
}

/// A question and the one answer that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub prompt: String,
    pub answer: String,
    /// The bytes of the answer that are to be filled in; empty: all of it is to be written.
    pub holes: Vec<Range<usize>>,
}

/// The tasks of the demonstration model, of the families of these names or of all.
pub fn built_in(names: &[&str]) -> Result<Vec<Family>, Failure> {
    let all = dllm_rt::demo::TASKS.iter().map(|(name, text)| (String::from(*name), *text));
    let asked = asked(all.collect(), names)?;
    asked.into_iter().map(|(name, text)| Family::parse(&name, text, &name)).collect()
}

/// The tasks of a folder's `.txt` files, by name, of the families of these names or of all.
///
/// # Errors
/// A folder or file that cannot be read, no .txt file, names that are alike, a file that is too
/// long or not UTF-8, a line that is no task, a name that no family has.
pub fn in_folder(folder: &Path, names: &[&str]) -> Result<Vec<Family>, Failure> {
    let failed = |cause| Failure::file("read", folder, cause);
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            files.push((one_line(&stem), path));
        }
    }
    files.sort();
    if files.is_empty() {
        let message = format!("`{}` has no tasks: no file in it ends in .txt", folder.display());
        return Err(Failure::Usage(message));
    }
    if let Some(pair) = files.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let [(name, one), (_, other)] = pair else { unreachable!("windows of two") };
        let (one, other) = (one.display(), other.display());
        let message = format!("`{one}` and `{other}` are both family {name:?}: rename one");
        return Err(Failure::Beyond(message));
    }
    if let Some((name, path)) = files.iter().find(|(name, _)| RESERVED.contains(&name.as_str())) {
        let path = path.display();
        return Err(Failure::Beyond(format!(
            "`{path}`: no family can be called {name:?}: rename it"
        )));
    }
    asked(files, names)?.into_iter().map(|(name, path)| read(name, &path)).collect()
}

/// The families of these names, or all where none is named.
fn asked<T>(mut all: Vec<(String, T)>, names: &[&str]) -> Result<Vec<(String, T)>, Failure> {
    let has = |name: &&&str| all.iter().any(|(family, _)| family == **name);
    if let Some(unknown) = names.iter().find(|name| !has(name)) {
        let known: Vec<&str> =
            all.iter().take(KNOWN_SHOWN).map(|(name, _)| name.as_str()).collect();
        let more = if all.len() > KNOWN_SHOWN { " and others" } else { "" };
        let message = format!("no family `{unknown}`; there are {}{more}", known.join(", "));
        return Err(Failure::Usage(message));
    }
    all.retain(|(family, _)| names.is_empty() || names.contains(&family.as_str()));
    Ok(all)
}

fn read(name: String, path: &Path) -> Result<Family, Failure> {
    let is_file = fs::metadata(path).map_err(|cause| Failure::file("read", path, cause))?.is_file();
    if !is_file {
        // A pipe would wait for its writer.
        return Err(Failure::Beyond(format!("`{}` is no regular file", path.display())));
    }
    let text = read_file(path, FILE_BYTES_MAX)?;
    Family::parse(&name, &text, &path.display().to_string())
}

impl Family {
    /// Reads a family; `path` names its text in errors.
    ///
    /// # Errors
    /// The first line that is no task; no line at all.
    pub fn parse(name: &str, text: &str, path: &str) -> Result<Family, Failure> {
        // Some editors begin a file with a mark that is no text, and end it with an empty line.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut tasks = Vec::new();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty()) {
            let task = Task::parse(line).map_err(|why| {
                Failure::Beyond(format!("`{path}`, line {number} is no task: {why}"))
            })?;
            tasks.push(task);
        }
        match tasks.is_empty() {
            true => Err(Failure::Beyond(format!("`{path}` has no tasks: it is empty"))),
            false => Ok(Family { name: name.to_owned(), tasks }),
        }
    }
}

impl Task {
    fn parse(line: &str) -> Result<Task, &'static str> {
        let (prompt, marked) = line.split_once('\t').ok_or("it has no tab after the prompt")?;
        let prompt = unescaped(prompt)?;
        let (mut answer, mut holes) = (String::new(), Vec::new());
        let mut rest = marked;
        while let Some((given, after)) = rest.split_once('«') {
            let (hole, after) = after.split_once('»').ok_or("a « has no »")?;
            answer.push_str(&unescaped(given)?);
            let start = answer.len();
            answer.push_str(&unescaped(hole)?);
            if start == answer.len() {
                return Err("a hole is empty");
            }
            holes.push(start..answer.len());
            rest = after;
        }
        answer.push_str(&unescaped(rest)?);
        match (prompt.is_empty(), answer.is_empty()) {
            (true, _) => Err("it has no prompt"),
            (_, true) => Err("it has no answer"),
            _ if answer.contains(['«', '»']) => Err("a « or » stands alone or inside a hole"),
            _ => Ok(Task { prompt, answer, holes }),
        }
    }
}

fn unescaped(text: &str) -> Result<String, &'static str> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\t' => return Err("it has more than one tab"),
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('\\') => '\\',
                _ => return Err("a backslash stands before something else than n, t or \\"),
            },
            c => c,
        });
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_holes_found() {
        let task = Task::parse(r"Fill it.	{«ab»: «\n1»}\\").unwrap();
        assert_eq!((task.prompt.as_str(), task.answer.as_str()), ("Fill it.", "{ab: \n1}\\"));
        assert_eq!(task.holes, [1..3, 5..7]);
        assert!(Task::parse("a\tb").unwrap().holes.is_empty());
    }

    #[test]
    fn lines_that_are_no_task_are_refused() {
        for line in [
            "",
            "ab",
            "\tb",
            "a\t",
            "a\tb\tc",
            "a\t«b",
            "a\tb»",
            "a\t«»b",
            "a\t«b«c»",
            r"a\x	b",
            r"a	\",
        ] {
            assert!(Task::parse(line).is_err(), "{line}");
        }
        assert!(Family::parse("x", "", "x.txt").is_err());
        let failure = Family::parse("x", "a\tb\nc", "x.txt").unwrap_err().to_string();
        assert!(failure.contains("`x.txt`, line 2"), "{failure}");
    }

    #[test]
    fn the_built_in_tasks_are_tasks() {
        let families = built_in(&[]).unwrap();
        assert!(families.len() >= 10);
        assert!(families.iter().any(|family| !family.tasks[0].holes.is_empty()));
    }
}
