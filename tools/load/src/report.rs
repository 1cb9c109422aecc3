//! What was measured, as a table and as JSON.

use serde::Serialize;
use std::fmt;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    pub model: String,
    pub file_bytes: u64,
    pub threads: usize,
    pub rows: usize,
    pub reps: usize,
    pub series: Vec<Series>,
    pub memory: Vec<Memory>,
}

/// The turns of one thing.
#[derive(Debug, Serialize)]
pub struct Series {
    pub what: &'static str,
    pub huge_pages: bool,
    pub seconds: Vec<f64>,
    pub median_s: f64,
    /// The median over rounds of the time over that of the copy in the same round, to pages of the
    /// same size.
    pub over_copy: f64,
}

/// Memory of one way of loading.
#[derive(Debug, Serialize)]
pub struct Memory {
    pub what: &'static str,
    pub huge_pages: bool,
    pub is_from_packed: bool,
    pub is_locked: bool,
    /// Bytes of the arena in huge pages, where they were asked for.
    pub huge_bytes: Option<usize>,
    pub arena_bytes: usize,
    pub weight_bytes: usize,
    /// Largest resident size of the process during the load.
    pub peak_bytes: u64,
    /// Resident size after a forward pass.
    pub resident_bytes: u64,
    pub peak_over_file: f64,
    pub resident_over_file: f64,
    pub warnings: Vec<String>,
}

impl Series {
    /// The series of `seconds`, beside those of the copy.
    pub fn new(what: &'static str, huge_pages: bool, seconds: &[f64], copy: &[f64]) -> Series {
        let ratios: Vec<f64> = seconds.iter().zip(copy).map(|(own, copy)| own / copy).collect();
        Series {
            what,
            huge_pages,
            seconds: seconds.to_vec(),
            median_s: median(seconds),
            over_copy: median(&ratios),
        }
    }
}

/// The middle value; of an even number, the mean of the two in the middle.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        None => f64::NAN,
        Some(upper) if sorted.len() % 2 == 1 => *upper,
        Some(upper) => (sorted[middle - 1] + upper) / 2.0,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gb = |bytes: u64| bytes as f64 / 1e9;
        writeln!(
            f,
            "{}: {:.2} GB, {} threads, canvas {}, {} rounds",
            self.model,
            gb(self.file_bytes),
            self.threads,
            self.rows,
            self.reps
        )?;
        writeln!(f, "{:<34}{:>10}{:>10}{:>12}", "", "seconds", "GB/s", "over copy")?;
        for series in &self.series {
            let rate = gb(self.file_bytes) / series.median_s;
            let name = named(series.what, series.huge_pages);
            let (median, over) = (series.median_s, series.over_copy);
            writeln!(f, "{name:<34}{median:>10.3}{rate:>10.2}{over:>12.2}")?;
        }
        writeln!(
            f,
            "{:<34}{:>10}{:>10}{:>12}",
            "memory over the file", "arena", "peak", "after step"
        )?;
        for memory in &self.memory {
            let arena = memory.arena_bytes as f64 / self.file_bytes as f64;
            let name = named(memory.what, memory.huge_pages);
            let (peak, resident) = (memory.peak_over_file, memory.resident_over_file);
            writeln!(f, "{name:<34}{arena:>10.3}{peak:>10.3}{resident:>12.3}")?;
            if let Some(huge) = memory.huge_bytes {
                writeln!(f, "  {:.2} GB of the arena in huge pages", huge as f64 / 1e9)?;
            }
            for warning in &memory.warnings {
                writeln!(f, "  warning: {warning}")?;
            }
        }
        Ok(())
    }
}

fn named(what: &str, huge_pages: bool) -> String {
    if huge_pages { format!("{what}, huge pages") } else { what.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_rounds() {
        let series = Series::new("load", false, &[2.0, 30.0, 8.0], &[1.0, 10.0, 2.0]);
        assert_eq!((series.median_s, series.over_copy), (8.0, 3.0));
        assert_eq!(Series::new("load", false, &[2.0, 4.0], &[1.0, 1.0]).over_copy, 3.0);
    }
}
