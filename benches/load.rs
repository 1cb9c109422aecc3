//! Loading a model, file in the page cache to full arena, beside a copy of the same bytes.
//!
//! `cargo bench --bench load`; the file has two layers of LLaDA-8B's sizes and random weights.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use common::say_hash;
use criterion::{Criterion, Throughput};
use dllm_arena::{MappedFile, Options, Region, Span};
use dllm_rt::backend::cpu::{Plan, load};
use dllm_rt::model::Architecture;
use dllm_rt::model::Network;
use dllm_rt::synth::{Recipe, Shape, SyntheticFile, Types};
use dllm_rt::{Limits, Lock, gguf};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Without the privilege it would be tried in vain.
const MEMORY: Options = Options { huge_pages: false, lock: Lock::Off };

/// A synthetic file that goes away with this.
struct Synthetic(PathBuf);

impl Synthetic {
    fn new(shape: Shape) -> Synthetic {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("load-bench.gguf");
        let recipe =
            Recipe { architecture: Architecture::Llada, shape, types: Types::Q4KM, seed: 1 };
        let file = SyntheticFile::new(recipe).unwrap();
        file.write(&mut File::create(&path).unwrap()).unwrap();
        Synthetic(path)
    }
}

impl Drop for Synthetic {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Open, plan, reserve, fill.
fn load_file(path: &Path, threads: usize) -> (Region, usize) {
    let file = gguf::open(path).unwrap();
    let model = Network::from_gguf(&file).unwrap();
    let limits = Limits { logits: true, ..Limits::new(148, 32, threads) };
    let plan = Plan::new(&model, limits).unwrap();
    let mut region = Region::map(plan.total_bytes, &MEMORY).unwrap();
    let threads = load::Threads { count: threads, enter: &|_| () };
    load::fill(&file, &model, &plan, &mut region, &threads, &mut |_| ()).unwrap();
    (region, plan.fixed_bytes)
}

/// Map, reserve, copy.
fn copy(path: &Path) -> Region {
    let file = MappedFile::open(path).unwrap();
    let bytes = file.bytes();
    let mut region = Region::reserve(bytes.len(), &MEMORY).unwrap();
    let span = Span { offset: 0, bytes: bytes.len() };
    region.span_mut(span).copy_from_slice(bytes);
    region
}

fn measure(c: &mut Criterion, small: bool) {
    let large = Shape { layers: 2, vocab: 2048, ..Shape::LLADA_8B };
    let file = Synthetic::new(if small { Shape::TINY } else { large });
    let mut group = c.benchmark_group("load");
    group.throughput(Throughput::Bytes(file.0.metadata().unwrap().len()));
    group.sample_size(10);
    group.bench_function("copy, 1 thread", |b| b.iter(|| copy(&file.0)));
    for threads in [1, 2] {
        let name = format!("{threads} threads");
        group.bench_function(&name, |b| b.iter(|| load_file(&file.0, threads)));
        let (region, bytes) = load_file(&file.0, threads);
        say_hash(&name, region.span(Span { offset: 0, bytes }));
    }
}

fn main() {
    common::run(measure);
}
