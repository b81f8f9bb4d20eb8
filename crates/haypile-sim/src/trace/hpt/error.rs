//! Errors of `.hpt` files.

/// The error of an `.hpt` file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HptError {
    /// The file begins with other bytes than an `.hpt` file.
    #[error(
        "this is not an .hpt file; name its format, or create one with 'haypile trace convert'"
    )]
    NotHpt,
    /// The file is an `.hpt` file whose integers are in the other byte order.
    #[error(
        "this .hpt file is big-endian, but the format is little-endian; convert the original trace \
        again"
    )]
    ByteOrder,
    /// The file has a major version that this program does not know.
    #[error(
        "this .hpt file has version {major}.{minor}, but this program reads version 1; use a newer \
        haypile, or convert the original trace again"
    )]
    Version {
        /// The major version of the file.
        major: u16,
        /// The minor version of the file.
        minor: u16,
    },
    /// The file is shorter than its header states.
    #[error(
        "this .hpt file is truncated: it has {actual_bytes} of {expected_bytes} bytes; copy it \
         again, or convert the original trace again"
    )]
    Truncated {
        /// The bytes of the file.
        actual_bytes: u64,
        /// The number of bytes that the header states.
        expected_bytes: u64,
    },
    /// The file contradicts itself.
    #[error(
        "this .hpt file is damaged: {what}; copy it again, or convert the original trace again"
    )]
    Damaged {
        /// The first contradiction.
        what: String,
    },
}

impl HptError {
    /// Creates the error of a damaged `.hpt` file, whose content contradicts itself.
    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }
}
