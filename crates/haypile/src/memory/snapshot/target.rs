//! The target of a snapshot: a temporary file in the same folder, renamed when it is complete.

use std::fs::{self, File, FileType};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::SnapshotError;
use super::format::MAGIC;
use crate::private_file::{Naming, check_private, folder_of, open_at_once, sync_folder};

const NAMING: Naming = Naming { prefix: ".haypile-snapshot-", suffix: ".tmp" };

/// A snapshot file that is being written and has no name yet. Dropping this value removes the file.
#[derive(Debug)]
pub(super) struct SnapshotTarget {
    /// The final path of the file: the target of a symbolic link, not the link.
    path: PathBuf,
    file: NamedTempFile,
}

impl SnapshotTarget {
    /// Creates a temporary file next to `path` that only this user can read, because a snapshot is
    /// as private as the cache.
    pub(super) fn create(path: &Path, allow_shared: bool) -> Result<Self, SnapshotError> {
        let resolved = match fs::canonicalize(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
            other => other.map_err(SnapshotError::io("find", path))?,
        };
        check_replaceable(&resolved, allow_shared)?;
        let file = NAMING.create_in(folder_of(&resolved));
        let file = file.map_err(SnapshotError::io("create", path))?;
        Ok(Self { path: resolved, file })
    }

    /// Returns the snapshot file, to be written from its start to its end.
    pub(super) fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Syncs the snapshot file to disk and gives it its name, in place of any previous file.
    pub(super) fn publish(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        sync_folder(folder_of(&self.path))
    }
}

/// Opens a snapshot file; unless `allow_shared`, returns an error if users other than this one and
/// root can write it. Does not wait for a FIFO.
pub(super) fn open_file(path: &Path, allow_shared: bool) -> Result<File, SnapshotError> {
    // Checked before opening, because opening a device can have effects.
    let kind = fs::metadata(path).map_err(SnapshotError::io("open", path))?.file_type();
    check_is_file(path, kind)?;
    let file = open_at_once(path).map_err(SnapshotError::io("open", path))?;
    // Checks the open file, because the path may lead to another one by now.
    let metadata = file.metadata().map_err(SnapshotError::io("open", path))?;
    check_is_file(path, metadata.file_type())?;
    match check_private(&metadata) {
        Err(exposed) if !allow_shared => Err(SnapshotError::exposed(path, exposed)),
        _ => Ok(file),
    }
}

fn check_is_file(path: &Path, kind: FileType) -> Result<(), SnapshotError> {
    if kind.is_file() {
        return Ok(());
    }
    Err(SnapshotError::NotAFile { path: path.to_owned(), what: what_it_is(kind) })
}

fn what_it_is(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;

        if kind.is_fifo() {
            return "a FIFO";
        }
        if kind.is_socket() {
            return "a socket";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
    }
    if kind.is_dir() { "a folder" } else { "something else" }
}

/// Refuses to replace anything but nothing, an empty file and a snapshot in whatever state: a wrong
/// name must not cost anybody a file.
fn check_replaceable(path: &Path, allow_shared: bool) -> Result<(), SnapshotError> {
    let mut start = Vec::new();
    match open_file(path, allow_shared) {
        Err(error) if error.is_not_found() => return Ok(()),
        file => file?.take(MAGIC.len() as u64).read_to_end(&mut start),
    }
    .map_err(SnapshotError::io("read", path))?;
    // A part of the magic number is a snapshot that was cut off.
    if MAGIC.starts_with(&start) {
        return Ok(());
    }
    Err(SnapshotError::NotASnapshot { path: path.to_owned() })
}
