//! A packed file as the source of weights.

use super::header::Header;
use super::layout::{CHUNK_BYTES, HASH_BYTES, HEADER_BYTES, Layout, chunk_hash};
use super::refusal::Refusal;
use crate::plan::WeightPlan;
use crate::repack::Weights;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// An open packed file whose header and table are sound. It is read, not mapped: a file that is
/// cut meanwhile gives an error, and reading copies straight into the arena.
pub struct PackedFile<'l> {
    file: File,
    header: Header,
    hashes: Vec<u64>,
    layout: &'l Layout,
}

impl<'l> PackedFile<'l> {
    /// Opens the file at `path`, written for `layout`; `None` where there is none.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn open(path: &Path, layout: &'l Layout) -> Result<Option<PackedFile<'l>>, Refusal> {
        // Asked before opening: opening a pipe would wait for its writer.
        match fs::metadata(path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(Refusal::Io(cause)),
            Ok(metadata) if !metadata.is_file() => return Err(Refusal::NotRegular),
            Ok(_) => {}
        }
        let file = File::open(path).map_err(Refusal::Io)?;
        let found = file.metadata().map_err(Refusal::Io)?.len();
        let mut header = [0; HEADER_BYTES];
        match file.read_exact_at(&mut header, 0) {
            Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => return Err(Refusal::Magic),
            read => read.map_err(Refusal::Io)?,
        }
        let header = Header::decode(&header, layout)?;
        let wanted = layout.file_bytes();
        if found != wanted {
            return Err(Refusal::Length { wanted, found });
        }
        let mut table = vec![0; layout.table_bytes()];
        file.read_exact_at(&mut table, HEADER_BYTES as u64).map_err(Refusal::Io)?;
        if xxh3_64(&table) != header.table {
            return Err(Refusal::Table);
        }
        let hashes = table.as_chunks::<HASH_BYTES>().0.iter().map(|hash| u64::from_le_bytes(*hash));
        Ok(Some(PackedFile { file, header, hashes: hashes.collect(), layout }))
    }

    /// What it says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }
}

impl Weights for PackedFile<'_> {
    type Fault = Refusal;

    fn unit_bytes(&self, _weight: &WeightPlan) -> usize {
        CHUNK_BYTES
    }

    fn fill(
        &self,
        index: usize,
        weight: &WeightPlan,
        first_unit: usize,
        to: &mut [u8],
    ) -> Result<(), Refusal> {
        for (unit, to) in (first_unit..).zip(to.chunks_mut(CHUNK_BYTES)) {
            let Some(chunk) = self.layout.chunk(index, unit) else {
                unreachable!("tables are no weights")
            };
            self.file.read_exact_at(to, chunk.offset).map_err(Refusal::Io)?;
            if self.hashes.get(chunk.number) != Some(&chunk_hash(chunk.number, to)) {
                let weight = weight.name.clone();
                return Err(Refusal::Chunk { weight, offset: chunk.offset });
            }
        }
        Ok(())
    }
}
