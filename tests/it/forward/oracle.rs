//! The forward pass in f64 over the numbers of a model, written from the formulas of the papers.
//!
//! It simulates one thing of the engine: quantized matrices multiply activations rounded to int8.
//! A [`Slip`] is an error made on purpose, to show that the comparison would notice it.

use super::model::{EPSILON, LAYERS, THETA, Tensor, TestModel};
use std::cell::Cell;

/// An error that an engine might have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slip {
    /// Adjacent pairs turn instead of halves, or the other way round.
    OtherRope,
    /// The base of the frequencies is twice as large.
    OtherTheta,
    /// `rope_freqs.weight` is not read.
    NoRopeFactors,
    /// `rope.dimension_count` is not read.
    WholeHeadTurns,
    /// Values turn as well as queries and keys.
    ValuesTurn,
    /// Query head h reads key head h modulo their count, instead of its group's.
    OtherGroups,
    /// No position reads those after it.
    Causal,
    /// Scores are divided by the square root of `width / heads`, whatever the head's width.
    OtherScale,
    /// The residual stream is replaced instead of added to.
    NoResidual,
    /// The second layer reads the first one's norms.
    NormsOfFirstLayer,
    NoEpsilon,
    /// The output is not normalized.
    NoOutputNorm,
    /// `silu(up) * gate`.
    GateUpSwapped,
    /// A sigmoid in place of SiLU.
    Sigmoid,
    /// Row i has the logits of row i - 1.
    RowsShifted,
    /// A bias is not added.
    NoBias(&'static str),
    /// The embedding is the LM head though there is another.
    Tied,
    /// Activations of quantized matrices are not rounded.
    NoRounding,
    /// Activations are cut off instead of rounded.
    CutOff,
    /// One scale per 32 activations where it should be per 256, or the other way round.
    OtherBlock,
}

/// Logits of every row; `None` if an activation lies closer than `tie` to half-way between two
/// codes, in codes.
pub fn logits(
    model: &TestModel,
    ids: &[u32],
    tie: f64,
    slip: Option<Slip>,
) -> Option<Vec<Vec<f64>>> {
    let oracle = Oracle { model, slip, nearest_tie: Cell::new(f64::INFINITY) };
    let embedding = oracle.tensor("token_embd.weight");
    let mut x: Vec<Vec<f64>> = ids.iter().map(|id| embedding.row(*id as usize).to_vec()).collect();
    for layer in 0..LAYERS {
        oracle.attention(layer, &mut x);
        oracle.feed_forward(layer, &mut x);
        if oracle.nearest_tie.get() < tie {
            return None;
        }
    }
    let tied = model.spec.tied || oracle.slips(Slip::Tied);
    let head = if tied { "token_embd" } else { "output" };
    let mut logits: Vec<_> =
        x.iter().map(|x| oracle.linear(head, &oracle.output_norm(x))).collect();
    if oracle.slips(Slip::RowsShifted) {
        logits.rotate_right(1);
    }
    (oracle.nearest_tie.get() >= tie).then_some(logits)
}

struct Oracle<'a> {
    model: &'a TestModel,
    slip: Option<Slip>,
    nearest_tie: Cell<f64>,
}

