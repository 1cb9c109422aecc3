//! Every type and every feature of a model.

use super::model::{LINEAR, Spec};
use super::{ERROR_MAX, all_logits, check, clear_canvas, errors, largest, load, oracle};
use dllm_cpu::dtype::Dtype;

/// More than a token tile of the matrix kernels. Longer canvases have too many activations for
/// none of them to be near a tie.
const LEN: usize = 5;

/// For models without quantized matrices, where ties do not matter.
const LEN_FLOAT: usize = 19;

/// Biases of Qwen2, which Dream is made from.
const QKV: &[&str] = &["attn_q", "attn_k", "attn_v"];

/// A function of a matrix's name that always gives the same type.
macro_rules! always {
    ($dtype:expr) => {
        |_: &str| $dtype
    };
}

/// A type for each kind of activations in every operator that has more than one matrix.
pub fn mixed(name: &str) -> Dtype {
    match name {
        "token_embd" => Dtype::Q2_K,
        "output" => Dtype::BF16,
        "blk.0.attn_q" => Dtype::Q4_0,
        "blk.0.attn_k" => Dtype::Q6_K,
        "blk.0.attn_v" => Dtype::F16,
        "blk.0.attn_output" => Dtype::Q5_0,
        "blk.0.ffn_gate" => Dtype::Q8_0,
        "blk.0.ffn_up" => Dtype::Q4_K,
        "blk.0.ffn_down" => Dtype::IQ4_XS,
        "blk.1.attn_q" => Dtype::F32,
        "blk.1.attn_k" => Dtype::IQ4_NL,
        "blk.1.attn_v" => Dtype::Q5_K,
        "blk.1.attn_output" => Dtype::F16,
        "blk.1.ffn_gate" => Dtype::Q3_K,
        "blk.1.ffn_up" => Dtype::F32,
        "blk.1.ffn_down" => Dtype::Q5_1,
        _ => panic!("no matrix of the model is called {name}"),
    }
}

#[test]
fn every_type() {
    let types: [fn(&str) -> Dtype; Dtype::ALL.len()] = [
        always!(Dtype::F32),
        always!(Dtype::F16),
        always!(Dtype::BF16),
        always!(Dtype::Q4_0),
        always!(Dtype::Q4_1),
        always!(Dtype::Q5_0),
        always!(Dtype::Q5_1),
        always!(Dtype::Q8_0),
        always!(Dtype::Q2_K),
        always!(Dtype::Q3_K),
        always!(Dtype::Q4_K),
        always!(Dtype::Q5_K),
        always!(Dtype::Q6_K),
        always!(Dtype::IQ4_NL),
        always!(Dtype::IQ4_XS),
    ];
    for (types, dtype) in types.into_iter().zip(Dtype::ALL) {
        assert_eq!(types(""), dtype);
        let len = if dtype.is_float() { LEN_FLOAT } else { LEN };
        check(dtype.name(), Spec { types, ..Spec::new("llada") }, len);
    }
}

#[test]
fn several_types_in_a_layer() {
    for architecture in ["llada", "dream"] {
        check(architecture, Spec { types: mixed, ..Spec::new(architecture) }, LEN);
    }
}

#[test]
fn output_tied_to_the_embedding() {
    for types in [always!(Dtype::Q4_K) as fn(&str) -> Dtype, always!(Dtype::Q8_0)] {
        check(types("").name(), Spec { types, tied: true, ..Spec::new("llada") }, LEN);
    }
    let types = always!(Dtype::F16);
    check("F16", Spec { types, tied: true, ..Spec::new("dream") }, LEN_FLOAT);
}

#[test]
fn grouped_heads() {
    for architecture in ["llada", "dream"] {
        for kv_heads in [1, 2, 4] {
            let what = format!("{architecture}, 4 heads of {kv_heads}");
            let spec = Spec { kv_heads, ..Spec::new(architecture) };
            check(&what, Spec { biases: QKV, ..spec.clone() }, LEN_FLOAT);
            check(&what, Spec { types: always!(Dtype::Q4_K), ..spec }, LEN);
        }
    }
}

#[test]
fn biases() {
    for architecture in ["llada", "dream"] {
        for biases in [QKV, &LINEAR] {
            let spec = Spec { biases, ..Spec::new(architecture) };
            check(architecture, spec.clone(), LEN_FLOAT);
            check(architecture, Spec { types: mixed, ..spec.clone() }, LEN);
            for vectors in [Dtype::F16, Dtype::BF16] {
                check(vectors.name(), Spec { vectors, ..spec.clone() }, LEN_FLOAT);
            }
        }
    }
}

