//! The comparison notices errors: each one planted in the oracle breaks the bound by far.

use super::features::mixed;
use super::model::{LINEAR, Spec, TestModel};
use super::oracle::{self, Slip};
use super::{ERROR_MAX, all_logits, clear_canvas, errors, largest, load};

/// Errors in what is computed.
const SLIPS: [Slip; 16] = [
    Slip::OtherRope,
    Slip::OtherTheta,
    Slip::NoRopeFactors,
    Slip::WholeHeadTurns,
    Slip::ValuesTurn,
    Slip::OtherGroups,
    Slip::Causal,
    Slip::OtherScale,
    Slip::NoResidual,
    Slip::NormsOfFirstLayer,
    Slip::NoEpsilon,
    Slip::NoOutputNorm,
    Slip::GateUpSwapped,
    Slip::Sigmoid,
    Slip::Tied,
    Slip::RowsShifted,
];

/// Errors in how activations are rounded.
const ROUNDING: [Slip; 3] = [Slip::NoRounding, Slip::CutOff, Slip::OtherBlock];

/// A model with every feature at once.
fn everything(architecture: &'static str) -> Spec {
    Spec {
        kv_heads: 2,
        key_length: Some(96),
        rope_dimensions: Some(32),
        rope_factors: true,
        biases: &LINEAR,
        ..Spec::new(architecture)
    }
}

fn check(what: &str, model: &TestModel, len: usize, slips: &[Slip]) {
    let (ids, want) = clear_canvas(model, len);
    let got = all_logits(&mut load(model, len, 2, None), &ids);
    let error = largest(&errors(&got, &want));
    println!("{what}: error {error:.1e}");
    assert!(error <= ERROR_MAX, "{what}: relative error {error}, at most {ERROR_MAX}");
    let biases = LINEAR.map(Slip::NoBias);
    for slip in slips.iter().chain(&SLIPS).chain(&biases) {
        let wrong = oracle::logits(model, &ids, 0.0, Some(*slip)).unwrap();
        let error = largest(&errors(&got, &wrong));
        println!("{what}, {slip:?}: error {error:.1e}");
        let least = 1000.0 * ERROR_MAX;
        assert!(error > least, "{what}, {slip:?}: relative error {error}, should be over {least}");
    }
}

#[test]
fn every_slip_shows() {
    for architecture in ["llada", "dream"] {
        check(architecture, &everything(architecture).build(4), 17, &[]);
        let model = Spec { types: mixed, ..everything(architecture) }.build(4);
        check(&format!("{architecture}, quantized"), &model, 5, &ROUNDING);
    }
}
