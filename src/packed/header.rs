//! The first 4096 bytes of a packed file. All numbers are little-endian.

use super::layout::{HEADER_BYTES, Layout};
use super::refusal::Refusal;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 8] = *b"DLLMPACK";
/// Digits of a model's hash.
const CONTENT_BYTES: usize = 32;
/// The last bytes are the hash of those before them.
const HASHED_BYTES: usize = HEADER_BYTES - size_of::<u64>();

/// What a packed file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The layout's digest.
    pub layout: u128,
    /// The hash of the model's content, in hexadecimal.
    pub content: String,
    /// The stamp of the model's files, or 0 where it can't be relied on.
    pub stamp: u128,
    /// The hash of the table.
    pub table: u64,
}

impl Header {
    /// The bytes of the header.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(self.layout.to_le_bytes());
        bytes.extend(self.content.bytes().chain(std::iter::repeat(0)).take(CONTENT_BYTES));
        bytes.extend(self.stamp.to_le_bytes());
        bytes.extend(self.table.to_le_bytes());
        bytes.resize(HASHED_BYTES, 0);
        let hash = xxh3_64(&bytes);
        bytes.extend(hash.to_le_bytes());
        bytes
    }

    /// Reads the bytes of a header.
    ///
    /// # Errors
    /// They are no header, damaged, or another layout's.
    pub fn decode(bytes: &[u8; HEADER_BYTES], layout: &Layout) -> Result<Header, Refusal> {
        let (hashed, hash) = bytes.split_at(HASHED_BYTES);
        if hashed[..MAGIC.len()] != MAGIC {
            return Err(Refusal::Magic);
        }
        if xxh3_64(hashed).to_le_bytes() != hash {
            return Err(Refusal::Header);
        }
        let mut rest = &hashed[MAGIC.len()..];
        let header = Header {
            layout: u128::from_le_bytes(take(&mut rest)),
            content: String::from_utf8_lossy(&take::<CONTENT_BYTES>(&mut rest)).into_owned(),
            stamp: u128::from_le_bytes(take(&mut rest)),
            table: u64::from_le_bytes(take(&mut rest)),
        };
        if header.layout == layout.digest() { Ok(header) } else { Err(Refusal::Layout) }
    }
}

/// The next `N` bytes, of which there are enough in a header.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (bytes, after) = rest.split_at(N);
    *rest = after;
    let mut out = [0; N];
    out.copy_from_slice(bytes);
    out
}