impl Oracle<'_> {
    fn slips(&self, slip: Slip) -> bool {
        self.slip == Some(slip)
    }

    fn tensor(&self, name: &str) -> &Tensor {
        self.model.tensor(name).unwrap_or_else(|| panic!("the model has no {name}"))
    }

    fn attention(&self, layer: usize, x: &mut [Vec<f64>]) {
        let spec = &self.model.spec;
        let name = |part: &str| format!("blk.{layer}.{part}");
        let normed: Vec<_> =
            x.iter().map(|x| self.norm(&self.norm_name(layer, "attn_norm"), x)).collect();
        let project = |part: &str, turns: bool| -> Vec<Vec<f64>> {
            let mut rows: Vec<_> = normed.iter().map(|x| self.linear(&name(part), x)).collect();
            for (position, row) in rows.iter_mut().enumerate().filter(|_| turns) {
                row.chunks_exact_mut(spec.head_width()).for_each(|h| self.turn(h, position));
            }
            rows
        };
        let (q, k) = (project("attn_q", true), project("attn_k", true));
        let v = project("attn_v", self.slips(Slip::ValuesTurn));
        for (position, x) in x.iter_mut().enumerate() {
            let attended: Vec<f64> = (0..spec.heads)
                .flat_map(|head| self.attend(head, position, &q[position], &k, &v))
                .collect();
            self.add(x, &self.linear(&name("attn_output"), &attended));
        }
    }

    /// Softmax over the scores of all keys (Vaswani et al., "Attention is all you need", 2017), in
    /// groups of query heads (Ainslie et al., "GQA", 2023).
    fn attend(
        &self,
        head: usize,
        position: usize,
        q: &[f64],
        k: &[Vec<f64>],
        v: &[Vec<f64>],
    ) -> Vec<f64> {
        let spec = &self.model.spec;
        let width = spec.head_width();
        let group = spec.heads / spec.kv_heads;
        let kv_head =
            if self.slips(Slip::OtherGroups) { head % spec.kv_heads } else { head / group };
        let of = |row: &[f64], head: usize| row[head * width..][..width].to_vec();
        let divisor = if self.slips(Slip::OtherScale) { spec.width / spec.heads } else { width };
        let q = of(q, head);
        let keys = if self.slips(Slip::Causal) { position + 1 } else { k.len() };
        let score = |k: &Vec<f64>| dot(&q, &of(k, kv_head)) / (divisor as f64).sqrt();
        let scores: Vec<f64> = k[..keys].iter().map(score).collect();
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - largest).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mut out = vec![0.0; width];
        for (weight, v) in weights.iter().zip(v) {
            for (to, v) in out.iter_mut().zip(of(v, kv_head)) {
                *to += weight / total * v;
            }
        }
        out
    }

    /// `down(silu(gate x) * up x)` (Shazeer, "GLU variants improve transformer", 2020).
    fn feed_forward(&self, layer: usize, x: &mut [Vec<f64>]) {
        let name = |part: &str| format!("blk.{layer}.{part}");
        for x in x {
            let normed = self.norm(&self.norm_name(layer, "ffn_norm"), x);
            let mut gate = self.linear(&name("ffn_gate"), &normed);
            let mut up = self.linear(&name("ffn_up"), &normed);
            if self.slips(Slip::GateUpSwapped) {
                std::mem::swap(&mut gate, &mut up);
            }
            let hidden: Vec<f64> = gate.iter().zip(&up).map(|(g, u)| self.silu(*g) * u).collect();
            self.add(x, &self.linear(&name("ffn_down"), &hidden));
        }
    }

    fn silu(&self, x: f64) -> f64 {
        let sigmoid = 1.0 / (1.0 + (-x).exp());
        if self.slips(Slip::Sigmoid) { sigmoid } else { x * sigmoid }
    }

    fn add(&self, x: &mut [f64], y: &[f64]) {
        for (x, y) in x.iter_mut().zip(y) {
            *x = if self.slips(Slip::NoResidual) { *y } else { *x + y };
        }
    }

    fn norm_name(&self, layer: usize, part: &str) -> String {
        let layer = if self.slips(Slip::NormsOfFirstLayer) { 0 } else { layer };
        format!("blk.{layer}.{part}.weight")
    }

    fn output_norm(&self, x: &[f64]) -> Vec<f64> {
        if self.slips(Slip::NoOutputNorm) {
            return x.to_vec();
        }
        self.norm("output_norm.weight", x)
    }

    /// Zhang and Sennrich, "Root mean square layer normalization", 2019.
    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let epsilon = if self.slips(Slip::NoEpsilon) { 0.0 } else { f64::from(EPSILON) };
        let size = (dot(x, x) / x.len() as f64 + epsilon).sqrt();
        x.iter().zip(&self.tensor(name).values).map(|(x, w)| x / size * w).collect()
    }

    /// Turns a head by its position (Su et al., "RoFormer", 2021): pairs of neighbours in files
    /// of `llada`, whose converter permutes the rows, and elements half a head apart in `dream`'s.
    fn turn(&self, head: &mut [f64], position: usize) {
        let spec = &self.model.spec;
        let turned = if self.slips(Slip::WholeHeadTurns) { head.len() } else { spec.turned() };
        let adjacent = (spec.architecture == "llada") != self.slips(Slip::OtherRope);
        let factors = self.model.tensor("rope_freqs.weight");
        let factors = factors.filter(|_| !self.slips(Slip::NoRopeFactors));
        let theta = f64::from(THETA) * if self.slips(Slip::OtherTheta) { 2.0 } else { 1.0 };
        for pair in 0..turned / 2 {
            let factor = factors.and_then(|f| f.values.get(pair)).copied().unwrap_or(1.0);
            let frequency = theta.powf(-((2 * pair) as f64) / turned as f64) / factor;
            let (sin, cos) = (position as f64 * frequency).sin_cos();
            let (i, j) =
                if adjacent { (2 * pair, 2 * pair + 1) } else { (pair, pair + turned / 2) };
            let (a, b) = (head[i], head[j]);
            head[i] = a * cos - b * sin;
            head[j] = a * sin + b * cos;
        }
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let matrix = self.tensor(&format!("{name}.weight"));
        let x = match matrix.dtype.block_weights() {
            1 => x.to_vec(),
            _ if self.slips(Slip::NoRounding) => x.to_vec(),
            32 if self.slips(Slip::OtherBlock) => self.rounded(x, 256),
            256 if self.slips(Slip::OtherBlock) => self.rounded(x, 32),
            block => self.rounded(x, block),
        };
        let mut y: Vec<f64> = matrix.values.chunks_exact(matrix.cols).map(|w| dot(w, &x)).collect();
        let part = name.rsplit('.').next().unwrap_or(name);
        let forgotten = matches!(self.slip, Some(Slip::NoBias(linear)) if linear == part);
        let bias = self.model.tensor(&format!("{name}.bias")).filter(|_| !forgotten);
        if let Some(bias) = bias {
            y.iter_mut().zip(&bias.values).for_each(|(y, b)| *y += b);
        }
        y
    }

    /// Each block of activations rounded to codes of -127 to 127, half to even, under one scale.
    fn rounded(&self, x: &[f64], block: usize) -> Vec<f64> {
        let mut rounded = Vec::new();
        for x in x.chunks(block) {
            let largest = x.iter().fold(0f64, |m, x| m.max(x.abs()));
            rounded.extend(x.iter().map(|x| match largest {
                0.0 => 0.0,
                _ => self.code(x * (127.0 / largest)) * (largest / 127.0),
            }));
        }
        rounded
    }

    fn code(&self, x: f64) -> f64 {
        let to_tie = (x - x.floor() - 0.5).abs();
        self.nearest_tie.set(self.nearest_tie.get().min(to_tie));
        if self.slips(Slip::CutOff) { x.trunc() } else { x.round_ties_even() }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
