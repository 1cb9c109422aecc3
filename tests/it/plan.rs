//! Plans: sizes follow from configuration and limits, and every plan can be sealed and run.

use crate::common::models;
use dllm_arena::{Lock, Region};
use dllm_cpu::dtype::Dtype;
use dllm_rt::backend::cpu::{Count, Plan, WeightKind};
use dllm_rt::backend::{ROWS_MAX, SEQUENCES_MAX, Split};
use dllm_rt::model::{
    Architecture, Config, Layer, Linear, Matrix, Network, RopeConfig, RopeStyle, Vector,
};
use dllm_rt::{Engine, Limits, Options};
use proptest::prelude::*;

/// LLaDA-8B's published shapes, as its Q4_K_M files quantize them.
fn llada_8b() -> Network {
    let config = Config {
        architecture: Architecture::Llada,
        layers: 32,
        width: 4096,
        heads: 32,
        kv_heads: 32,
        head_width: 128,
        ff_width: 12288,
        vocab: 126_464,
        context: 4096,
        epsilon: 1e-5,
        rope: RopeConfig { style: RopeStyle::Norm, theta: 5e5, dimensions: 128 },
        shift_logits: false,
        warnings: Vec::new(),
    };
    model(config, |_, layer| [Dtype::Q4_K, if layer < 16 { Dtype::Q6_K } else { Dtype::Q4_K }])
}

/// A model of a configuration; `types` gives a layer's common type and that of v and down.
fn model(config: Config, types: impl Fn(&Config, usize) -> [Dtype; 2]) -> Network {
    let matrix = |dtype, rows, cols| Matrix { tensor: 0, dtype, rows, cols };
    let linear = |dtype, rows, cols| Linear { matrix: matrix(dtype, rows, cols), bias: None };
    let vector = |len| Vector { tensor: 0, dtype: Dtype::F32, len };
    let (width, ff) = (config.width, config.ff_width);
    let (q, kv) = (config.heads * config.head_width, config.kv_heads * config.head_width);
    let layer = |i| {
        let [common, other] = types(&config, i);
        Layer {
            attn_norm: vector(width),
            q: linear(common, q, width),
            k: linear(common, kv, width),
            v: linear(other, kv, width),
            o: linear(common, width, q),
            ffn_norm: vector(width),
            gate: linear(common, ff, width),
            up: linear(common, ff, width),
            down: linear(other, width, ff),
        }
    };
    let [common, other] = types(&config, 0);
    Network {
        embedding: matrix(common, config.vocab, width),
        output_norm: vector(width),
        output: linear(other, config.vocab, width),
        rope_factors: None,
        layers: (0..config.layers).map(layer).collect(),
        config,
    }
}

#[test]
fn an_8b_model_stays_within_its_memory() {
    let model = llada_8b();
    let limits = Limits { logits: true, ..Limits::new(512, 32, 8) };
    let plan = Plan::new(&model, limits).unwrap();
    let file_bytes: usize = plan.weights.iter().map(|w| file_bytes(&w.kind)).sum();
    let ratio = plan.total_bytes as f64 / file_bytes as f64;
    assert!(ratio < 1.25, "{} bytes for a file of {file_bytes}: {ratio}", plan.total_bytes);
    let gemms = plan.ops.iter().filter(|op| op.split == Split::Gemm).count();
    assert_eq!(gemms, 32 * 4, "qkv, output, gate with up, down: one operator each");
}

fn file_bytes(kind: &WeightKind) -> usize {
    match kind {
        // Counted with the embedding, from which this plan's output is a tensor of its own.
        WeightKind::Embedding(m) | WeightKind::Panels(m) => {
            m.dtype.row_bytes(m.cols).unwrap() * m.rows
        }
        WeightKind::Vector(v) => 4 * v.len,
        WeightKind::RopeCos | WeightKind::RopeSin => 0,
    }
}

#[test]
fn limits_out_of_range_are_named() {
    let model = llada_8b();
    let good = Limits { logits: true, ..Limits::new(64, 8, 2) };
    for (limits, name) in [
        (Limits { rows: 0, ..good }, "rows"),
        (Limits { rows: ROWS_MAX + 1, ..good }, "rows"),
        (Limits { output_rows: 0, ..good }, "output_rows"),
        (Limits { sequences: 0, ..good }, "sequences"),
        (Limits { sequences: SEQUENCES_MAX + 1, ..good }, "sequences"),
        (Limits { threads: 0, ..good }, "threads"),
        (Limits { threads: usize::MAX, ..good }, "threads"),
    ] {
        let fault = Plan::new(&model, limits).unwrap_err().to_string();
        assert!(fault.contains(name), "{fault}");
    }
}

