//! The packed layout against the decoders, read by an oracle that knows it from its description.

use crate::bits::assert_bits;
use crate::blocks::{SHAPES, pack};
use crate::random::Random;
use dllm_cpu::decode::decode_row;
use dllm_cpu::dtype::Dtype;
use dllm_cpu::pack::{pack_panel, panel_bytes};

/// What the layout's description says of a type.
struct Layout {
    dtype: Dtype,
    /// Sub-blocks with an integer scale, or 0 if each 32 weights have an f32 scale.
    scales: usize,
    min: bool,
    nibble: bool,
    offset: i32,
}

const LAYOUTS: [Layout; 12] = [
    Layout { dtype: Dtype::Q4_0, scales: 0, min: false, nibble: true, offset: 8 },
    Layout { dtype: Dtype::Q4_1, scales: 0, min: true, nibble: true, offset: 0 },
    Layout { dtype: Dtype::Q5_0, scales: 0, min: false, nibble: false, offset: 16 },
    Layout { dtype: Dtype::Q5_1, scales: 0, min: true, nibble: false, offset: 0 },
    Layout { dtype: Dtype::Q8_0, scales: 0, min: false, nibble: false, offset: 128 },
    Layout { dtype: Dtype::Q2_K, scales: 16, min: true, nibble: true, offset: 0 },
    Layout { dtype: Dtype::Q3_K, scales: 16, min: false, nibble: true, offset: 4 },
    Layout { dtype: Dtype::Q4_K, scales: 8, min: true, nibble: true, offset: 0 },
    Layout { dtype: Dtype::Q5_K, scales: 8, min: true, nibble: false, offset: 0 },
    Layout { dtype: Dtype::Q6_K, scales: 16, min: false, nibble: false, offset: 32 },
    Layout { dtype: Dtype::IQ4_NL, scales: 0, min: false, nibble: true, offset: 0 },
    Layout { dtype: Dtype::IQ4_XS, scales: 8, min: false, nibble: true, offset: 0 },
];

