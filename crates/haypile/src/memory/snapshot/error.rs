//! What can go wrong with a snapshot.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::private_file::Exposed;

/// A snapshot that could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The system refused something.
    #[error("cannot {action} the snapshot {}: {source}{}", path.display(), hint(source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// The snapshot.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Under this name there is no file but something else.
    #[error("{} is {what} and not a file; name a file for the snapshot", path.display())]
    NotAFile {
        /// The name.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// The owner of the file is neither root nor the effective user of this process.
    #[error(
        "the snapshot {} belongs to another user (uid {uid}), who can write anything into it; it is \
         neither read nor replaced; name another file, or allow this one with allow_shared=yes",
        path.display()
    )]
    OtherOwner {
        /// The file.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// Users other than its owner can write the file.
    #[error(
        "the snapshot {} can be written by users other than its owner (mode {mode:o}); it is \
         neither read nor replaced; chmod it to 600, or allow this with allow_shared=yes",
        path.display()
    )]
    WritableByOthers {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file was not written by this program. It is left as it is.
    #[error(
        "{} is not a snapshot of a cache, and is left as it is; name another file for the \
         snapshot, or move this one away", path.display()
    )]
    NotASnapshot {
        /// The file.
        path: PathBuf,
    },
    /// The file has a format that this program does not know.
    #[error(
        "the snapshot {} has format version {major}.{minor}, and this program reads {}.x; use a \
         newer program, or delete the file", path.display(), super::format::MAJOR
    )]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// Its major version.
        major: u16,
        /// Its minor version.
        minor: u16,
    },
    /// The file, or one block of it, is not what was written.
    #[error("the snapshot {} is damaged: {what}; delete it to be rid of this", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: Damage,
    },
    /// A key is longer than any store takes.
    #[error("a key of {key_bytes} bytes is too long for a snapshot, which takes at most 65535")]
    KeyTooLong {
        /// The length of the key.
        key_bytes: usize,
    },
    /// Not even a snapshot without entries is so small.
    #[error(
        "the snapshot {} may have {max_bytes} bytes, and has {least_bytes} without a single \
         entry; allow more", path.display()
    )]
    MaxTooSmall {
        /// The file.
        path: PathBuf,
        /// The bytes that were allowed.
        max_bytes: u64,
        /// The bytes of a snapshot without entries.
        least_bytes: u64,
    },
    /// There is no memory for a block.
    #[error("there is no memory for a block of {bytes} bytes of the snapshot {}", path.display())]
    OutOfMemory {
        /// The file.
        path: PathBuf,
        /// The length of the block.
        bytes: u64,
    },
    /// The writer has failed before, and its file is gone.
    #[error("the snapshot {} was given up after an earlier failure", path.display())]
    GivenUp {
        /// The file that was to be written.
        path: PathBuf,
    },
}

/// What is wrong with a damaged snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The header is not what was written.
    #[error("its header does not match its checksum")]
    Header,
    /// The file does not end as one that was written to the end.
    #[error("its end is missing; it was cut off, or was not written to the end")]
    End,
    /// The end of the file is not what was written.
    #[error("its footer does not match its checksum or the length of the file")]
    Footer,
    /// The table of blocks is not what was written.
    #[error("its table of blocks does not match its checksum or the blocks")]
    Table,
    /// A block is not what was written. The others are not affected.
    #[error("the block at offset {offset} does not match its checksum; it is left out")]
    Block {
        /// Where the block is, in bytes from the start of the file.
        offset: u64,
    },
}

impl SnapshotError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub(super) fn exposed(path: &Path, exposed: Exposed) -> Self {
        let path = path.to_owned();
        match exposed {
            Exposed::Owner(uid) => Self::OtherOwner { path, uid },
            Exposed::Mode(mode) => Self::WritableByOthers { path, mode },
        }
    }

    /// Whether there simply is no file: a cache that opens for the first time.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == ErrorKind::NotFound)
    }
}

/// What to do about it.
fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; free some space, or bound the snapshot with persist_max; the old snapshot is intact"
        }
        ErrorKind::FileTooLarge => {
            "; bound the snapshot with persist_max; the old snapshot is intact"
        }
        ErrorKind::NotFound => "; does the folder exist?",
        ErrorKind::PermissionDenied => {
            "; let this user read the file and write to its folder, or name another file"
        }
        ErrorKind::ReadOnlyFilesystem => "; name a file on another file system",
        _ => "",
    }
}
