//! Where each weight lies in a packed file, and what tells one layout from another.

use crate::plan::{Plan, WeightKind, WeightPlan};
use crate::repack::TASK_BYTES;
use dllm_cpu::dtype::{Dtype, PANEL_ROWS, SUPER_WEIGHTS};
use dllm_cpu::pack::{pack_panel, panel_bytes};
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Bytes that are hashed, read and written at a time: what a thread fills at a time.
pub const CHUNK_BYTES: usize = TASK_BYTES;
/// Bytes before the table of hashes.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of a chunk's hash.
pub const HASH_BYTES: usize = size_of::<u64>();
/// The form of header, table and chunks; to be raised when it changes.
const FORM: u64 = 1;

/// The weights of a plan in a packed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The place of each weight of the plan; none for the tables.
    places: Vec<Option<Place>>,
    chunks: usize,
    weights_bytes: u64,
    digest: u128,
}

/// Where a weight lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// Bytes of weights before it.
    start: u64,
    /// Number of its first chunk.
    first_chunk: usize,
}

/// A chunk of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its number among all.
    pub number: usize,
    /// Its first byte in the file.
    pub offset: u64,
}

impl Layout {
    /// The layout of a plan's weights.
    pub fn new(plan: &Plan) -> Layout {
        let mut layout =
            Layout { places: Vec::new(), chunks: 0, weights_bytes: 0, digest: digest(plan) };
        for weight in &plan.weights {
            let place = Place { start: layout.weights_bytes, first_chunk: layout.chunks };
            layout.places.push(is_kept(weight).then_some(place));
            if is_kept(weight) {
                layout.chunks += weight.span.bytes.div_ceil(CHUNK_BYTES);
                layout.weights_bytes += weight.span.bytes as u64;
            }
        }
        layout
    }

    /// Chunks of all weights.
    pub fn chunks(&self) -> usize {
        self.chunks
    }

    /// Bytes of the table of hashes.
    pub fn table_bytes(&self) -> usize {
        self.chunks * HASH_BYTES
    }

    /// Bytes of the whole file.
    pub fn file_bytes(&self) -> u64 {
        (HEADER_BYTES + self.table_bytes()) as u64 + self.weights_bytes
    }

    /// Chunk `index` of the plan's weight number `weight`; none for a table.
    pub fn chunk(&self, weight: usize, index: usize) -> Option<Chunk> {
        let place = (*self.places.get(weight)?)?;
        let start = place.start + (index * CHUNK_BYTES) as u64;
        let offset = (HEADER_BYTES + self.table_bytes()) as u64 + start;
        Some(Chunk { number: place.first_chunk + index, offset })
    }

    /// Differs where weights, their order or their packed form do.
    pub fn digest(&self) -> u128 {
        self.digest
    }
}

/// The hash of a chunk, which no other chunk's contents have.
pub fn chunk_hash(number: usize, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, number as u64)
}

/// Whether a weight is kept; the tables are made anew for each canvas length.
fn is_kept(weight: &WeightPlan) -> bool {
    !matches!(weight.kind, WeightKind::RopeCos | WeightKind::RopeSin)
}

fn digest(plan: &Plan) -> u128 {
    let mut hasher = Xxh3::new();
    let mut packed: Vec<Dtype> = Vec::new();
    let number = |hasher: &mut Xxh3, value: usize| hasher.update(&(value as u64).to_le_bytes());
    hasher.update(&FORM.to_le_bytes());
    number(&mut hasher, CHUNK_BYTES);
    for weight in plan.weights.iter().filter(|weight| is_kept(weight)) {
        let (kind, dtype, rows, cols) = match weight.kind {
            WeightKind::Embedding(matrix) => ("rows", matrix.dtype, matrix.rows, matrix.cols),
            WeightKind::Panels(matrix) => ("panels", matrix.dtype, matrix.rows, matrix.cols),
            WeightKind::Vector(vector) => ("values", vector.dtype, 1, vector.len),
            WeightKind::RopeCos | WeightKind::RopeSin => continue,
        };
        for text in [kind, dtype.name(), &weight.name] {
            number(&mut hasher, text.len());
            hasher.update(text.as_bytes());
        }
        [rows, cols, weight.span.bytes].iter().for_each(|value| number(&mut hasher, *value));
        if kind == "panels" && !packed.contains(&dtype) {
            packed.push(dtype);
            hasher.update(&fingerprint(dtype));
        }
    }
    hasher.digest128()
}

/// A panel of made-up weights as they are packed by this program.
fn fingerprint(dtype: Dtype) -> Vec<u8> {
    let row_bytes = SUPER_WEIGHTS / dtype.block_weights() * dtype.block_bytes();
    // A linear congruential generator (Knuth's constants). Without its second highest bit no byte
    // makes a float that is infinite or not a number.
    let next = |state: &u64| {
        Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    };
    let states = std::iter::successors(Some(1), next);
    let bytes: Vec<u8> =
        states.map(|state| (state >> 56) as u8 & 0xbf).take(PANEL_ROWS * row_bytes).collect();
    let rows: Vec<&[u8]> = bytes.chunks(row_bytes).collect();
    let mut panel = vec![0; panel_bytes(dtype, SUPER_WEIGHTS)];
    pack_panel(dtype, &rows, SUPER_WEIGHTS, &mut panel);
    panel
}
