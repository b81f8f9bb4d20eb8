//! Errors of icon files.

use std::io;
use std::path::{Path, PathBuf};

/// The error of a file that is not an icon, or cannot be read. A failing cache is not an error:
/// icons are rendered without it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IconError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The reason for the failure.
        source: io::Error,
    },
    /// The file is larger than [`crate::MAX_FILE_BYTES`].
    #[error("{path} has more than {} bytes, the limit for an icon", crate::MAX_FILE_BYTES, path = path.display())]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
    },
    /// The contents are not a picture.
    #[error("{path}: {wrong}", path = path.display())]
    Broken {
        /// The path of the file.
        path: PathBuf,
        /// The reason for the failure.
        wrong: String,
    },
    /// The size is 0, or larger than [`crate::MAX_SIDE_PX`] pixels.
    #[error(
        "an icon cannot have {side_px} pixels a side; it has to have from 1 to {}",
        crate::MAX_SIDE_PX
    )]
    Size {
        /// The size in pixels.
        side_px: u32,
    },
}

impl IconError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// Whether the error is that the file does not exist any more.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    pub(crate) fn broken(path: &Path, wrong: &dyn std::fmt::Display) -> Self {
        Self::Broken { path: path.into(), wrong: wrong.to_string() }
    }
}
