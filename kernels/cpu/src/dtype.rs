//! The tensor types that can be read, and what a GEMM may know of each at compile time.
//!
//! Names, numbers and file block sizes are ggml's. The packed layout described by [`Format`] is
//! ours and is written by [`crate::pack`]. A quantized weight is
//! `w = scale * (code - OFFSET)`, minus or plus a min where the type has one.

// The variants and formats keep ggml's spelling, which is what files, errors and papers use.
#![allow(non_camel_case_types)]

/// Weights under one super-scale, and the unit to which packed columns are padded.
pub const SUPER_WEIGHTS: usize = 256;

/// Rows interleaved in one packed block: as many as a 256-bit register has 32-bit lanes.
pub const GROUP_ROWS: usize = 8;

/// Output rows of one packed panel, which is one work item.
pub const PANEL_ROWS: usize = 16;

/// Weights per block of the types that keep one f16 scale per block and no super-scale.
const SMALL_WEIGHTS: usize = 32;

/// The 16 values of the IQ4 types plus 127, so that they are unsigned (ggml's `kvalues_iq4nl`).
const IQ4_TABLE: [u8; 16] =
    [0, 23, 44, 62, 78, 92, 105, 117, 128, 140, 152, 165, 180, 196, 216, 240];

/// A tensor type of a GGUF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of an IEEE single.
    BF16,
    /// 4 bits, a scale per 32.
    Q4_0,
    /// 4 bits, a scale and an added min per 32.
    Q4_1,
    /// 5 bits, a scale per 32.
    Q5_0,
    /// 5 bits, a scale and an added min per 32.
    Q5_1,
    /// 8 bits, a scale per 32.
    Q8_0,
    /// 2 bits, 4-bit scales and mins per 16 under a scale and a min per 256.
    Q2_K,
    /// 3 bits, 6-bit signed scales per 16 under a scale per 256.
    Q3_K,
    /// 4 bits, 6-bit scales and mins per 32 under a scale and a min per 256.
    Q4_K,
    /// 5 bits, 6-bit scales and mins per 32 under a scale and a min per 256.
    Q5_K,
    /// 6 bits, 8-bit signed scales per 16 under a scale per 256.
    Q6_K,
    /// A table of 16 values, a scale per 32.
    IQ4_NL,
    /// A table of 16 values, 6-bit signed scales per 32 under a scale per 256.
    IQ4_XS,
}

impl Dtype {
    /// Every type, floats first.
    pub const ALL: [Dtype; 15] = [
        Dtype::F32,
        Dtype::F16,
        Dtype::BF16,
        Dtype::Q4_0,
        Dtype::Q4_1,
        Dtype::Q5_0,
        Dtype::Q5_1,
        Dtype::Q8_0,
        Dtype::Q2_K,
        Dtype::Q3_K,
        Dtype::Q4_K,
        Dtype::Q5_K,
        Dtype::Q6_K,
        Dtype::IQ4_NL,
        Dtype::IQ4_XS,
    ];

    /// The type with this number in a GGUF tensor record (ggml's `enum ggml_type`), or `None` if
    /// it is not one that can be read.
    pub const fn from_ggml(number: u32) -> Option<Dtype> {
        Some(match number {
            0 => Dtype::F32,
            1 => Dtype::F16,
            2 => Dtype::Q4_0,
            3 => Dtype::Q4_1,
            6 => Dtype::Q5_0,
            7 => Dtype::Q5_1,
            8 => Dtype::Q8_0,
            10 => Dtype::Q2_K,
            11 => Dtype::Q3_K,
            12 => Dtype::Q4_K,
            13 => Dtype::Q5_K,
            14 => Dtype::Q6_K,
            20 => Dtype::IQ4_NL,
            23 => Dtype::IQ4_XS,
            30 => Dtype::BF16,
            _ => return None,
        })
    }

