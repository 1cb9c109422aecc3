//! Which model a packed file belongs to, and whether the model's files have changed.

use crate::gguf::Gguf;
use dllm_arena::FileStamp;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::Xxh3;

/// A file that changed less than this ago may change again without its times showing it: file
/// systems count in ticks of up to two seconds.
const SETTLED_AFTER_NS: i128 = 3_000_000_000;

/// The files of a model at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    stamps: Vec<Option<FileStamp>>,
    is_settled: bool,
}

impl Identity {
    /// Those of `gguf` now.
    ///
    /// # Errors
    /// What the system says.
    pub fn of(gguf: &Gguf) -> io::Result<Identity> {
        Ok(Identity::at(gguf.stamps()?, now_ns()))
    }

    fn at(stamps: Vec<Option<FileStamp>>, now_ns: i128) -> Identity {
        let last_change_ns = |stamp: &FileStamp| stamp.changed_ns.max(stamp.modified_ns);
        let mut files = stamps.iter().flatten();
        let is_settled = files.all(|file| last_change_ns(file) < now_ns - SETTLED_AFTER_NS);
        Identity { stamps, is_settled }
    }

    /// Whether a change from now on would show in the times. It would in those of bytes that cannot
    /// change.
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// A hash of inodes, lengths and times; 0, which stands for nothing, where it can't be relied
    /// on or where there are no files.
    pub fn stamp(&self) -> u128 {
        if !self.is_settled || self.stamps.iter().any(Option::is_none) {
            return 0;
        }
        let mut hasher = Xxh3::new();
        for stamp in self.stamps.iter().flatten() {
            hasher.update(&stamp.inode.to_le_bytes());
            hasher.update(&stamp.bytes.to_le_bytes());
            hasher.update(&stamp.modified_ns.to_le_bytes());
            hasher.update(&stamp.changed_ns.to_le_bytes());
        }
        hasher.digest128()
    }

    /// Whether the files have not changed since.
    pub fn is_still_of(&self, gguf: &Gguf) -> bool {
        gguf.stamps().is_ok_and(|stamps| stamps == self.stamps)
    }
}

/// What a packed file is called by: a hash of the model's headers and length.
pub fn key(gguf: &Gguf) -> u128 {
    let mut hasher = Xxh3::new();
    // Without the hashes of tensors it is the hash of the headers.
    hasher.update(gguf.hash_with(&[]).as_bytes());
    hasher.update(&gguf.file_bytes().to_le_bytes());
    hasher.digest128()
}

/// A clock before 1970 says 0, by which no file is settled.
fn now_ns() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_NS: i128 = 1_700_000_000_000_000_000;

    fn file(inode: u64, bytes: u64, modified_ns: i128, changed_ns: i128) -> Option<FileStamp> {
        Some(FileStamp { inode, bytes, modified_ns, changed_ns })
    }

    #[test]
    fn a_stamp_tells_of_everything_that_it_is_made_of() {
        let stamp = |stamps: Vec<_>| Identity::at(stamps, NOW_NS).stamp();
        let old = file(1, 2, 3, 4);
        let plain = stamp(vec![old, old]);
        assert_ne!(plain, 0);
        assert_eq!(plain, stamp(vec![old, old]));
        for other in [file(9, 2, 3, 4), file(1, 9, 3, 4), file(1, 2, 9, 4), file(1, 2, 3, 9)] {
            assert_ne!(stamp(vec![other, old]), plain);
            assert_ne!(stamp(vec![old, other]), plain);
        }
        assert_ne!(stamp(vec![old]), plain);
    }

    #[test]
    fn times_of_late_are_not_relied_on() {
        let second = 1_000_000_000;
        for (age_ns, settled) in [(4 * second, true), (2 * second, false), (-second, false)] {
            for stamps in [file(1, 1, NOW_NS - age_ns, 0), file(1, 1, 0, NOW_NS - age_ns)] {
                let identity = Identity::at(vec![file(2, 1, 0, 0), stamps], NOW_NS);
                assert_eq!(identity.is_settled(), settled, "{age_ns}");
                assert_eq!(identity.stamp() != 0, settled, "{age_ns}");
            }
        }
    }

    #[test]
    fn bytes_that_cannot_change_have_no_stamp() {
        let identity = Identity::at(vec![None], NOW_NS);
        assert!(identity.is_settled());
        assert_eq!(identity.stamp(), 0);
        assert_eq!(Identity::at(vec![file(1, 2, 3, 4), None], NOW_NS).stamp(), 0);
    }
}
