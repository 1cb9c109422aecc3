//! Packing rows of a file into panels, one thread, beside a plain copy of the same bytes.
//!
//! `cargo bench --bench repack`; bytes are those of the file.

mod common;

use common::{file_rows, pack, say_hash};
use criterion::{Criterion, Throughput};
use dllm_cpu::dtype::{Dtype, PANEL_ROWS};
use dllm_cpu::pack::panel_bytes;
use std::hint::black_box;

fn measure(c: &mut Criterion, small: bool) {
    // Some megabytes, more than a core's own caches hold.
    let (cols, count) = if small { (512, 1) } else { (4096, 64) };
    for dtype in Dtype::ALL {
        let file = file_rows(dtype, count * PANEL_ROWS, cols);
        let mut packed = vec![0; count * panel_bytes(dtype, cols)];
        let mut copy = vec![0; file.len()];
        let mut group = c.benchmark_group("repack");
        group.throughput(Throughput::Bytes(file.len() as u64));
        group.bench_function(format!("{dtype}"), |b| {
            b.iter(|| pack(dtype, black_box(&file), cols, &mut packed))
        });
        group.bench_function(format!("{dtype} copied"), |b| {
            b.iter(|| copy.copy_from_slice(black_box(&file)))
        });
        say_hash(&format!("repack {dtype}"), &packed);
    }
}

fn main() {
    common::run(measure);
}