    /// ggml's spelling, such as `Q4_K`.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "F32",
            Dtype::F16 => "F16",
            Dtype::BF16 => "BF16",
            Dtype::Q4_0 => "Q4_0",
            Dtype::Q4_1 => "Q4_1",
            Dtype::Q5_0 => "Q5_0",
            Dtype::Q5_1 => "Q5_1",
            Dtype::Q8_0 => "Q8_0",
            Dtype::Q2_K => "Q2_K",
            Dtype::Q3_K => "Q3_K",
            Dtype::Q4_K => "Q4_K",
            Dtype::Q5_K => "Q5_K",
            Dtype::Q6_K => "Q6_K",
            Dtype::IQ4_NL => "IQ4_NL",
            Dtype::IQ4_XS => "IQ4_XS",
        }
    }

    /// Weights in one block of the file; 1 for the float types.
    pub const fn block_weights(self) -> usize {
        match self {
            Dtype::F32 | Dtype::F16 | Dtype::BF16 => 1,
            Dtype::Q4_0 | Dtype::Q4_1 | Dtype::Q5_0 | Dtype::Q5_1 => SMALL_WEIGHTS,
            Dtype::Q8_0 | Dtype::IQ4_NL => SMALL_WEIGHTS,
            Dtype::Q2_K | Dtype::Q3_K | Dtype::Q4_K | Dtype::Q5_K => SUPER_WEIGHTS,
            Dtype::Q6_K | Dtype::IQ4_XS => SUPER_WEIGHTS,
        }
    }

    /// Bytes of one block of the file (ggml's `type_size`).
    pub const fn block_bytes(self) -> usize {
        match self {
            Dtype::F32 => 4,
            Dtype::F16 | Dtype::BF16 => 2,
            // An f16 scale, (an f16 min,) (32 fifth bits,) then 32 codes.
            Dtype::Q4_0 | Dtype::IQ4_NL => 2 + 16,
            Dtype::Q4_1 => 2 + 2 + 16,
            Dtype::Q5_0 => 2 + 4 + 16,
            Dtype::Q5_1 => 2 + 2 + 4 + 16,
            Dtype::Q8_0 => 2 + 32,
            // Scales and mins, codes, f16 super-scale and super-min.
            Dtype::Q2_K => 16 + 64 + 2 + 2,
            // Third bits, low two bits, 16 six-bit scales, f16 super-scale.
            Dtype::Q3_K => 32 + 64 + 12 + 2,
            // f16 super-scale and super-min, 16 six-bit scales and mins, (fifth bits,) codes.
            Dtype::Q4_K => 2 + 2 + 12 + 128,
            Dtype::Q5_K => 2 + 2 + 12 + 32 + 128,
            // Low four bits, high two bits, 16 one-byte scales, f16 super-scale.
            Dtype::Q6_K => 128 + 64 + 16 + 2,
            // f16 super-scale, high two bits and low four bits of 8 scales, codes.
            Dtype::IQ4_XS => 2 + 2 + 4 + 128,
        }
    }

    /// Whether this is F32, F16 or BF16, which are multiplied as f32 and never quantized.
    pub const fn is_float(self) -> bool {
        matches!(self, Dtype::F32 | Dtype::F16 | Dtype::BF16)
    }

    /// Bytes of a row of `cols` weights in the file, or `None` if `cols` is not a whole number of
    /// blocks or the size overflows.
    pub const fn row_bytes(self, cols: usize) -> Option<usize> {
        if !cols.is_multiple_of(self.block_weights()) {
            return None;
        }
        (cols / self.block_weights()).checked_mul(self.block_bytes())
    }
}