#[test]
fn rotary_positions() {
    for architecture in ["llada", "dream"] {
        for rope_dimensions in [None, Some(2), Some(24), Some(64)] {
            for rope_factors in [false, true] {
                let what = format!("{architecture}, {rope_dimensions:?}, {rope_factors}");
                let spec = Spec { rope_dimensions, rope_factors, ..Spec::new(architecture) };
                check(&what, spec, LEN_FLOAT);
            }
        }
    }
}

#[test]
fn heads_of_any_width() {
    let base = Spec::new("dream");
    for (heads, kv_heads, key_length) in [(4, 2, 96), (3, 1, 8), (5, 5, 24), (2, 1, 256)] {
        let spec = Spec { heads, kv_heads, key_length: Some(key_length), ..base.clone() };
        check(&format!("{heads} heads of {key_length}"), spec, LEN_FLOAT);
    }
    // Rows of the attention's output that are no whole number of 256, and one that is two.
    for (heads, key_length) in [(3, 32), (4, 96)] {
        let spec = Spec { heads, kv_heads: 1, key_length: Some(key_length), ..base.clone() };
        check("Q5_0", Spec { types: always!(Dtype::Q5_0), ..spec }, LEN);
    }
    let spec = Spec { kv_heads: 2, key_length: Some(128), ..base };
    check("Q6_K", Spec { types: always!(Dtype::Q6_K), ..spec }, LEN);
}

#[test]
fn sizes_that_fill_no_panel_and_no_super_block() {
    for vocab in [1, 15, 83, 97] {
        let spec = Spec { vocab, tied: vocab == 83, biases: &LINEAR, ..Spec::new("llada") };
        check(&format!("{vocab} tokens"), Spec { types: always!(Dtype::Q8_0), ..spec }, LEN);
    }
    for (width, ff) in [(160, 288), (32, 32), (288, 544)] {
        let what = format!("{width} wide, {ff} within");
        let spec = Spec { width, ff, heads: 4, key_length: Some(32), ..Spec::new("dream") };
        check(&what, Spec { types: always!(Dtype::Q5_1), ..spec.clone() }, LEN);
        check(&what, Spec { types: always!(Dtype::IQ4_NL), ..spec }, LEN);
    }
    let spec = Spec { width: 48, ff: 80, heads: 2, kv_heads: 2, ..Spec::new("llada") };
    check("48 wide, 80 within", spec, LEN_FLOAT);
}

/// One engine for all lengths, longest in the middle, so that shorter canvases find the leavings
/// of longer ones.
#[test]
fn canvases_of_any_length() {
    let lens = [33, 1, 65, 3, 17, 16, 32];
    let spec = Spec { kv_heads: 2, biases: QKV, ..Spec::new("dream") };
    let model = spec.clone().build(2);
    let mut engine = load(&model, 65, 2, None);
    for len in lens {
        let (ids, want) = clear_canvas(&model, len);
        let error = largest(&errors(&all_logits(&mut engine, &ids), &want));
        assert!(error <= ERROR_MAX, "F32, {len} tokens: error {error}, at most {ERROR_MAX}");
    }
}

/// A long canvas has activations so near to a tie that the engine rounds them the other way, and
/// what follows is rounded otherwise, too: the error is that of rounding, in another draw, so at
/// most sqrt(2) times as large.
#[test]
fn long_canvases_of_quantized_models() {
    for types in [mixed as fn(&str) -> Dtype, always!(Dtype::Q4_K), always!(Dtype::Q8_0)] {
        let spec = Spec { kv_heads: 2, types, ..Spec::new("dream") };
        let model = spec.build(3);
        let mut engine = load(&model, 65, 2, None);
        for len in [65, 17, 33] {
            let ids = model.canvas(len, 0);
            let judge = |slip| oracle::logits(&model, &ids, 0.0, slip).unwrap().concat();
            let (want, unrounded) = (judge(None), judge(Some(oracle::Slip::NoRounding)));
            let got = [all_logits(&mut engine, &ids).concat()];
            let error = errors(&got, &[want])[0];
            let rounding = errors(&got, &[unrounded])[0];
            println!("{len}: error {error:.1e}, {rounding:.1e} from unrounded");
            assert!(rounding < 0.05, "{len} tokens: {rounding} from unrounded activations");
            assert!(error < 1.5 * rounding, "{len} tokens: error {error}, rounding {rounding}");
        }
    }
}
