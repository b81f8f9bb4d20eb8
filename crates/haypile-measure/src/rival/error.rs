//! Errors of rivals.

use std::io;
use std::path::PathBuf;

/// Rivals that cannot be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RivalError {
    /// No checkout was named, and none was found.
    #[error(
        "there is no checkout of haypile with rivals/*/rival.toml in or above the working directory, \
         nor above this program; name one with --checkout DIRECTORY or HAYPILE_CHECKOUT"
    )]
    NoCheckout,
    /// The path given is not a checkout.
    #[error("{path}: no checkout of haypile, which has rivals/*/rival.toml ({named_by})")]
    NotACheckout {
        /// The path given.
        path: PathBuf,
        /// By what.
        named_by: &'static str,
    },
    /// Something cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// A manifest says what it may not say, or does not say what it has to.
    #[error("{path}, line {line}: {wrong}")]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// The reason, and the allowed values.
        wrong: String,
    },
    /// Two rivals have the same subject.
    #[error("{second}: the subject '{subject}' is in {first} too")]
    Twice {
        /// The subject.
        subject: String,
        /// The manifest of one of them.
        first: PathBuf,
        /// That of the other.
        second: PathBuf,
    },
    /// There are more rivals than anybody has.
    #[error("{checkout}: there are more than {limit} rivals")]
    TooMany {
        /// The checkout.
        checkout: PathBuf,
        /// The most that there may be.
        limit: usize,
    },
    /// No rival has the name.
    #[error("unknown rival '{name}' (known: {allowed})")]
    Unknown {
        /// The name given.
        name: String,
        /// The names.
        allowed: String,
    },
}
