//! Why a packed file is not used.

use std::{fmt, io};

/// Why a packed file is not used.
#[derive(Debug)]
pub enum Refusal {
    /// It cannot be opened or read.
    Io(io::Error),
    /// It is a folder, a pipe or a device.
    NotRegular,
    /// It does not begin as a packed file does.
    Magic,
    /// Its header does not have the hash that it says.
    Header,
    /// It was written in another form, or for other tensors or another packed layout.
    Layout,
    /// It is shorter or longer than it should be.
    Length {
        /// What it should be, in bytes.
        wanted: u64,
        /// What it is.
        found: u64,
    },
    /// The table of hashes is not the one that was written.
    Table,
    /// A chunk does not have the hash that it should.
    Chunk {
        /// The weight that it is of.
        weight: String,
        /// Where it is, in bytes from the start of the file.
        offset: u64,
    },
    /// The model's file is another one than it was made from.
    Stale,
}

impl Refusal {
    /// Whether it is what happens in the course of things, rather than damage, which somebody
    /// should hear of.
    pub fn is_expected(&self) -> bool {
        matches!(self, Refusal::Layout | Refusal::Stale)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Io(cause) => write!(f, "it cannot be read: {cause}"),
            Refusal::NotRegular => f.write_str("it is no regular file"),
            Refusal::Magic => f.write_str("it is no packed file"),
            Refusal::Header => f.write_str("it is damaged in its header"),
            Refusal::Layout => {
                f.write_str("it is stale: another version wrote it, or for another model")
            }
            Refusal::Length { wanted, found } => {
                write!(f, "it is damaged: it has {found} bytes instead of {wanted}")
            }
            Refusal::Table => f.write_str("it is damaged in its table of hashes"),
            Refusal::Chunk { weight, offset } => {
                write!(f, "it is damaged in `{weight}`, at byte {offset} or after")
            }
            Refusal::Stale => f.write_str("it is stale: the model's file has changed"),
        }
    }
}

impl std::error::Error for Refusal {}
