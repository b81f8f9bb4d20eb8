//! Errors of rivals.

use std::io;
use std::path::PathBuf;

/// An error while finding rivals (other caches) or reading their manifests.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RivalError {
    /// No checkout was named, and none was found.
    #[error(
        "there is no checkout of haypile with rivals/*/rival.toml in or above the working \
         directory, nor above this program; name one in the variable HAYPILE_CHECKOUT (haypile rivals also takes \
         --checkout DIRECTORY)"
    )]
    NoCheckout,
    /// The path given is not a checkout.
    #[error(
        "{path}, named by {named_by}, is not a checkout of haypile, because it has no \
         rivals/*/rival.toml"
    )]
    NotACheckout {
        /// The path given.
        path: PathBuf,
        /// The option or variable that named the path.
        named_by: &'static str,
    },
    /// A file or folder cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// A manifest breaks the rules of manifests.
    #[error("{path}, line {line}: the manifest of a rival is wrong: {wrong}")]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The reason, and the allowed values.
        wrong: String,
    },
    /// Two rivals have the same subject.
    #[error(
        "two rivals have the subject '{subject}', in {first} and {second}; rename it in one of \
         them"
    )]
    Twice {
        /// The subject.
        subject: String,
        /// The manifest of one of them.
        first: PathBuf,
        /// The manifest of the other rival.
        second: PathBuf,
    },
    /// The checkout has more rivals than are read.
    #[error(
        "the checkout {checkout} has more than {limit} rivals, the limit; remove some of its \
         folders in rivals"
    )]
    TooMany {
        /// The checkout.
        checkout: PathBuf,
        /// The largest number of rivals.
        limit: usize,
    },
    /// No rival has the name.
    #[error("unknown rival '{name}' (known: {allowed})")]
    Unknown {
        /// The name given.
        name: String,
        /// The known names.
        allowed: String,
    },
}
