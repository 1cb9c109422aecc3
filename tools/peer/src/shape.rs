//! What a model file's matrices are: sizes, types and multiply-adds.

use crate::report::ModelReport;
use dllm_bench::Error;
use dllm_rt::gguf::{Gguf, TensorInfo};
use std::collections::BTreeMap;
use std::path::Path;

/// The facts of the model at `path`, without cases.
pub fn read(path: &Path, gguf: &Gguf) -> Result<ModelReport, Error> {
    let wrong = |error| Error::Model(dllm_rt::Error::from(error));
    let arch = gguf.str("general.architecture").map_err(wrong)?.to_string();
    let size = |key: &str| gguf.u64(&format!("{arch}.{key}")).map_err(wrong);
    let embedding = gguf.tensor("token_embd.weight");
    let (layers, width) = (size("block_count")?, size("embedding_length")?);
    Ok(ModelReport {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        layers,
        width,
        arch,
        vocab: embedding.map_or(0, TensorInfo::rows),
        types: types(gguf),
        bytes: gguf.file_bytes(),
        macs_per_token: matrices(gguf).map(TensorInfo::elements).sum(),
        cases: Vec::new(),
    })
}

/// The tensors that rows of activations are multiplied with: all with two dimensions, the
/// embedding only where it is the output's matrix as well.
fn matrices(gguf: &Gguf) -> impl Iterator<Item = &TensorInfo> {
    let has_output = gguf.tensor("output.weight").is_some();
    let is_used = move |tensor: &&TensorInfo| {
        tensor.dim_count == 2 && (tensor.name != "token_embd.weight" || !has_output)
    };
    gguf.tensors().iter().filter(is_used)
}

fn types(gguf: &Gguf) -> Vec<String> {
    let mut macs: BTreeMap<&str, u64> = BTreeMap::new();
    matrices(gguf).for_each(|tensor| {
        *macs.entry(tensor.type_name()).or_default() += tensor.elements();
    });
    let mut types: Vec<(&str, u64)> = macs.into_iter().collect();
    types.sort_by_key(|(_, macs)| std::cmp::Reverse(*macs));
    types.into_iter().map(|(name, _)| name.to_string()).collect()
}
