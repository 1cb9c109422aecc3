//! The largest file that is believed: every count is refused above its cap, whatever the file's
//! size. What the file's own size already bounds (bytes of data, items of an array) has no cap
//! beyond it.
//!
//! A copy of the header, names and tables are the only things the reader allocates, so these caps
//! also bound its memory: names take no more than they take in the file, and the tables' fixed
//! parts are at most `KEYS_MAX` and `TENSORS_MAX` entries of about 100 bytes.

/// Bytes from the magic to the tensor data. Headers of 5 to 15 MB are usual, mostly tokens and
/// merges; with a whole `tokenizer.json` beside them they have some 40 MB.
pub const HEADER_BYTES_MAX: usize = 512 << 20;

/// Metadata keys of one part. Model files hold 20 to 60; collections that list every base model
/// and data set in `general.*` stay under a few hundred.
pub const KEYS_MAX: u64 = 16_384;

/// Tensors of all parts together. The largest models published keep their experts stacked and
/// have some 2,000; unstacked experts of such a model are about 50,000.
pub const TENSORS_MAX: u64 = 65_536;

/// Bytes of a key: the GGUF specification's own limit, 2^16 - 1.
pub const KEY_BYTES_MAX: u64 = 65_535;

/// Bytes of a tensor's name. The specification says 64; image-model converters write up to 128
/// and twice that leaves room.
pub const TENSOR_NAME_BYTES_MAX: u64 = 256;

/// Bytes of one string value. The longest seen are whole `tokenizer.json` files of about 20 MB
/// in `tokenizer.huggingface.json`.
pub const STRING_BYTES_MAX: u64 = 64 << 20;

/// Items of one array. The longest seen are merges, 500,000 or so; 2^30 is what llama.cpp's
/// reader allows.
pub const ARRAY_ITEMS_MAX: u64 = 1 << 30;

/// Arrays within arrays. The specification sets no limit, llama.cpp refuses any nesting, no
/// published file needs it; as deep as tensors have dimensions.
pub const ARRAY_DEPTH_MAX: u32 = 4;

/// Dimensions of a tensor: `GGML_MAX_DIMS`.
pub const DIMS_MAX: u32 = 4;

/// `general.alignment` in bytes: the specification asks for a multiple of 8.
pub const ALIGNMENT_MIN: u32 = 8;

/// `general.alignment` in bytes. Writers use 32, some 64; one page of 64 KiB is the largest
/// that memory mapping could ask for.
pub const ALIGNMENT_MAX: u32 = 65_536;

/// Parts of a split file. The largest splits published have some 200.
pub const PARTS_MAX: u64 = 1_024;
