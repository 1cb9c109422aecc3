//! What the benches share: noise, hashes, and how they start.

#![allow(dead_code, reason = "every bench uses another part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use criterion::Criterion;
use dllm_cpu::Kernels;
use dllm_cpu::dtype::{Dtype, PANEL_ROWS};
use dllm_cpu::pack::{pack_panel, panel_bytes};
use dllm_rt::synth::fill_rows;

/// Runs a bench: in full under `cargo bench`, once and small under `cargo test`, which passes no
/// `--bench`.
pub fn run(measure: impl FnOnce(&mut Criterion, bool)) {
    let small = !std::env::args().any(|argument| argument == "--bench");
    let mut criterion = Criterion::default().configure_from_args();
    measure(&mut criterion, small);
    criterion.final_summary();
}

/// The kernels to measure: the scalar ones only where it is quick.
pub fn kernels(small: bool) -> impl Iterator<Item = Kernels> {
    Kernels::all().filter(move |kernels| small || kernels.name() != "scalar")
}

/// Numbers from -0.5 to 0.5 that are the same in every run.
pub struct Noise(pub u64);

impl Noise {
    /// The next one.
    pub fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    }

    /// As many.
    pub fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next()).collect()
    }
}

/// Prints the hash of a result: two runs that differ in speed did the same work where it is equal.
pub fn say_hash(name: &str, result: &[u8]) {
    println!("{name}: hash {:016x}", xxhash_rust::xxh3::xxh3_64(result));
}

/// The same of floats, bit by bit.
pub fn say_hash_of_floats(name: &str, result: &[f32]) {
    let bytes: Vec<u8> = result.iter().flat_map(|value| value.to_le_bytes()).collect();
    say_hash(name, &bytes);
}

/// Random rows of a type, as a file has them.
pub fn file_rows(dtype: Dtype, rows: usize, cols: usize) -> Vec<u8> {
    let mut bytes = vec![0; rows * dtype.row_bytes(cols).unwrap()];
    fill_rows(dtype, cols, 1, &mut bytes);
    bytes
}

/// Packs file rows, a whole number of panels.
pub fn pack(dtype: Dtype, file: &[u8], cols: usize, packed: &mut [u8]) {
    let row_bytes = dtype.row_bytes(cols).unwrap();
    let panels = packed.chunks_exact_mut(panel_bytes(dtype, cols));
    for (to, from) in panels.zip(file.chunks_exact(PANEL_ROWS * row_bytes)) {
        let mut rows = [from; PANEL_ROWS];
        for (row, bytes) in rows.iter_mut().zip(from.chunks_exact(row_bytes)) {
            *row = bytes;
        }
        pack_panel(dtype, &rows, cols, to);
    }
}
