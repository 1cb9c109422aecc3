//! Small models of random weights: a file, and beside it the numbers that it holds.

use super::blocks::{self, Random};
use crate::common::gguf_writer::GgufWriter;
use dllm_cpu::decode::decode_row;
use dllm_cpu::dtype::Dtype;
use std::collections::BTreeMap;

/// Layers: a first and a last one, which differ in what is computed.
pub const LAYERS: usize = 2;
/// Large, so that leaving it out shows; the residual stream starts with a mean square of one.
pub const EPSILON: f32 = 0.25;
/// Small, so that all pairs of a short canvas turn visibly.
pub const THETA: f32 = 100.0;

/// What a model is like.
#[derive(Clone)]
pub struct Spec {
    pub architecture: &'static str,
    pub width: usize,
    pub heads: usize,
    pub kv_heads: usize,
    /// Elements of a head, where the file says so.
    pub key_length: Option<usize>,
    /// Elements of a head that turn, where the file says so.
    pub rope_dimensions: Option<usize>,
    /// Whether there is a `rope_freqs.weight`.
    pub rope_factors: bool,
    pub ff: usize,
    pub vocab: usize,
    /// Whether there is no `output.weight`.
    pub tied: bool,
    /// The linear maps that have a bias, by the last part of their names.
    pub biases: &'static [&'static str],
    /// The type of a matrix, by its name without `.weight`.
    pub types: fn(&str) -> Dtype,
    /// The type of norms and biases.
    pub vectors: Dtype,
}

/// Every linear map of a model.
pub const LINEAR: [&str; 8] =
    ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "output"];

impl Spec {
    /// A model of F32 weights without any optional feature.
    pub fn new(architecture: &'static str) -> Spec {
        Spec {
            architecture,
            width: 256,
            heads: 4,
            kv_heads: 4,
            key_length: None,
            rope_dimensions: None,
            rope_factors: false,
            ff: 512,
            vocab: 96,
            tied: false,
            biases: &[],
            types: |_| Dtype::F32,
            vectors: Dtype::F32,
        }
    }

    pub fn head_width(&self) -> usize {
        self.key_length.unwrap_or(self.width / self.heads)
    }

    pub fn turned(&self) -> usize {
        self.rope_dimensions.unwrap_or(self.head_width())
    }

    pub fn has_bias(&self, linear: &str) -> bool {
        self.biases.iter().any(|part| linear.rsplit('.').next() == Some(part))
    }

    /// Writes the model's weights.
    pub fn build(self, seed: u64) -> TestModel {
        let mut model = TestModel {
            file: self.keys(),
            tensors: BTreeMap::new(),
            random: Random(seed),
            spec: self,
        };
        model.add_all();
        model
    }

    fn keys(&self) -> GgufWriter {
        let mut file = GgufWriter::new();
        let key = |name: &str| format!("{}.{name}", self.architecture);
        file.str("general.architecture", self.architecture)
            .u32(&key("context_length"), 256)
            .u32(&key("embedding_length"), self.width as u32)
            .u32(&key("block_count"), LAYERS as u32)
            .u32(&key("feed_forward_length"), self.ff as u32)
            .u32(&key("attention.head_count"), self.heads as u32)
            .u32(&key("attention.head_count_kv"), self.kv_heads as u32)
            .f32(&key("attention.layer_norm_rms_epsilon"), EPSILON)
            .f32(&key("rope.freq_base"), THETA);
        if let Some(width) = self.key_length {
            file.u32(&key("attention.key_length"), width as u32);
            file.u32(&key("attention.value_length"), width as u32);
        }
        if let Some(dimensions) = self.rope_dimensions {
            file.u32(&key("rope.dimension_count"), dimensions as u32);
        }
        file
    }
}

/// A tensor of the model, as numbers.
pub struct Tensor {
    pub dtype: Dtype,
    pub cols: usize,
    /// Row-major.
    pub values: Vec<f64>,
}

impl Tensor {
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.cols..][..self.cols]
    }
}

