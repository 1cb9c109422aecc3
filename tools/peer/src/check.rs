//! Whether two programs computed the same thing: without it, one that leaves work out looks fast.

use crate::report::Agreement;

/// Root mean square of the differences, in standard deviations of the logits, above which two
/// programs are not doing the same work. Activations of 8 bits leave each of two programs up to 0.1
/// from exact arithmetic, so up to 0.14 from each other; a causal mask on one side alone makes 0.9
/// on the small models of the tests; unrelated logits are 1.4 apart.
pub const RMS_MAX: f64 = 0.3;
/// The same for the largest difference. Errors are about normal, and of the few hundred thousand
/// compared the largest is five times their root mean square.
pub const MAX_MAX: f64 = 1.6;

/// Positions to compare of a canvas of `tokens`: the ends, where a wrong mask shows, and between.
pub fn positions(tokens: usize) -> Vec<u32> {
    let mut positions = vec![0, tokens / 3, tokens / 2, tokens.saturating_sub(1)];
    positions.dedup();
    positions.into_iter().map(|position| position as u32).collect()
}

/// How far `rows` are from those of `reference`; NaN or infinite where they are not finite or not
/// of the same shape.
pub fn distance(rows: &[Vec<f32>], reference: &[Vec<f32>]) -> Agreement {
    let same_shape = rows.len() == reference.len()
        && rows.iter().zip(reference).all(|(a, b)| a.len() == b.len() && !a.is_empty());
    if !same_shape || rows.is_empty() {
        return Agreement { rms: f64::INFINITY, max: f64::INFINITY };
    }
    let (mut squares, mut max, mut count) = (0.0, 0.0_f64, 0.0);
    for (row, reference) in rows.iter().zip(reference) {
        let spread = deviation(reference);
        for (a, b) in row.iter().zip(reference) {
            let difference = (f64::from(*a) - f64::from(*b)).abs() / spread;
            squares += difference * difference;
            // A comparison with NaN would keep the number.
            max = if difference > max || difference.is_nan() { difference } else { max };
            count += 1.0;
        }
    }
    Agreement { rms: (squares / count).sqrt(), max }
}

/// Whether two programs that are this far apart did the same work.
pub fn is_close(distance: &Agreement) -> bool {
    distance.rms <= RMS_MAX && distance.max <= MAX_MAX
}

/// Standard deviation of a row.
fn deviation(row: &[f32]) -> f64 {
    let count = row.len() as f64;
    let mean = row.iter().map(|v| f64::from(*v)).sum::<f64>() / count;
    let square = |v: &f32| (f64::from(*v) - mean).powi(2);
    (row.iter().map(square).sum::<f64>() / count).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        (0..4000).map(|_| next() + next() + next()).collect()
    }

    #[test]
    fn the_unit_is_the_spread_of_the_reference() {
        let reference = vec![row(1), row(2)];
        let moved: Vec<Vec<f32>> =
            reference.iter().map(|row| row.iter().map(|v| v + 0.05).collect()).collect();
        // Three uniform values of variance 1/12 each: a standard deviation of one half.
        let found = distance(&moved, &reference);
        assert!((found.rms - 0.1).abs() < 0.005 && (found.max - 0.1).abs() < 0.005, "{found:?}");
        assert!(is_close(&found));
    }

    #[test]
    fn other_logits_are_not_close() {
        let reference = vec![row(1), row(2)];
        let found = distance(&[row(2), row(1)], &reference);
        assert!(found.rms > 1.2 && !is_close(&found), "{found:?}");
        // One row in two wrong, or one value.
        assert!(!is_close(&distance(&[row(1), row(1)], &reference)));
        let mut one = reference.clone();
        one[1][7] += 1.0;
        assert!(!is_close(&distance(&one, &reference)));
    }

    #[test]
    fn nothing_finite_is_far() {
        let reference = vec![row(1)];
        for bad in [f32::NAN, f32::INFINITY] {
            let mut rows = reference.clone();
            rows[0][3] = bad;
            assert!(!is_close(&distance(&rows, &reference)));
            assert!(!is_close(&distance(&reference, &rows)));
        }
        assert!(!is_close(&distance(&[], &[])));
        assert!(!is_close(&distance(&[vec![]], &reference)));
        assert!(!is_close(&distance(&[vec![0.0; 4]], &[vec![0.0; 4]])));
    }

    #[test]
    fn positions_include_both_ends() {
        assert_eq!(positions(148), [0, 49, 74, 147]);
        assert_eq!(positions(1), [0]);
        assert_eq!(positions(2), [0, 1]);
    }
}