#[test]
fn only_the_last_layer_narrows_to_the_wanted_rows() {
    let plan =
        Plan::new(&llada_8b(), Limits { logits: true, guidance: true, ..Limits::new(64, 8, 2) });
    let plan = plan.unwrap();
    let gathers: Vec<_> =
        plan.ops.iter().filter(|op| op.name == "gather").map(|op| op.layer).collect();
    assert_eq!(gathers, [Some(31)]);
    let first = plan.ops.iter().position(|op| op.count == Count::Output).unwrap();
    assert!(plan.ops[first..].iter().all(|op| op.count == Count::Output));
    assert_eq!((plan.ops[first].name, plan.ops[first].layer), ("attend", Some(31)));
    let output_rows = plan.buffers.iter().position(|b| b.name == "output_rows").unwrap();
    assert!(plan.ops[first].access.reads.contains(&output_rows));
}

#[test]
fn the_guides_logits_outlive_the_second_pass() {
    let limits = Limits { logits: true, guidance: true, ..Limits::new(512, 32, 2) };
    let plan = Plan::new(&llada_8b(), limits).unwrap();
    let guide = plan.buffers.iter().find(|b| b.name == "logits.guide").unwrap();
    for buffer in plan.buffers.iter().filter(|b| b.name != guide.name) {
        assert!(!buffer.span().overlaps(&guide.span()), "{} lies over the guide", buffer.name);
    }
}

#[test]
fn a_canvas_of_any_length_runs_and_longer_ones_are_refused() {
    let file = models::open(models::DREAM);
    for rows in [1, 2, 15, 16, 17, 31, 32, 33, 63] {
        let limits = Limits { logits: true, ..Limits::new(rows, rows, 2) };
        let options = Options { lock: Lock::Off, ..Options::default() };
        let mut engine = Engine::load(&file, limits, &options, &mut |_, _| ()).unwrap();
        let ids: Vec<u32> = (0..rows as u32).collect();
        let all: Vec<u32> = (0..rows as u32).collect();
        let logits = engine.logits(&ids, &all).unwrap();
        assert!(logits.rows().flatten().all(|x| x.is_finite()));
        let longer: Vec<u32> = (0..=rows as u32).collect();
        let error = engine.logits(&longer, &all).unwrap_err().to_string();
        assert!(error.contains(&format!("{} tokens", rows + 1)), "{error}");
        assert!(engine.logits(&ids, &[rows as u32]).is_err());
        assert!(engine.logits(&[u32::MAX], &[0]).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The arena's own check accepts every plan: nothing that an operator writes meets anything
    /// that another worker touches.
    #[test]
    fn every_plan_seals(
        rows in 1usize..70,
        wanted in 1usize..70,
        threads in 1usize..6,
        logits: bool,
        guidance: bool,
        kv_cache: bool,
        sequences in 1usize..5,
        head_width in prop::sample::select(vec![8usize, 16, 32]),
        kv_heads in 1usize..4,
        group in 1usize..4,
        ff in 1usize..5,
        vocab in 1usize..80,
        types in prop::collection::vec(prop::sample::select(Dtype::ALL.to_vec()), 2),
    ) {
        let config = Config {
            architecture: Architecture::Llada,
            layers: 2,
            width: 256,
            heads: kv_heads * group,
            kv_heads,
            head_width,
            ff_width: 256 * ff,
            vocab,
            context: 128,
            epsilon: 1e-5,
            rope: RopeConfig { style: RopeStyle::Neox, theta: 1e4, dimensions: head_width },
            shift_logits: true,
            warnings: Vec::new(),
        };
        let model = model(config, |_, _| [types[0], types[1]]);
        let limits = Limits::new(rows, wanted, threads);
        let limits = Limits { logits, guidance, kv_cache, sequences, ..limits };
        let plan = Plan::new(&model, limits).unwrap();
        let options = dllm_arena::Options { huge_pages: false, lock: Lock::Off };
        let region = Region::reserve(plan.total_bytes, &options).unwrap();
        let sealed = region.seal::<()>(plan.sealing());
        prop_assert!(sealed.is_ok(), "{}", sealed.err().map(|e| e.to_string()).unwrap_or_default());
    }
}
