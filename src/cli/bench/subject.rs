//! What is measured: random weights of a shape, or those of a file.

use crate::cli::failure::Failure;
use dllm_arena::{Bytes, available_bytes};
use dllm_cpu::dtype::Dtype;
use dllm_rt::gguf::{self, Gguf};
use dllm_rt::model::{Layer, Linear, Network};
use dllm_rt::synth::{Recipe, Shape, SyntheticFile, Types};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The types whose matrices are measured by default.
const TYPES: [Types; 4] = [
    Types::One(Dtype::Q4_K),
    Types::One(Dtype::Q6_K),
    Types::One(Dtype::Q8_0),
    Types::One(Dtype::Q5_K),
];
/// Random weights up to this size are made in memory, larger ones in a file without a name, whose
/// pages the system can drop while the arena is filled from them.
const IN_MEMORY_BYTES_MAX: u64 = 64 << 20;

/// What is measured.
pub struct Subject {
    /// For people.
    pub name: String,
    /// The models of which whole passes are measured.
    pub passes: Vec<Pass>,
    /// The matrices that are measured alone.
    pub matrices: Vec<Matrix>,
}

/// A model of which whole passes are measured.
pub struct Pass {
    /// The types of its weights, as the report names them.
    pub label: String,
    weights: Weights,
}

enum Weights {
    File(PathBuf),
    Random(SyntheticFile),
}

/// A matrix of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Its type.
    pub dtype: Dtype,
    /// Outputs.
    pub rows: usize,
    /// Inputs.
    pub cols: usize,
}

impl Subject {
    /// Random weights: passes of Q4_K_M and matrices of [`TYPES`], or both of the types given.
    pub fn random(name: &str, recipe: Recipe, given: Option<&[Types]>) -> Result<Subject, Failure> {
        let mut passes = Vec::new();
        for types in given.unwrap_or(&[Types::Q4KM]) {
            let file = SyntheticFile::new(Recipe { types: *types, ..recipe })?;
            passes.push(Pass { label: types.to_string(), weights: Weights::Random(file) });
        }
        let mut matrices = Vec::new();
        for dtype in given.unwrap_or(&TYPES).iter().flat_map(|types| types.dtypes()) {
            for (rows, cols) in projections(&recipe.shape) {
                add(&mut matrices, Matrix { dtype, rows, cols });
            }
        }
        let name = format!("{name}, {}, random weights", layers(recipe.shape.layers));
        Ok(Subject { name, passes, matrices })
    }

    /// The model at `path`, to be given up to `rows_max` tokens.
    pub fn file(path: &Path, rows_max: usize) -> Result<Subject, Failure> {
        let model = Network::from_gguf(&gguf::open(path)?)?;
        let context = model.config.context;
        if rows_max > context {
            let why = format!("--rows {rows_max} is beyond the model's context_length, {context}");
            return Err(Failure::Beyond(why));
        }
        let mut matrices = Vec::new();
        for linear in model.layers.iter().flat_map(linears) {
            let dllm_rt::model::Matrix { dtype, rows, cols, .. } = linear.matrix;
            add(&mut matrices, Matrix { dtype, rows, cols });
        }
        let pass = Pass { label: "file".into(), weights: Weights::File(path.to_owned()) };
        let name = format!("{}, {}", path.display(), layers(model.config.layers));
        Ok(Subject { name, passes: vec![pass], matrices })
    }
}

impl Pass {
    /// Opens the file, or makes it.
    pub fn open(&self) -> Result<Gguf, Failure> {
        match &self.weights {
            Weights::File(path) => Ok(gguf::open(path)?),
            Weights::Random(file) => make(file),
        }
    }
}

/// Multiply-adds of the matrices in a pass over `tokens` rows with `output_rows` rows of logits:
/// from the last layer's attention on only those are computed.
pub fn macs(model: &Network, tokens: usize, output_rows: usize) -> f64 {
    let of = |linear: &Linear| linear.matrix.rows as f64 * linear.matrix.cols as f64;
    let last = model.layers.len() - 1;
    let layer = |(i, layer): (usize, &Layer)| {
        let rows = if i == last { output_rows } else { tokens };
        let [q, k, v, rest @ ..] = linears(layer);
        let before: f64 = [q, k, v].into_iter().map(of).sum();
        let after: f64 = rest.into_iter().map(of).sum();
        before * tokens as f64 + after * rows as f64
    };
    let layers: f64 = model.layers.iter().enumerate().map(layer).sum();
    layers + of(&model.output) * output_rows as f64
}

/// The matrices of a layer, those before its attention first.
fn linears(layer: &Layer) -> [&Linear; 7] {
    let Layer { q, k, v, o, gate, up, down, .. } = layer;
    [q, k, v, o, gate, up, down]
}

/// Rows and columns of the matrices of a layer.
fn projections(shape: &Shape) -> [(usize, usize); 4] {
    let Shape { width, ff_width, .. } = *shape;
    [(width, width), (shape.kv_width(), width), (ff_width, width), (width, ff_width)]
}

fn layers(count: usize) -> String {
    format!("{count} layer{}", if count == 1 { "" } else { "s" })
}

fn add(matrices: &mut Vec<Matrix>, matrix: Matrix) {
    if !matrices.contains(&matrix) {
        matrices.push(matrix);
    }
}

fn make(file: &SyntheticFile) -> Result<Gguf, Failure> {
    let bytes = file.bytes();
    if let Some(available) = available_bytes()
        && bytes > available as u64
    {
        let needed = Bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
        let why = format!(
            "the random weights need {needed}, {} available: give fewer --layers or a smaller \
             --vocab",
            Bytes(available)
        );
        return Err(Failure::Beyond(why));
    }
    if bytes > IN_MEMORY_BYTES_MAX {
        return in_unnamed_file(file);
    }
    let mut content = Vec::with_capacity(bytes as usize);
    let in_memory = |cause| Failure::File { doing: "make random weights".into(), cause };
    file.write(&mut content).map_err(in_memory)?;
    Ok(Gguf::from_bytes(content)?)
}

/// A file that is gone as soon as nobody uses it, however this process ends.
fn in_unnamed_file(file: &SyntheticFile) -> Result<Gguf, Failure> {
    let failed = |cause| {
        let folder = std::env::temp_dir();
        let folder = folder.display();
        Failure::File { doing: format!("write random weights to `{folder}` (TMPDIR)"), cause }
    };
    let mut out = tempfile::tempfile().map_err(failed)?;
    file.write(&mut out).map_err(failed)?;
    Ok(gguf::open(Path::new(&format!("/proc/self/fd/{}", out.as_raw_fd())))?)
}
