//! Comparison bit for bit, with coordinates and both values where it fails.

use dllm_cpu::Kernels;
use std::fmt::Debug;

/// The kernels that every other one must equal.
pub fn scalar() -> Kernels {
    Kernels::by_name("scalar").unwrap()
}

/// Every kernel of this CPU but the scalar one.
pub fn others() -> impl Iterator<Item = Kernels> {
    Kernels::all().filter(|kernels| kernels.name() != "scalar")
}

/// Asserts that `f` of every kernel is, bit for bit, `f` of the scalar one: rows of `width`.
pub fn check_all(what: &str, width: usize, f: impl Fn(Kernels) -> Vec<f32>) {
    let want = f(scalar());
    for kernels in others() {
        assert_same(what, kernels, &f(kernels), &want, width);
    }
}

/// Asserts that every kernel gives the same list of bits as the scalar one.
pub fn check_lists<T: Debug + PartialEq>(what: &str, f: impl Fn(Kernels) -> Vec<T>) {
    let want = f(scalar());
    for kernels in others() {
        for (i, (got, want)) in f(kernels).iter().zip(&want).enumerate() {
            assert_eq!(got, want, "{}: {what}, number {i}", kernels.name());
        }
    }
}

/// [`assert_bits`] of what a kernel gave.
pub fn assert_same(what: &str, kernels: Kernels, got: &[f32], want: &[f32], width: usize) {
    assert_bits(&format!("{what}, {}", kernels.name()), got, want, width);
}

/// Asserts that two matrices of `width` columns have the same bits (one NaN is not another).
pub fn assert_bits(what: &str, got: &[f32], want: &[f32], width: usize) {
    assert_eq!(got.len(), want.len(), "{what}: lengths");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!(
            got.to_bits() == want.to_bits(),
            "{what}, row {} column {}: {got:e} ({:#010x}) instead of {want:e} ({:#010x})",
            i / width,
            i % width,
            got.to_bits(),
            want.to_bits(),
        );
    }
}

/// Asserts that `got` is within `bound` of `want`; false for NaN.
pub fn assert_near(what: &str, at: [usize; 2], got: f32, want: f64, bound: f64) {
    let error = (f64::from(got) - want).abs();
    assert!(
        error <= bound,
        "{what}, row {} column {}: {got:e} ({:#010x}) instead of {want:e}: off by {error:e}, bound \
         {bound:e}",
        at[0],
        at[1],
        got.to_bits(),
    );
}

/// The unit roundoff of f32: rounding changes a value by at most this times the value.
pub const UNIT: f64 = 1.0 / (1u64 << 24) as f64;

/// The bound on the relative change by `n` roundings, `(1 + UNIT)^n - 1` (Higham, "Accuracy and
/// Stability of Numerical Algorithms", 2002, lemma 3.1).
pub fn roundings(n: usize) -> f64 {
    let product = n as f64 * UNIT;
    product / (1.0 - product)
}
