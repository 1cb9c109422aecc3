//! A report as text: a table for the terminal, and the one of the page of results.

use crate::report::{Case, ModelReport, Report, SideFacts, Summary};
use dllm_bench::Error;
use std::fmt::Write;

/// A share of CPU time below this means that something else ran.
const CPU_SHARE_MIN: f64 = 0.95;
/// What of the others' instruction sets decides their speed.
const SETS: &[&str] = &["AVX2", "AVX_VNNI", "AVX512", "AVX512_VNNI", "AMX_INT8"];
/// Characters of a commit that tell it apart.
const COMMIT_CHARS: usize = 9;
const INTRODUCTION: &str = "\
Milliseconds for one forward pass with the logits of every position, in the median, and how many
times faster dllm-rt was: the median of the ratios within turns and their 10th to 90th percentile.
The programs took turns in one run on the same file.";

/// The tables for the terminal: those of the page, with what the models are, and warnings.
pub fn text(report: &Report) -> String {
    let mut out = format!("load {:.2}; {INTRODUCTION}\n\n", report.machine.load);
    report.models.iter().for_each(|model| _ = writeln!(out, "{}", title(model)));
    _ = write!(out, "\n{}", markdown(report));
    for Case { tokens, threads, summary, .. } in report.models.iter().flat_map(|m| &m.cases) {
        let shares = report.sides.iter().zip(summary.iter().map(|summary| summary.cpu_share));
        for (side, share) in shares.filter(|(_, share)| *share < CPU_SHARE_MIN) {
            let (name, percent) = (&side.name, share * 100.0);
            let what = format!("{name} had a CPU only {percent:.0} % of its time");
            _ = writeln!(out, "  {tokens} tokens, {threads} thread(s): {what}");
        }
    }
    out
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

/// The name of the block of [`block`] in the page of results.
pub const BLOCK: &str = "peer";

/// What stands between the markers.
pub fn block(reports: &[Report]) -> Result<String, Error> {
    if reports.is_empty() {
        return Err(Error::Record("there is a place for results and there are none".into()));
    }
    let sections: Vec<String> = reports.iter().map(markdown).collect();
    let origin = "`dllm-peer tables` writes this from `peer-*.json`.";
    Ok(format!("{INTRODUCTION}\n{origin}\n\n{}\n", sections.join("\n")))
}

/// A section of the page: machine, programs and a table in Markdown.
fn markdown(report: &Report) -> String {
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
            let (name, types) = (&model.name, model.types.join(" "));
            _ = write!(out, "| {name}, {} layers, {types} |", model.layers);
            _ = write!(out, " {} | {} |", case.tokens, case.threads);
            let cells = case.summary.iter().enumerate();
            cells.for_each(|(side, summary)| _ = write!(out, " {} |", cell(side, summary)));
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

fn cell(side: usize, summary: &Summary) -> String {
    let Summary { ms, macs_per_s, ratio, .. } = summary;
    let digits = if *ms < 10.0 { 2 } else { 0 };
    let speed = format!("{ms:.digits$} ms, {:.0} GMAC/s", macs_per_s / 1e9);
    match side {
        0 => speed,
        _ => format!("{speed}, **{:.2} x** ({:.2} to {:.2})", ratio.median, ratio.p10, ratio.p90),
    }
}
