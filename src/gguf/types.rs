//! Every tensor type that ggml has numbered: its name and how its rows are cut into blocks.

/// One ggml tensor type.
///
/// A row of `n` elements takes `n / block_len * block_bytes` bytes; `n` is a multiple of
/// `block_len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GgmlType {
    /// Number in a GGUF file.
    pub id: u32,
    /// ggml's own name for it, as `llama-quantize` and the `gguf` package spell it.
    pub name: &'static str,
    /// Elements per block.
    pub block_len: u64,
    /// Bytes per block.
    pub block_bytes: u64,
}

/// All types, at the index of their number: ids 0 to 42 of ggml's `enum ggml_type`.
///
/// Ids 4, 5, 31 to 33 and 36 to 38 are withdrawn: current tools refuse them. Old files that
/// hold them can still be listed, since their block sizes are known.
const TYPES: [GgmlType; 43] = [
    ggml_type(0, "F32", 1, 4),
    ggml_type(1, "F16", 1, 2),
    ggml_type(2, "Q4_0", 32, 18),
    ggml_type(3, "Q4_1", 32, 20),
    ggml_type(4, "Q4_2", 16, 10),
    ggml_type(5, "Q4_3", 16, 12),
    ggml_type(6, "Q5_0", 32, 22),
    ggml_type(7, "Q5_1", 32, 24),
    ggml_type(8, "Q8_0", 32, 34),
    ggml_type(9, "Q8_1", 32, 36),
    ggml_type(10, "Q2_K", 256, 84),
    ggml_type(11, "Q3_K", 256, 110),
    ggml_type(12, "Q4_K", 256, 144),
    ggml_type(13, "Q5_K", 256, 176),
    ggml_type(14, "Q6_K", 256, 210),
    ggml_type(15, "Q8_K", 256, 292),
    ggml_type(16, "IQ2_XXS", 256, 66),
    ggml_type(17, "IQ2_XS", 256, 74),
    ggml_type(18, "IQ3_XXS", 256, 98),
    ggml_type(19, "IQ1_S", 256, 50),
    ggml_type(20, "IQ4_NL", 32, 18),
    ggml_type(21, "IQ3_S", 256, 110),
    ggml_type(22, "IQ2_S", 256, 82),
    ggml_type(23, "IQ4_XS", 256, 136),
    ggml_type(24, "I8", 1, 1),
    ggml_type(25, "I16", 1, 2),
    ggml_type(26, "I32", 1, 4),
    ggml_type(27, "I64", 1, 8),
    ggml_type(28, "F64", 1, 8),
    ggml_type(29, "IQ1_M", 256, 56),
    ggml_type(30, "BF16", 1, 2),
    ggml_type(31, "Q4_0_4_4", 32, 18),
    ggml_type(32, "Q4_0_4_8", 32, 18),
    ggml_type(33, "Q4_0_8_8", 32, 18),
    ggml_type(34, "TQ1_0", 256, 54),
    ggml_type(35, "TQ2_0", 256, 66),
    ggml_type(36, "IQ4_NL_4_4", 32, 18),
    ggml_type(37, "IQ4_NL_4_8", 32, 18),
    ggml_type(38, "IQ4_NL_8_8", 32, 18),
    ggml_type(39, "MXFP4", 32, 17),
    ggml_type(40, "NVFP4", 64, 36),
    ggml_type(41, "Q1_0", 128, 18),
    ggml_type(42, "Q2_0", 64, 18),
];

/// The type with this number, if ggml has one.
pub fn by_id(id: u32) -> Option<&'static GgmlType> {
    TYPES.get(usize::try_from(id).ok()?)
}

/// All known types, in the order of their numbers.
pub fn all() -> &'static [GgmlType] {
    &TYPES
}

const fn ggml_type(id: u32, name: &'static str, block_len: u64, block_bytes: u64) -> GgmlType {
    GgmlType { id, name, block_len, block_bytes }
}