impl std::fmt::Display for Dtype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What a quantized type tells the matrix multiplication, and where its packed block keeps things.
///
/// A packed block is [`GROUP_ROWS`] rows by [`SUPER_WEIGHTS`] weights, little-endian, its parts in
/// the order `D`, `DMIN`, `SCALES`, `MINS`, `CODES`; a part that the type lacks is empty. With `r`
/// the row in the group, `s` the sub-block and `k` the weight in the super-block:
///
/// | part | `SUPER` | otherwise |
/// |---|---|---|
/// | `D` | f32 `[r]` | f32 `[s][r]` |
/// | `DMIN` (if `MIN`) | f32 `[r]` | f32 `[s][r]` |
/// | `SCALES` | one byte `[s][r]`, unsigned if `MIN`, else signed | none |
/// | `MINS` (if `MIN`) | u8 `[s][r]` | none |
///
/// Codes take one byte, at `(k / 4) * 32 + r * 4 + k % 4`, or, if `NIBBLE`, half of the byte
/// at `(k / 64) * 256 + (k % 32 / 4) * 32 + r * 4 + k % 4`: the low half when
/// `k % 64 < 32`, otherwise the high half. Either way a 32-byte load meets 4 consecutive weights
/// of each row.
///
/// The constants from `N_SUB` on follow from the others and are not to be overridden.
pub trait Format: Copy + Send + Sync + 'static {
    /// The type in the file.
    const DTYPE: Dtype;
    /// Weights per sub-block: 16 or 32.
    const SUB: usize;
    /// Whether integer sub-block scales lie under one f32 super-scale per 256 weights (and the
    /// activations have one scale per 256). Otherwise: one f32 scale per 32, activations likewise.
    const SUPER: bool;
    /// Whether packed codes take 4 bits.
    const NIBBLE: bool;
    /// Whether there is a min: `w = d*scale*code - dmin*min` if `SUPER`, else
    /// `w = d*code + dmin` (the file's sign in both cases).
    const MIN: bool;
    /// What a packed code stands for, if not for itself: the unsigned value of each nibble.
    const TABLE: Option<[u8; 16]> = None;
    /// Largest unsigned value of a code (after `TABLE`).
    const CODE_MAX: u32;
    /// What is taken off an unsigned value (after `TABLE`) before scaling.
    const OFFSET: i32;

    /// Sub-blocks in a super-block.
    const N_SUB: usize = SUPER_WEIGHTS / Self::SUB;
    /// Bytes of one block in the file.
    const FILE_BYTES: usize = Self::DTYPE.block_bytes();
    /// Weights of one block in the file.
    const FILE_WEIGHTS: usize = Self::DTYPE.block_weights();

    /// Offset in bytes of the f32 scales.
    const D: usize = 0;
    /// Offset in bytes of the f32 mins.
    const DMIN: usize = Self::D + floats_bytes(Self::SUPER);
    /// Offset in bytes of the integer scales.
    const SCALES: usize = Self::DMIN + if Self::MIN { floats_bytes(Self::SUPER) } else { 0 };
    /// Offset in bytes of the integer mins.
    const MINS: usize = Self::SCALES + if Self::SUPER { Self::N_SUB * GROUP_ROWS } else { 0 };
    /// Offset in bytes of the codes.
    const CODES: usize =
        Self::MINS + if Self::SUPER && Self::MIN { Self::N_SUB * GROUP_ROWS } else { 0 };
    /// Bytes of a packed block, a multiple of 32.
    const BLOCK_BYTES: usize =
        Self::CODES + SUPER_WEIGHTS * GROUP_ROWS / if Self::NIBBLE { 2 } else { 1 };
}

/// Bytes of the f32 scales, or mins, of a packed block.
const fn floats_bytes(is_super: bool) -> usize {
    let per_row = if is_super { 1 } else { SUPER_WEIGHTS / SMALL_WEIGHTS };
    per_row * GROUP_ROWS * size_of::<f32>()
}

/// [`Dtype::Q4_0`] at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Q4_0;

impl Format for Q4_0 {
    const DTYPE: Dtype = Dtype::Q4_0;
    const SUB: usize = 32;
    const SUPER: bool = false;
    const NIBBLE: bool = true;
    const MIN: bool = false;
    const CODE_MAX: u32 = 15;
    const OFFSET: i32 = 8;
}

/// [`Dtype::Q4_1`] at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Q4_1;

impl Format for Q4_1 {
    const DTYPE: Dtype = Dtype::Q4_1;
    const SUB: usize = 32;
    const SUPER: bool = false;
    const NIBBLE: bool = true;
    const MIN: bool = true;
    const CODE_MAX: u32 = 15;
    const OFFSET: i32 = 0;
}

/// [`Dtype::Q5_0`] at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Q5_0;

impl Format for Q5_0 {
    const DTYPE: Dtype = Dtype::Q5_0;
    const SUB: usize = 32;
    const SUPER: bool = false;
    const NIBBLE: bool = false;
    const MIN: bool = false;
    const CODE_MAX: u32 = 31;
    const OFFSET: i32 = 16;
}

/// [`Dtype::Q5_1`] at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Q5_1;

impl Format for Q5_1 {
    const DTYPE: Dtype = Dtype::Q5_1;
    const SUB: usize = 32;
    const SUPER: bool = false;
    const NIBBLE: bool = false;
    const MIN: bool = true;
    const CODE_MAX: u32 = 31;
    const OFFSET: i32 = 0;
}

/// [`Dtype::Q8_0`] at compile time. The unsigned code is the file's signed one plus 128.
#[derive(Clone, Copy, Debug)]
pub struct Q8_0;

impl Format for Q8_0 {
    const DTYPE: Dtype = Dtype::Q8_0;
    const SUB: usize = 32;
    const SUPER: bool = false;
    const NIBBLE: bool = false;
    const MIN: bool = false;
    const CODE_MAX: u32 = 255;
    const OFFSET: i32 = 128;
}

