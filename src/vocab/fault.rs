//! Everything that can be wrong with a vocabulary, a conversation or a text.

/// Why a vocabulary could not be built, or a text not be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Placeholder of the interface.
    NotYet,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not yet")
    }
}

impl std::error::Error for Fault {}