/// A model: its file and its numbers.
pub struct TestModel {
    pub spec: Spec,
    pub file: GgufWriter,
    tensors: BTreeMap<String, Tensor>,
    random: Random,
}

impl TestModel {
    /// The tensor of this name, if the model has it.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// Random token ids.
    pub fn canvas(&self, len: usize, seed: u64) -> Vec<u32> {
        let mut random = Random(seed);
        (0..len).map(|_| (random.bits() % self.spec.vocab as u64) as u32).collect()
    }

    /// The file cut into two parts as llama.cpp's splitter does: all keys in the first.
    pub fn parts(&self) -> [GgufWriter; 2] {
        let tensors = &self.file.tensors;
        let (first, second) = tensors.split_at(tensors.len() / 2);
        let total = tensors.len() as u32;
        let all = [(0, first, self.file.clone()), (1, second, GgufWriter::new())];
        all.map(|(number, own, mut part)| {
            part.u32("split.no", number).u32("split.count", 2).u32("split.tensors.count", total);
            part.tensors = own.to_vec();
            part
        })
    }

    fn add_all(&mut self) {
        let Spec { width, ff, vocab, heads, kv_heads, .. } = self.spec;
        let (q_cols, kv_cols) = (heads * self.spec.head_width(), kv_heads * self.spec.head_width());
        self.matrix("token_embd", vocab, width, 1.0);
        for layer in 0..LAYERS {
            let name = |part: &str| format!("blk.{layer}.{part}");
            self.vector(&name("attn_norm.weight"), width, 0.5, 1.5);
            self.linear(&name("attn_q"), q_cols, width, 1.2);
            self.linear(&name("attn_k"), kv_cols, width, 1.2);
            self.linear(&name("attn_v"), kv_cols, width, 1.0);
            self.linear(&name("attn_output"), width, q_cols, 1.5);
            self.vector(&name("ffn_norm.weight"), width, 0.5, 1.5);
            self.linear(&name("ffn_gate"), ff, width, 1.2);
            self.linear(&name("ffn_up"), ff, width, 1.2);
            self.linear(&name("ffn_down"), width, ff, 1.2);
        }
        self.vector("output_norm.weight", width, 0.5, 1.5);
        if !self.spec.tied {
            self.linear("output", vocab, width, 1.0);
        }
        if self.spec.rope_factors {
            self.vector("rope_freqs.weight", self.spec.turned() / 2, 1.0, 4.0);
        }
    }

    /// A matrix whose products are about `gain` times as large as what it multiplies, and a bias
    /// where the model has one.
    fn linear(&mut self, name: &str, rows: usize, cols: usize, gain: f64) {
        self.matrix(name, rows, cols, gain / (cols as f64).sqrt());
        if self.spec.has_bias(name) {
            self.vector(&format!("{name}.bias"), rows, -0.8, 0.8);
        }
    }

    fn matrix(&mut self, name: &str, rows: usize, cols: usize, rms: f64) {
        let dtype = (self.spec.types)(name);
        let random = &mut self.random;
        let data: Vec<u8> = (0..rows).flat_map(|_| blocks::row(dtype, cols, rms, random)).collect();
        self.add(&format!("{name}.weight"), dtype, &[cols, rows], data);
    }

    fn vector(&mut self, name: &str, len: usize, low: f64, high: f64) {
        let values: Vec<f64> = (0..len).map(|_| self.random.between(low, high)).collect();
        let dtype = self.spec.vectors;
        self.add(name, dtype, &[len], blocks::floats(dtype, &values));
    }

    fn add(&mut self, name: &str, dtype: Dtype, shape: &[usize], data: Vec<u8>) {
        let mut values = vec![0f32; shape.iter().product()];
        decode_row(dtype, &data, &mut values);
        let values = values.into_iter().map(f64::from).collect();
        self.tensors.insert(name.to_owned(), Tensor { dtype, cols: shape[0], values });
        let shape: Vec<u64> = shape.iter().map(|n| *n as u64).collect();
        self.file.tensor(name, &shape, blocks::number(dtype), data);
    }
}
