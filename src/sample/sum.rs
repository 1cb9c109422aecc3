//! Sums of many small terms that come out the same in whatever order they are added.
//!
//! Terms are rounded to multiples of 2^-62 and added as integers. Rows that hold the same logits in
//! another order therefore tie exactly, and a vector kernel may add in any order.

/// Multiples of 2^-62: a term of magnitude 1 fits an `i64`, and one of 2^-10 or more loses nothing.
const UNITS: f64 = (1_u64 << 62) as f64;

/// A sum of terms in [-1, 1], exact after each term's rounding (towards zero, by less than 2^-62).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExactSum(i128);

impl ExactSum {
    /// Adds one term; magnitudes above 2 saturate, NaN counts as 0.
    pub(super) fn add(&mut self, term: f64) {
        // The cast saturates and takes NaN to 0 by Rust's definition.
        self.0 += i128::from((term * UNITS) as i64);
    }

    /// The nearest `f64`.
    pub(super) fn value(self) -> f64 {
        self.0 as f64 / UNITS
    }
}

impl FromIterator<f64> for ExactSum {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = ExactSum::default();
        terms.into_iter().for_each(|term| sum.add(term));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_matter() {
        let terms: Vec<f64> = (1..1000).map(|i| libm::exp(-f64::from(i) * 0.037)).collect();
        let there: ExactSum = terms.iter().copied().collect();
        let back: ExactSum = terms.iter().rev().copied().collect();
        assert_eq!(there, back);
        // Closed form of the geometric series.
        let ratio = libm::exp(-0.037);
        let series = ratio * (1.0 - libm::pow(ratio, 999.0)) / (1.0 - ratio);
        assert!((there.value() - series).abs() < 1e-13, "{} {series}", there.value());
    }

    #[test]
    fn signs_and_odd_terms() {
        let sum: ExactSum = [1.0, -0.25, f64::NAN, -1.0, 1.0, 1.0].into_iter().collect();
        assert_eq!(sum.value(), 1.75);
        assert!(ExactSum::from_iter([f64::INFINITY]).value() < 2.0 + 1e-9);
    }
}
