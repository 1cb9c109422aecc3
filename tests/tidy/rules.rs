//! The rules, each a pure function over one file.

use crate::source::{Offence, Source};

/// A name that may not be used outside tests, and where.
struct Ban {
    name: &'static str,
    /// Path prefixes.
    below: &'static [&'static str],
    why: &'static str,
}

const EVERYWHERE: &[&str] = &["src/", "arena/src/", "kernels/"];
const STEP_PATH: &[&str] = &["src/backend", "src/denoise", "src/sample"];
const ORDERED: &[&str] = &["src/backend", "src/denoise", "src/sample", "kernels/"];

const CHANNEL: &str = "channels allocate; workers meet at the pool's counter and barrier";
const HALF: &str = "half floats are converted at load";
const ORDER: &str = "iteration order differs between runs; use a Vec or a BTreeMap";
const MATH: &str = "differs between platforms; use libm or the kernels' own polynomials";

const fn ban(name: &'static str, below: &'static [&'static str], why: &'static str) -> Ban {
    Ban { name, below, why }
}

const fn math(name: &'static str) -> Ban {
    ban(name, EVERYWHERE, MATH)
}

#[rustfmt::skip]
const BANS: &[Ban] = &[
    ban("crossbeam_channel", EVERYWHERE, CHANNEL),
    ban("crossbeam::channel", EVERYWHERE, CHANNEL),
    ban("mpsc", &["src/backend/cpu/ops", "src/denoise", "src/sample", "kernels/"], CHANNEL),
    ban(".to_f32()", STEP_PATH, HALF),
    ban("f16::from_bits", STEP_PATH, HALF),
    ban("HashMap", ORDERED, ORDER),
    ban("HashSet", ORDERED, ORDER),
    ban("static mut", EVERYWHERE, "use an atomic or a OnceLock"),
    ban("unreachable!()", EVERYWHERE, "the message says why it cannot be reached"),
    math(".exp("), math(".exp2("), math(".exp_m1("), math(".ln("), math(".ln_1p("), math(".log("),
    math(".log2("), math(".log10("), math(".powf("), math(".powi("), math(".sin("), math(".cos("),
    math(".tan("), math(".sin_cos("), math(".sinh("), math(".cosh("), math(".tanh("),
    math(".atan("), math(".atan2("), math(".cbrt("), math(".hypot("),
    math("f32::exp"), math("f32::ln"), math("f32::powf"), math("f32::sin"), math("f32::cos"),
    math("f32::tanh"), math("f64::exp"), math("f64::ln"), math("f64::powf"), math("f64::sin"),
    math("f64::cos"), math("f64::tanh"), math("f64::powi"), math("f32::powi"),
];

/// Marks of unfinished work in prose, put together here so that this file holds none.
const LEFT_IN_PROSE: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
const LEFT_IN_CODE: &[&str] = &[concat!("#[ig", "nore")];

/// Places that exist on one machine only, and hosts that a build must not name.
const PLACES: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/t", "mp/"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("python", "hosted"),
    concat!("debian", ".org"),
    concat!("rust-lang", ".org"),
    concat!("npmjs", ".org"),
];

/// Lines longer than `max` columns; prose in Markdown is not wrapped by anyone's rule.
pub fn long_lines(source: &Source, max: usize) -> Vec<Offence> {
    if source.path.ends_with(".md") {
        return Vec::new();
    }
    let lengths = source.text.iter().map(|line| line.chars().count()).enumerate();
    let long = lengths.filter(|(_, columns)| *columns > max);
    long.map(|(i, columns)| Offence::at(i, format!("{columns} columns, at most {max}"))).collect()
}

/// Files of more than `max` lines.
pub fn long_file(source: &Source, max: usize) -> Vec<Offence> {
    let lines = source.text.len();
    if source.path.ends_with(".md") || lines <= max {
        return Vec::new();
    }
    vec![Offence::at(max, format!("{lines} lines in the file, at most {max}"))]
}

