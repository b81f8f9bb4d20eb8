//! [`Writers`]: the users and programs that can have written what a store returns.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// The users and programs, other than this process, that can have written the values of a store: important for a
/// program that executes values, as loading a Python pickle does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Writers {
    /// The users that may write this file, as it was when the store opened it or was asked.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The user id of the file's owner.
        owner: u32,
        /// The permissions of the file, such as 0o600.
        mode: u32,
    },
    /// Anyone that reaches this store: a server, for example. It is named without passwords.
    Anyone {
        /// The URL of the store.
        store: String,
    },
}

impl Writers {
    pub(crate) fn of_file(path: &Path, metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let (owner, mode) = {
            use std::os::unix::fs::MetadataExt;

            (metadata.uid(), metadata.mode() & 0o7777)
        };
        #[cfg(not(unix))]
        let (owner, mode) = {
            let _ = metadata;
            (0, 0)
        };
        Self::File { path: path.to_owned(), owner, mode }
    }
}
