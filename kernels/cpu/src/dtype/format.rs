//! What a quantized type tells the decoders, the packing and the GEMM at compile time.

/// Weights under one super-scale, and the unit to which packed columns are padded.
pub const SUPER_WEIGHTS: usize = 256;

/// Rows interleaved in one packed block: as many as a 256-bit register has 32-bit lanes.
pub const GROUP_ROWS: usize = 8;

/// Output rows of one packed panel, which is one work item.
pub const PANEL_ROWS: usize = 16;

/// Weights per block of the types that keep one f16 scale per block and no super-scale.
pub(crate) const SMALL_WEIGHTS: usize = 32;

/// Blocks of 32 weights in a super-block.
pub(crate) const SLOTS: usize = SUPER_WEIGHTS / SMALL_WEIGHTS;

/// Words of 4 codes of a super-block that has a byte a code, the most there are.
pub(crate) const WORDS: usize = SUPER_WEIGHTS / 4;

/// A type in the file and in the packed block. A quantized weight is `scale * (value - offset)`,
/// minus or plus a min where the type has one.
#[derive(Clone, Copy)]
pub(crate) struct Facts {
    /// The type's number in a GGUF tensor record (ggml's `enum ggml_type`).
    pub number: u32,
    /// Weights of one block in the file; 1 for the float types.
    pub block_weights: usize,
    /// Bytes of one block in the file (ggml's `type_size`).
    pub block_bytes: usize,
    /// Where the block keeps its f16 scale, which an f16 min follows if there is one.
    pub scale_at: usize,
    /// Weights per sub-block: 16 or 32.
    pub sub: usize,
    /// Whether packed codes take 4 bits.
    pub nibble: bool,
    /// Whether there is a min.
    pub min: bool,
    /// What a packed code stands for, if not for itself: the unsigned value of each nibble.
    pub table: Option<[u8; 16]>,
    /// Largest unsigned value of a code (after `table`).
    pub code_max: u32,
    /// What is taken off an unsigned value (after `table`) before scaling.
    pub offset: i32,
}

/// A quantized type at compile time, and where its packed block ([`crate::pack`]) keeps things.
///
/// All constants follow from `FACTS` and are not to be overridden.
pub(crate) trait Format: Copy + Send + Sync + 'static {
    const FACTS: Facts;

    const FILE_WEIGHTS: usize = Self::FACTS.block_weights;
    const FILE_BYTES: usize = Self::FACTS.block_bytes;
    const SUB: usize = Self::FACTS.sub;
    const NIBBLE: bool = Self::FACTS.nibble;
    const MIN: bool = Self::FACTS.min;
    const TABLE: Option<[u8; 16]> = Self::FACTS.table;
    const CODE_MAX: u32 = Self::FACTS.code_max;
    const OFFSET: i32 = Self::FACTS.offset;

    /// Whether integer sub-block scales lie under one f32 super-scale per 256 weights (and the
    /// activations have one scale per 256). Otherwise: one f32 scale per 32, activations likewise.
    const SUPER: bool = Self::FILE_WEIGHTS == SUPER_WEIGHTS;
    /// Sub-blocks in a super-block.
    const N_SUB: usize = SUPER_WEIGHTS / Self::SUB;
    /// f32 scales of a row of a packed block, and mins if there are any.
    const FLOATS: usize = if Self::SUPER { 1 } else { SLOTS };

    // Offsets in bytes: f32 scales, f32 mins, integer scales, integer mins, codes.
    const D: usize = 0;
    const DMIN: usize = Self::D + Self::FLOATS * GROUP_ROWS * size_of::<f32>();
    const SCALES: usize = if Self::MIN { 2 * Self::DMIN } else { Self::DMIN };
    const MINS: usize = Self::SCALES + if Self::SUPER { Self::N_SUB * GROUP_ROWS } else { 0 };
    const CODES: usize =
        Self::MINS + if Self::SUPER && Self::MIN { Self::N_SUB * GROUP_ROWS } else { 0 };
    /// Bytes of a packed block, a multiple of 32.
    const BLOCK_BYTES: usize =
        Self::CODES + SUPER_WEIGHTS * GROUP_ROWS / if Self::NIBBLE { 2 } else { 1 };
}

/// How a type's bits lie in the file. A block fills slot `slot` of the tile, or all of it (slot 0)
/// if it has a super-scale.
pub(crate) trait Unpack: Format {
    /// Whether [`Unpack::words`] is there, and to be used for packing.
    const HAS_WORDS: bool = false;

    /// Unpacks the integer scales and mins of one block of the file.
    fn sub_scales(_block: &[u8], _tile: &mut Tile) {}

    /// Unpacks the codes of one block of the file.
    fn codes(block: &[u8], slot: usize, tile: &mut Tile);

    /// A short way from one block to words of 4 codes as they are packed, for the types that files
    /// are made of most: where a word of the file holds the bits of 4 neighbouring codes, whole
    /// words take fewer steps than codes of a byte each.
    fn words(_block: &[u8], _slot: usize, _words: &mut [u32; WORDS]) {}
}

/// The form that a row's super-block takes between the file and its use: 256 weights, one block of
/// a type with super-scales, or 8 slots of 32 weights.
#[derive(Clone)]
pub(crate) struct Tile {
    /// Unsigned codes in the order of the weights; indices into the table where there is one.
    pub codes: [u8; SUPER_WEIGHTS],
    /// f32 scales, one a slot. With super-scales, only `d[0]`.
    pub d: [f32; SLOTS],
    /// f32 mins as in the file, one a slot. With super-scales, only `m[0]`.
    pub m: [f32; SLOTS],
    /// Integer sub-block scales: i8 in two's complement, which the unsigned ones, having at most 6
    /// bits, are as well.
    pub scales: [u8; 16],
    /// Integer sub-block mins.
    pub mins: [u8; 16],
}

impl Tile {
    /// Weights that are all zero in every type, as their scales are.
    pub const ZERO: Tile = Tile {
        codes: [0; SUPER_WEIGHTS],
        d: [0.0; SLOTS],
        m: [0.0; SLOTS],
        scales: [0; 16],
        mins: [0; 16],
    };

    /// The codes of a slot of 32 weights.
    pub fn slot(&mut self, slot: usize) -> &mut [u8; SMALL_WEIGHTS] {
        &mut self.codes.as_chunks_mut().0[slot]
    }
}