/// The values that IQ4 codes stand for, as published.
const IQ4: [i32; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

fn f32_at(bytes: &[u8], at: usize) -> f32 {
    f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The parts of a weight as they lie in the panel.
#[derive(Debug, PartialEq)]
struct Parts {
    d: f32,
    m: f32,
    scale: u8,
    min: u8,
    code: u8,
}

const NOTHING: Parts = Parts { d: 0.0, m: 0.0, scale: 0, min: 0, code: 0 };

impl Layout {
    fn floats(&self) -> usize {
        if self.scales == 0 { 8 * 8 * 4 } else { 8 * 4 }
    }

    fn block_bytes(&self) -> usize {
        let copies = if self.min { 2 } else { 1 };
        let codes = if self.nibble { 1024 } else { 2048 };
        copies * (self.floats() + self.scales * 8) + codes
    }

    fn parts(&self, panel: &[u8], row: usize, col: usize) -> Parts {
        let block = &panel[(col / 256 * 2 + row / 8) * self.block_bytes()..][..self.block_bytes()];
        let (r, k) = (row % 8, col % 256);
        let float = if self.scales == 0 { (k / 32 * 8 + r) * 4 } else { r * 4 };
        let d = f32_at(block, float);
        let m = if self.min { f32_at(block, self.floats() + float) } else { 0.0 };
        let integers = self.floats() * if self.min { 2 } else { 1 };
        let (mut scale, mut min) = (0, 0);
        if let Some(sub) = 256_usize.checked_div(self.scales) {
            let at = integers + k / sub * 8 + r;
            scale = block[at];
            min = if self.min { block[at + self.scales * 8] } else { 0 };
        }
        let codes = &block[self.block_bytes() - if self.nibble { 1024 } else { 2048 }..];
        let code = if self.nibble {
            let (p, half, j, b) = (k / 64, k % 64 / 32, k % 32 / 4, k % 4);
            codes[p * 256 + j * 32 + r * 4 + b] >> (4 * half) & 15
        } else {
            codes[k / 4 * 32 + r * 4 + k % 4]
        };
        Parts { d, m, scale, min, code }
    }

    fn unpack_value(&self, panel: &[u8], row: usize, col: usize) -> f32 {
        let Parts { d, m, scale, min, code } = self.parts(panel, row, col);
        let code = match self.dtype {
            Dtype::IQ4_NL | Dtype::IQ4_XS => IQ4[code as usize],
            _ => code as i32 - self.offset,
        } as f32;
        match (self.scales > 0, self.min) {
            (true, true) => d * scale as f32 * code - m * min as f32,
            (true, false) => d * (scale as i8) as f32 * code,
            (false, true) => d * code + m,
            (false, false) => d * code,
        }
    }
}

/// Random rows with no f16 scale that is infinite or NaN.
fn random_rows(dtype: Dtype, rows: usize, cols: usize) -> Vec<Vec<u8>> {
    // Upper bytes of the f16 scales and mins, or of the floats.
    let uppers: Vec<usize> = match SHAPES.iter().find(|shape| shape.dtype == dtype) {
        Some(shape) => shape.halves().map(|at| at + 1).collect(),
        None => vec![dtype.block_bytes() - 1],
    };
    let row = |seed| {
        let mut row = Random(seed).bytes(dtype.row_bytes(cols).unwrap());
        for block in row.chunks_exact_mut(dtype.block_bytes()) {
            uppers.iter().for_each(|&at| block[at] &= 0xbf);
        }
        row
    };
    (1..=rows as u64).map(row).collect()
}

fn decoded(dtype: Dtype, row: &[u8], cols: usize) -> Vec<f32> {
    let mut weights = vec![0.0; cols];
    decode_row(dtype, row, &mut weights);
    weights
}

fn check_panel(layout: &Layout, n_rows: usize, cols: usize) {
    let dtype = layout.dtype;
    let rows = random_rows(dtype, n_rows, cols);
    let panel = pack(dtype, &rows, cols);
    let padded = cols.next_multiple_of(256);
    assert_eq!(panel.len(), padded / 256 * 2 * layout.block_bytes(), "{dtype} {cols}");
    for row in 0..16 {
        let weights = rows.get(row).map_or(vec![], |row| decoded(dtype, row, cols));
        let value = |col| layout.unpack_value(&panel, row, col);
        let got: Vec<f32> = (0..weights.len()).map(value).collect();
        assert_bits(&format!("{dtype} {n_rows}x{cols} from row {row}"), &got, &weights, cols);
        for col in weights.len()..padded {
            let parts = layout.parts(&panel, row, col);
            assert_eq!(parts, NOTHING, "{dtype} {n_rows}x{cols} row {row} column {col}");
        }
    }
}

#[test]
fn packing_keeps_every_weight() {
    for layout in &LAYOUTS {
        for n_rows in 1..=16 {
            for cols in (256..=1280).step_by(256) {
                check_panel(layout, n_rows, cols);
            }
        }
    }
}

#[test]
fn columns_are_padded_to_a_super_block_with_nothing() {
    for layout in LAYOUTS.iter().filter(|layout| layout.dtype.block_weights() == 32) {
        for n_rows in [1, 7, 8, 9, 15, 16] {
            for cols in [32, 64, 224, 288, 480, 992] {
                check_panel(layout, n_rows, cols);
            }
        }
    }
}

#[test]
fn floats_are_packed_by_column_and_not_padded() {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16] {
        for (n_rows, cols) in [(1, 1), (3, 7), (8, 256), (15, 257), (16, 300), (16, 1280)] {
            let rows = random_rows(dtype, n_rows, cols);
            let panel = pack(dtype, &rows, cols);
            assert_eq!(panel.len(), cols * 16 * 4);
            for row in 0..16 {
                let row_weights = |row: &Vec<u8>| decoded(dtype, row, cols);
                let weights = rows.get(row).map_or(vec![0.0; cols], row_weights);
                let value = |col| f32_at(&panel, (col * 16 + row) * 4);
                let got: Vec<f32> = (0..cols).map(value).collect();
                assert_bits(
                    &format!("{dtype} {n_rows}x{cols} from row {row}"),
                    &got,
                    &weights,
                    cols,
                );
            }
        }
    }
}

#[test]
fn sizes_are_those_described() {
    for layout in &LAYOUTS {
        assert_eq!(panel_bytes(layout.dtype, 256), 2 * layout.block_bytes(), "{}", layout.dtype);
        assert_eq!(panel_bytes(layout.dtype, usize::MAX), usize::MAX);
        assert_eq!(panel_bytes(layout.dtype, 0), 0);
    }
    assert_eq!(panel_bytes(Dtype::F16, 3), 3 * 16 * 4);
    assert_eq!(panel_bytes(Dtype::F32, usize::MAX), usize::MAX);
}

#[test]
#[should_panic(expected = "17 rows in a panel")]
fn a_panel_has_at_most_16_rows() {
    pack_panel(Dtype::Q4_0, &[[0; 18].as_slice(); 17], 32, &mut [0; 2560]);
}

#[test]
#[should_panic(expected = "Q4_0: a row of 32 weights")]
fn rows_of_another_length_are_not_packed() {
    pack_panel(Dtype::Q4_0, &[&[0; 17]], 32, &mut [0; 2560]);
}
