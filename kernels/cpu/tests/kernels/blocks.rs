//! Blocks of every quantized type as a file has them, random or of the caller's bytes.

use crate::random::Random;
use dllm_cpu::decode::decode_row;
use dllm_cpu::dtype::Dtype;
use dllm_cpu::pack::{pack_panel, panel_bytes};
use std::ops::Range;

/// Where a type keeps what in a block of the file.
#[derive(Debug)]
pub struct Shape {
    pub dtype: Dtype,
    /// Offset of the f16 scale.
    pub d: usize,
    /// Offset of the f16 min.
    pub m: Option<usize>,
    /// Bytes of integer sub-block scales and mins.
    pub scales: Range<usize>,
    /// Bytes of codes.
    pub codes: Range<usize>,
}

const fn shape(dtype: Dtype, d: usize, scales: Range<usize>, codes: Range<usize>) -> Shape {
    Shape { dtype, d, m: None, scales, codes }
}

const fn with_min(mut shape: Shape) -> Shape {
    shape.m = Some(shape.d + 2);
    shape
}

/// Every quantized type.
pub const SHAPES: [Shape; 12] = [
    shape(Dtype::Q4_0, 0, 0..0, 2..18),
    with_min(shape(Dtype::Q4_1, 0, 0..0, 4..20)),
    shape(Dtype::Q5_0, 0, 0..0, 2..22),
    with_min(shape(Dtype::Q5_1, 0, 0..0, 4..24)),
    shape(Dtype::Q8_0, 0, 0..0, 2..34),
    with_min(shape(Dtype::Q2_K, 80, 0..16, 16..80)),
    shape(Dtype::Q3_K, 108, 96..108, 0..96),
    with_min(shape(Dtype::Q4_K, 0, 4..16, 16..144)),
    with_min(shape(Dtype::Q5_K, 0, 4..16, 16..176)),
    shape(Dtype::Q6_K, 208, 192..208, 0..192),
    shape(Dtype::IQ4_NL, 0, 0..0, 2..18),
    shape(Dtype::IQ4_XS, 0, 2..8, 8..136),
];

impl Shape {
    /// Weights under one scale of the activations: 256 for types with super-scales, else 32.
    pub fn activation_block(&self) -> usize {
        self.dtype.block_weights()
    }

    /// Offsets of the f16 scale and, if there is one, the f16 min.
    pub fn halves(&self) -> impl Iterator<Item = usize> {
        [self.d].into_iter().chain(self.m)
    }

    /// A block all of whose codes, and all of whose integer scales, have the same byte.
    pub fn filled(&self, code: u8, scale: u8, d: u16, m: u16) -> Vec<u8> {
        let mut block = vec![0; self.dtype.block_bytes()];
        block[self.codes.clone()].fill(code);
        block[self.scales.clone()].fill(scale);
        self.set_halves(&mut block, d, m);
        block
    }

    /// A row of random blocks with scales and mins of 2^-10 to 2^-2, of either sign.
    pub fn random_row(&self, random: &mut Random, cols: usize) -> Vec<u8> {
        let mut row = random.bytes(self.dtype.row_bytes(cols).unwrap());
        for block in row.chunks_exact_mut(self.dtype.block_bytes()) {
            let [d, m] = [0, 1].map(|_| {
                let bits = random.bits() as u16;
                (bits & 0x83ff) | ((5 + (bits >> 10 & 7)) << 10)
            });
            self.set_halves(block, d, m);
        }
        row
    }

    /// A row of random codes and scales whose f16 scales and mins are the given ones.
    pub fn row_of_halves(&self, random: &mut Random, cols: usize, d: u16, m: u16) -> Vec<u8> {
        let mut row = random.bytes(self.dtype.row_bytes(cols).unwrap());
        for block in row.chunks_exact_mut(self.dtype.block_bytes()) {
            self.set_halves(block, d, m);
        }
        row
    }

    fn set_halves(&self, block: &mut [u8], d: u16, m: u16) {
        for (at, bits) in self.halves().zip([d, m]) {
            block[at..][..2].copy_from_slice(&bits.to_le_bytes());
        }
    }

    /// The weights of a row, and of each weight `scale * code - min` the sum of the magnitudes of
    /// `scale * code` and of `min` (found by decoding the row once more without its mins).
    pub fn weights(&self, row: &[u8], cols: usize) -> Weights {
        let decode = |row: &[u8]| -> Vec<f64> {
            let mut weights = vec![f32::NAN; cols];
            decode_row(self.dtype, row, &mut weights);
            weights.into_iter().map(f64::from).collect()
        };
        let values = decode(row);
        let mut without_min = row.to_vec();
        for block in without_min.chunks_exact_mut(self.dtype.block_bytes()) {
            if let Some(at) = self.m {
                block[at..][..2].fill(0);
            }
        }
        let products = decode(&without_min);
        let magnitudes = values.iter().zip(products).map(|(w, p)| p.abs() + (p - w).abs());
        Weights { magnitudes: magnitudes.collect(), values }
    }
}

/// See [`Shape::weights`].
pub struct Weights {
    pub values: Vec<f64>,
    pub magnitudes: Vec<f64>,
}

/// Packs rows into a panel whose bytes were something else before.
pub fn pack(dtype: Dtype, rows: &[Vec<u8>], cols: usize) -> Vec<u8> {
    let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
    let mut panel = vec![0xa5; panel_bytes(dtype, cols)];
    pack_panel(dtype, &rows, cols, &mut panel);
    panel
}