/// [`Dtype::Q2_K`] at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Q2_K;

impl Format for Q2_K {
    const DTYPE: Dtype = Dtype::Q2_K;
    const SUB: usize = 16;
    const SUPER: bool = true;
    const NIBBLE: bool = true;
    const MIN: bool = true;
    const CODE_MAX: u32 = 3;
    const OFFSET: i32 = 0;
}

/// [`Dtype::Q3_K`] at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Q3_K;

impl Format for Q3_K {
    const DTYPE: Dtype = Dtype::Q3_K;
    const SUB: usize = 16;
    const SUPER: bool = true;
    const NIBBLE: bool = true;
    const MIN: bool = false;
    const CODE_MAX: u32 = 7;
    const OFFSET: i32 = 4;
}

/// [`Dtype::Q4_K`] at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Q4_K;

impl Format for Q4_K {
    const DTYPE: Dtype = Dtype::Q4_K;
    const SUB: usize = 32;
    const SUPER: bool = true;
    const NIBBLE: bool = true;
    const MIN: bool = true;
    const CODE_MAX: u32 = 15;
    const OFFSET: i32 = 0;
}

/// [`Dtype::Q5_K`] at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Q5_K;

impl Format for Q5_K {
    const DTYPE: Dtype = Dtype::Q5_K;
    const SUB: usize = 32;
    const SUPER: bool = true;
    const NIBBLE: bool = false;
    const MIN: bool = true;
    const CODE_MAX: u32 = 31;
    const OFFSET: i32 = 0;
}

/// [`Dtype::Q6_K`] at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Q6_K;

impl Format for Q6_K {
    const DTYPE: Dtype = Dtype::Q6_K;
    const SUB: usize = 16;
    const SUPER: bool = true;
    const NIBBLE: bool = false;
    const MIN: bool = false;
    const CODE_MAX: u32 = 63;
    const OFFSET: i32 = 32;
}

/// [`Dtype::IQ4_NL`] at compile time.
#[derive(Clone, Copy, Debug)]
pub struct IQ4_NL;

impl Format for IQ4_NL {
    const DTYPE: Dtype = Dtype::IQ4_NL;
    const SUB: usize = 32;
    const SUPER: bool = false;
    const NIBBLE: bool = true;
    const MIN: bool = false;
    const TABLE: Option<[u8; 16]> = Some(IQ4_TABLE);
    const CODE_MAX: u32 = 240;
    const OFFSET: i32 = 127;
}

/// [`Dtype::IQ4_XS`] at compile time.
#[derive(Clone, Copy, Debug)]
pub struct IQ4_XS;

impl Format for IQ4_XS {
    const DTYPE: Dtype = Dtype::IQ4_XS;
    const SUB: usize = 32;
    const SUPER: bool = true;
    const NIBBLE: bool = true;
    const MIN: bool = false;
    const TABLE: Option<[u8; 16]> = Some(IQ4_TABLE);
    const CODE_MAX: u32 = 240;
    const OFFSET: i32 = 127;
}

// The packed sizes written out, so that no change of a flag moves a layout unnoticed.
const _: () = {
    assert!(Q4_0::BLOCK_BYTES == 256 + 1024);
    assert!(Q4_1::BLOCK_BYTES == 256 + 256 + 1024);
    assert!(Q5_0::BLOCK_BYTES == 256 + 2048);
    assert!(Q5_1::BLOCK_BYTES == 256 + 256 + 2048);
    assert!(Q8_0::BLOCK_BYTES == 256 + 2048);
    assert!(Q2_K::BLOCK_BYTES == 32 + 32 + 128 + 128 + 1024);
    assert!(Q3_K::BLOCK_BYTES == 32 + 128 + 1024);
    assert!(Q4_K::BLOCK_BYTES == 32 + 32 + 64 + 64 + 1024);
    assert!(Q5_K::BLOCK_BYTES == 32 + 32 + 64 + 64 + 2048);
    assert!(Q6_K::BLOCK_BYTES == 32 + 128 + 2048);
    assert!(IQ4_NL::BLOCK_BYTES == 256 + 1024);
    assert!(IQ4_XS::BLOCK_BYTES == 32 + 64 + 1024);
    // The order of the parts inside, on the two types that have the most of them.
    assert!(Q4_K::DMIN == 32 && Q4_K::SCALES == 64 && Q4_K::MINS == 128 && Q4_K::CODES == 192);
    assert!(Q4_1::DMIN == 256 && Q4_1::CODES == 512);
};