/// Unfinished work: marks in comments and prose, and attributes that stand for it.
pub fn leftovers(source: &Source) -> Vec<Offence> {
    let mut found = Vec::new();
    for (index, code) in source.code.iter().enumerate() {
        let prose = if source.is_rust() { &source.comments[index] } else { &source.text[index] };
        let marks = LEFT_IN_PROSE.iter().filter(|mark| contains(prose, mark));
        let calls = LEFT_IN_CODE.iter().filter(|name| source.is_rust() && contains(code, name));
        found.extend(
            marks.chain(calls).map(|name| Offence::at(index, format!("left over: {name}"))),
        );
    }
    found
}

/// Names of the table above, outside tests.
pub fn banned_names(source: &Source) -> Vec<Offence> {
    let below = |folders: &[&str]| folders.iter().any(|folder| source.path.starts_with(folder));
    let mut found = Vec::new();
    for ban in BANS.iter().filter(|ban| below(ban.below)) {
        if !source.is_product() {
            continue;
        }
        let lines = source.product_code().filter(|(_, line)| contains(line, ban.name));
        found.extend(lines.map(|(i, _)| Offence::at(i, format!("{}: {}", ban.name, ban.why))));
    }
    found
}

/// Unsafe code outside the folders that may hold it.
pub fn stray_unsafe(source: &Source, folders: &[&str]) -> Vec<Offence> {
    if !source.is_rust() || folders.iter().any(|folder| source.path.starts_with(folder)) {
        return Vec::new();
    }
    let lines = source.code.iter().enumerate().filter(|(_, line)| contains(line, "unsafe"));
    lines
        .map(|(i, _)| Offence::at(i, format!("unsafe is for {} only", folders.join(", "))))
        .collect()
}

/// Files that do not open with a line that says what they are.
pub fn missing_opening(source: &Source) -> Vec<Offence> {
    let extension = source.path.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_shebang = |line: &&String| line.starts_with("#!/");
    let first = source.text.iter().find(|line| !is_shebang(line)).map_or("", String::as_str);
    let (opening, kind): (&[&str], _) = match extension {
        "rs" => (&["//! "], "a `//!` line"),
        "py" => (&["\"\"\""], "a docstring"),
        "c" | "cpp" | "h" | "cu" | "cuh" => (&["// ", "/* "], "a comment"),
        "md" => (&["# ", "<"], "a heading"),
        "sh" | "" | "ci/run" => (&["# "], "a comment"),
        _ => return Vec::new(),
    };
    if opening.iter().any(|start| first.starts_with(start)) {
        return Vec::new();
    }
    vec![Offence::at(0, format!("does not open with {kind} that says what it is"))]
}

/// Absolute paths and registries' hosts, in strings and prose too.
pub fn places(source: &Source) -> Vec<Offence> {
    let mut found = Vec::new();
    for (index, line) in source.text.iter().enumerate() {
        let names = PLACES.iter().filter(|place| line.contains(**place));
        found.extend(names.map(|place| Offence::at(index, format!("names {place}"))));
    }
    found
}

/// What is missing from or strange in the names of the top level; dotfiles are free.
pub fn top_level(names: &[String], required: &[&str], also: &[&str]) -> Vec<String> {
    let missing = required.iter().filter(|name| !names.iter().any(|other| other == *name));
    let strange = names.iter().filter(|name| {
        !name.starts_with('.')
            && !required.contains(&name.as_str())
            && !also.contains(&name.as_str())
    });
    let missing = missing.map(|name| format!("{name} is missing from the top level"));
    missing.chain(strange.map(|name| format!("{name} has no place on the top level"))).collect()
}

fn contains(line: &str, name: &str) -> bool {
    !occurrences(line, name).is_empty()
}

/// Where `name` stands in `line` as a whole word, as far as its ends are letters.
pub fn occurrences(line: &str, name: &str) -> Vec<usize> {
    let is_word = |symbol: char| symbol.is_alphanumeric() || symbol == '_';
    let (opens, closes) = (name.starts_with(is_word), name.ends_with(is_word));
    let found = line.match_indices(name).map(|(at, _)| at);
    let whole = found.filter(|&at| {
        let before = line[..at].chars().next_back().is_some_and(is_word);
        let after = line[at + name.len()..].chars().next().is_some_and(is_word);
        !(opens && before || closes && after)
    });
    whole.collect()
}
