//! What was measured, for people and as JSON.

use serde::Serialize;
use std::io::{self, Write};

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What it was measured on.
    pub machine: Machine,
    /// Registers alone.
    pub peak: Vec<Peak>,
    /// Matrices alone.
    pub gemm: Vec<Gemm>,
    /// Whole passes.
    pub forward: Vec<Forward>,
}

/// A machine.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// As the system names it.
    pub cpu: String,
    /// The instruction set in use.
    pub isa: &'static str,
    /// CPUs that this process may use.
    pub threads: usize,
}

/// The median speed of the loop over registers.
#[derive(Debug, Serialize)]
pub struct Peak {
    /// The type whose arithmetic it is.
    pub r#type: &'static str,
    /// How many threads ran it at once.
    pub threads: usize,
    /// Of all threads together.
    pub macs_per_s: f64,
}

/// The median speed of one matrix.
#[derive(Debug, Serialize)]
pub struct Gemm {
    /// Its type.
    pub r#type: &'static str,
    /// Outputs.
    pub rows: usize,
    /// Inputs.
    pub cols: usize,
    /// Rows of activations.
    pub tokens: usize,
    /// How many threads shared it.
    pub threads: usize,
    /// Of all threads together.
    pub macs_per_s: f64,
    /// The median share of the peak measured right before and after.
    pub of_peak: f64,
}

/// The median time of a forward pass.
#[derive(Debug, Serialize)]
pub struct Forward {
    /// The weights' types; `file` where they are a file's.
    pub r#type: String,
    /// Rows of the canvas.
    pub tokens: usize,
    /// Worker threads.
    pub threads: usize,
    /// Rows of logits.
    pub output_rows: usize,
    /// Milliseconds.
    pub ms: f64,
    /// Multiply-adds of the matrices a second.
    pub macs_per_s: f64,
}

impl Report {
    /// Writes tables for people; `subject` says whose layers they are.
    pub fn write(&self, subject: &str, out: &mut impl Write) -> io::Result<()> {
        let Machine { cpu, isa, threads } = &self.machine;
        writeln!(out, "{cpu}, {isa}, {threads} CPUs\n{subject}; medians, G = 10^9 multiply-adds")?;
        writeln!(out, "\n{:<32} {:>7} {:>9}", "registers only", "threads", "G/s")?;
        for Peak { r#type, threads, macs_per_s } in &self.peak {
            writeln!(out, "{type:<32} {threads:>7} {:>9.1}", giga(*macs_per_s))?;
        }
        let head = ["type", "rows", "cols", "tokens", "threads", "G/s", "of peak"];
        let [a, b, c, d, e, f, g] = head;
        writeln!(out, "\n{a:<8} {b:>7} {c:>7} {d:>7} {e:>7} {f:>9} {g:>9}")?;
        for Gemm { r#type, rows, cols, tokens, threads, macs_per_s, of_peak } in &self.gemm {
            let (speed, share) = (giga(*macs_per_s), 100.0 * of_peak);
            write!(out, "{type:<8} {rows:>7} {cols:>7} {tokens:>7} {threads:>7} ")?;
            writeln!(out, "{speed:>9.1} {share:>8.1}%")?;
        }
        let head = ["passes", "tokens", "threads", "outputs", "ms", "G/s"];
        let [a, b, c, d, e, f] = head;
        writeln!(out, "\n{a:<16} {b:>7} {c:>7} {d:>7} {e:>9} {f:>9}")?;
        for Forward { r#type, tokens, threads, output_rows, ms, macs_per_s } in &self.forward {
            write!(out, "{type:<16} {tokens:>7} {threads:>7} {output_rows:>7} ")?;
            writeln!(out, "{ms:>9.1} {:>9.1}", giga(*macs_per_s))?;
        }
        Ok(())
    }
}

fn giga(macs_per_s: f64) -> f64 {
    macs_per_s / 1e9
}

/// The middle of the values, or the mean of the two in the middle; NaN of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.len() % 2, sorted.get(middle)) {
        (_, None) => f64::NAN,
        (1, Some(value)) => *value,
        (_, Some(upper)) => (sorted[middle - 1] + upper) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), 3.0);
        assert_eq!(median(&[5.0]), 5.0);
        assert!(median(&[]).is_nan());
    }
}
