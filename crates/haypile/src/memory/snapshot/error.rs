//! Errors of snapshot files.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::private_file::Exposed;

/// The error of a snapshot file that could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// A system call failed.
    #[error("cannot {action} the snapshot {}: {source}{}", path.display(), hint(source))]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The path of the snapshot.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The name belongs to something other than a file.
    #[error("{} is {what} and not a file; name a file for the snapshot", path.display())]
    NotAFile {
        /// The path of the file.
        path: PathBuf,
        /// The kind of file that has the name.
        what: &'static str,
    },
    /// The owner of the file is neither root nor the effective user of this process.
    #[error(
        "the snapshot {} belongs to another user (uid {uid}), which can write anything into it; \
         it is neither read nor replaced; name another file, or allow this one with \
         allow_shared=yes",
        path.display()
    )]
    OtherOwner {
        /// The path of the file.
        path: PathBuf,
        /// The user who owns the file.
        uid: u32,
    },
    /// Users other than its owner can write the file.
    #[error(
        "the snapshot {} can be written by users other than its owner (mode {mode:o}); it is \
         neither read nor replaced; chmod it to 600, or allow this with allow_shared=yes",
        path.display()
    )]
    WritableByOthers {
        /// The path of the file.
        path: PathBuf,
        /// The permissions of the file.
        mode: u32,
    },
    /// The file is not a snapshot of this program, and is left as it is.
    #[error(
        "{} is not a snapshot of a cache, and is left as it is; name another file for the \
         snapshot, or move this one away", path.display()
    )]
    NotASnapshot {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file has a format that this program does not know.
    #[error(
        "the snapshot {} has format version {major}.{minor}, and this program reads {}.x; use a \
         newer program, or delete the file", path.display(), super::format::MAJOR
    )]
    UnknownVersion {
        /// The path of the file.
        path: PathBuf,
        /// The major version of the file.
        major: u16,
        /// The minor version of the file.
        minor: u16,
    },
    /// The file, or one block of it, differs from what was written.
    #[error("the snapshot {} is damaged: {what}; delete it to stop this message", path.display())]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The part of the file that is damaged.
        what: Damage,
    },
    /// A key is longer than any store accepts.
    #[error(
        "a key of {key_bytes} bytes is too long for a snapshot, which takes at most 65535; the \
         entry is left out"
    )]
    KeyTooLong {
        /// The length of the key in bytes.
        key_bytes: usize,
    },
    /// The bound is below the size of a snapshot without entries.
    #[error(
        "the snapshot {} is limited to {max_bytes} bytes, and needs {least_bytes} even without \
         entries; raise the limit", path.display()
    )]
    MaxTooSmall {
        /// The path of the file.
        path: PathBuf,
        /// The allowed size, in bytes.
        max_bytes: u64,
        /// The bytes of a snapshot without entries.
        least_bytes: u64,
    },
    /// An allocation for a block failed.
    #[error(
        "the snapshot {} cannot be read or written, because there is no memory for a block of \
         {bytes} bytes",
        path.display()
    )]
    OutOfMemory {
        /// The path of the file.
        path: PathBuf,
        /// The length of the block in bytes.
        bytes: u64,
    },
    /// The writer has failed before, and its file is gone.
    #[error("the snapshot {} is not written any further, because an earlier write failed", path.display())]
    GivenUp {
        /// The path of the file that was to be written.
        path: PathBuf,
    },
}

/// The part of a snapshot that is damaged: its header, its end, its footer, its table of blocks, or
/// one block of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The header differs from what was written.
    #[error("the snapshot's header does not match its checksum, so that no entry is loaded")]
    Header,
    /// The file has no valid end, as if it was cut off.
    #[error(
        "the snapshot's end is missing, because the file was cut off or not written to the end, so that no entry is loaded"
    )]
    End,
    /// The end of the file differs from what was written.
    #[error(
        "the snapshot's footer does not match its checksum or the length of the file, so that no entry is loaded"
    )]
    Footer,
    /// The table of blocks differs from what was written.
    #[error(
        "the snapshot's table of blocks does not match its checksum or the blocks, so that no entry is loaded"
    )]
    Table,
    /// A block differs from what was written. The others are not affected.
    #[error(
        "the snapshot's block at offset {offset} does not match its checksum, so that the entries of that block are not loaded"
    )]
    Block {
        /// The offset of the block, in bytes from the start of the file.
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

    /// Whether the error is that the snapshot does not exist, as when a cache opens for the first
    /// time.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == ErrorKind::NotFound)
    }
}

/// Returns advice for an error.
fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; free some space, or bound the snapshot with persist_max; the old snapshot is intact"
        }
        ErrorKind::FileTooLarge => {
            "; bound the snapshot with persist_max; the old snapshot is intact"
        }
        ErrorKind::NotFound => "; check that the folder exists",
        ErrorKind::PermissionDenied => {
            "; let this user read the file and write to its folder, or name another file"
        }
        ErrorKind::ReadOnlyFilesystem => "; name a file on another file system",
        _ => "",
    }
}
