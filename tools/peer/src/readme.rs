//! The README's table, generated from the committed results.

use crate::fault::Fault;
use crate::report::{Case, FORMAT, ModelReport, Report};
use crate::table;
use std::fs;
use std::path::Path;

/// The lines around the table.
pub const BEGIN: &str = "<!-- peer:begin -->";
/// The line after it.
pub const END: &str = "<!-- peer:end -->";
/// Results of this program, as opposed to others' in the same folder.
const PREFIX: &str = "peer-";
const INTRODUCTION: &str = "\
Milliseconds for one forward pass with the logits of every position, in the median, and how many
times faster dllm-rt was: the median of the ratios within turns and their 10th to 90th percentile.
The programs took turns in one run on the same file. `dllm-peer readme` writes this from
`benches/results/peer-*.json`.";

/// The reports among `folder`'s files, in the order of their names. None if there is no folder.
///
/// # Errors
/// A file of results that is none, or whose figures do not follow from its times.
pub fn results(folder: &Path) -> Result<Vec<Report>, Fault> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.map_err(Fault::io(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(PREFIX) && name.ends_with(".json") {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Report, Fault> {
    let wrong = |what: String| Fault::Results(format!("{}: {what}", path.display()));
    let text = fs::read_to_string(path).map_err(Fault::io(path))?;
    let report: Report = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    if report.format != FORMAT {
        return Err(wrong(format!("format {}, this program reads {FORMAT}", report.format)));
    }
    for model in &report.models {
        for case in &model.cases {
            check_case(&report, model, case).map_err(&wrong)?;
        }
    }
    Ok(report)
}

fn check_case(report: &Report, model: &ModelReport, case: &Case) -> Result<(), String> {
    let Case { tokens, threads, turns, .. } = case;
    let name = format!("{}, {tokens} tokens, {threads} threads", model.name);
    if turns.is_empty() || turns.iter().any(|turn| turn.len() != report.sides.len()) {
        return Err(format!("{name}: a turn needs a pass of every program"));
    }
    let macs = model.macs_per_token as f64 * *tokens as f64;
    match Case::summarize(turns, *threads, macs) == case.summary {
        true => Ok(()),
        false => Err(format!("{name}: the summary is not that of its turns")),
    }
}

/// What stands between the markers.
pub fn block(reports: &[Report]) -> String {
    let sections: Vec<String> = reports.iter().map(table::markdown).collect();
    format!("\n{INTRODUCTION}\n\n{}\n", sections.join("\n"))
}

/// `readme` with the block of `reports`.
///
/// # Errors
/// No markers or several; results without a place for them, or a place without results.
pub fn with_block(readme: &str, reports: &[Report]) -> Result<String, Fault> {
    let wrong = |what: &str| Err(Fault::Readme(what.into()));
    let count = |marker| readme.matches(marker).count();
    match (count(BEGIN), count(END), reports.is_empty()) {
        (0, 0, true) => return Ok(readme.into()),
        (0, 0, false) => return wrong("there are results and no place for them in the README"),
        (1, 1, true) => return wrong("the README has a place for results and there are none"),
        (1, 1, false) => {}
        _ => return wrong("the README's markers are not one pair"),
    }
    let (Some(begin), Some(end)) = (readme.find(BEGIN), readme.find(END)) else {
        unreachable!("both were counted")
    };
    let begin = begin + BEGIN.len();
    match readme.get(begin..end) {
        Some(_) => {
            Ok([&readme[..begin], "\n", block(reports).trim_start_matches('\n'), &readme[end..]]
                .concat())
        }
        None => wrong("the README's end marker stands before the other"),
    }
}
