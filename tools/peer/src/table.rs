//! A report as text: a table for the terminal, and the README's.

use crate::report::{Case, ModelReport, Report, SideFacts, Summary};
use std::fmt::Write;

/// A share of CPU time below this means that something else ran.
const CPU_SHARE_MIN: f64 = 0.95;
/// What of the others' instruction sets decides their speed.
const SETS: &[&str] = &["AVX2", "AVX_VNNI", "AVX512", "AVX512_VNNI", "AMX_INT8"];
/// Characters of a commit that tell it apart.
const COMMIT_CHARS: usize = 9;

/// The table for the terminal.
pub fn text(report: &Report) -> String {
    let machine = &report.machine;
    let mut out = format!("{}, {} CPUs, load {:.2}\n", machine.cpu, machine.cpus, machine.load);
    for side in &report.sides {
        let commit = side.commit.as_deref().unwrap_or("no commit");
        _ = writeln!(out, "{} ({commit}): {}", side.name, side.isa.trim());
    }
    for model in &report.models {
        _ = writeln!(out, "\n{}", title(model));
        _ = writeln!(out, "{:>6} {:>7}  {}", "tokens", "threads", head(report));
        for case in &model.cases {
            let cells: Vec<String> = case.summary.iter().enumerate().map(cell).collect();
            _ = writeln!(out, "{:>6} {:>7}  {}", case.tokens, case.threads, cells.join("  "));
        }
        model.cases.iter().for_each(|case| warn(&mut out, report, case));
    }
    out.push_str(
        "\nms: median. x: how many times faster dllm-rt was, the median of the ratios within \
         turns, and\ntheir 10th and 90th percentile. GMAC/s: multiply-adds of the matrices, at \
         the median.\n",
    );
    out
}

fn head(report: &Report) -> String {
    let name = |(index, side): (usize, &SideFacts)| {
        format!("{:>width$}", side.name, width = if index == 0 { 23 } else { 48 })
    };
    report.sides.iter().enumerate().map(name).collect::<Vec<_>>().join("  ")
}

fn cell((index, summary): (usize, &Summary)) -> String {
    let Summary { ms, macs_per_s, ratio, .. } = summary;
    let speed = format!("{ms:>9.1} ms {:>3.0} GMAC/s", macs_per_s / 1e9);
    match index {
        0 => speed,
        _ => format!("{speed}  {:>5.2}x ({:>5.2} to {:>5.2})", ratio.median, ratio.p10, ratio.p90),
    }
}

fn warn(out: &mut String, report: &Report, case: &Case) {
    for (side, summary) in report.sides.iter().zip(&case.summary) {
        if summary.cpu_share < CPU_SHARE_MIN {
            _ = writeln!(
                out,
                "  {} tokens, {} thread(s): {} had a CPU only {:.0} % of its time",
                case.tokens,
                case.threads,
                side.name,
                summary.cpu_share * 100.0
            );
        }
    }
}

fn title(model: &ModelReport) -> String {
    format!(
        "{}: {}, {} layers of {}, vocabulary {}, {}, {:.1} million multiply-adds a token",
        model.name,
        model.arch,
        model.layers,
        model.width,
        model.vocab,
        model.types.join(" "),
        model.macs_per_token as f64 / 1e6,
    )
}

/// A section of the README: machine, programs and a table in Markdown.
pub fn markdown(report: &Report) -> String {
    let (machine, sides) = (&report.machine, &report.sides);
    let isa = sides.first().map_or("", |side| side.isa.as_str());
    let others: Vec<String> = sides.iter().skip(1).map(program).collect();
    let mut out = format!(
        "{}, {} CPUs; dllm-rt on {isa}; {}.\n\n",
        machine.cpu,
        machine.cpus,
        others.join(", ")
    );
    out.push_str("| model | tokens | threads |");
    sides.iter().for_each(|side| _ = write!(out, " {} |", side.name));
    out.push_str("\n|---|---|---|");
    out.push_str(&"---|".repeat(sides.len()));
    out.push('\n');
    for model in &report.models {
        for case in &model.cases {
            _ = write!(out, "| {} | {} | {} |", name(model), case.tokens, case.threads);
            case.summary
                .iter()
                .enumerate()
                .for_each(|(i, s)| _ = write!(out, " {} |", short(i, s)));
            out.push('\n');
        }
    }
    out
}

/// Name, commit and instruction sets of another program.
fn program(side: &SideFacts) -> String {
    let commit = side.commit.iter().map(|text| text.chars().take(COMMIT_CHARS).collect());
    let sets = instruction_sets(&side.isa);
    let sets = (!sets.is_empty()).then(|| format!("({})", sets.join(" ")));
    let words: Vec<String> = [side.name.clone()].into_iter().chain(commit).chain(sets).collect();
    words.join(" ")
}

/// Those that the others' libraries say they were built for, as `NAME = 1` between bars.
fn instruction_sets(text: &str) -> Vec<&str> {
    let names = text.split('|').filter_map(|item| item.trim().strip_suffix(" = 1"));
    let names = names.map(|name| name.rsplit(' ').next().unwrap_or(name));
    names.filter(|name| SETS.contains(name)).collect()
}

fn name(model: &ModelReport) -> String {
    format!("{}, {} layers, {}", model.name, model.layers, model.types.join(" "))
}

fn short(index: usize, summary: &Summary) -> String {
    let Summary { ms, macs_per_s, ratio, .. } = summary;
    let speed = format!("{ms:.0} ms, {:.0} GMAC/s", macs_per_s / 1e9);
    match index {
        0 => speed,
        _ => format!("{speed}, **{:.2} x** ({:.2} to {:.2})", ratio.median, ratio.p10, ratio.p90),
    }
}
