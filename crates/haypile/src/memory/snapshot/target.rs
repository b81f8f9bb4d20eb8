//! Where a snapshot goes: a file beside it until it is whole, and under its name then.
//!
//! The file beside it is locked for as long as its writer lives. What has such a name and is not
//! locked was left by a process that died, and is removed by the next writer in the folder.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::SnapshotError;
use super::format::MAGIC;

const PREFIX: &str = ".haypile-snapshot-";
const SUFFIX: &str = ".tmp";

/// How often a new file may be taken for a leftover before it could be locked.
const ATTEMPTS: usize = 16;

/// A snapshot that has no name yet. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Target {
    /// What has the name in the end: where a symbolic link leads, not the link.
    path: PathBuf,
    folder: PathBuf,
    file: NamedTempFile,
}

impl Target {
    /// Begins a file beside `path`, whose content is private to the user as a cache is.
    pub(super) fn create(path: &Path, allow_shared: bool) -> Result<Self, SnapshotError> {
        let resolved = match fs::canonicalize(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
            other => other.map_err(SnapshotError::io("find", path))?,
        };
        check_replaceable(&resolved, allow_shared)?;
        let folder = match resolved.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        remove_leftovers(&folder);
        let file = create_locked(&folder).map_err(SnapshotError::io("create", path))?;
        Ok(Self { path: resolved, folder, file })
    }

    /// The file, to be written from its start to its end.
    pub(super) fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Brings the file to disk and gives it its name, instead of what had it before.
    pub(super) fn publish(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        if cfg!(unix) {
            File::open(self.folder)?.sync_all()?;
        }
        Ok(())
    }
}

/// Opens a file; unless `allow_shared`, only one that no users but this one and root can write. Does
/// not wait for a FIFO.
pub(super) fn open_file(path: &Path, allow_shared: bool) -> Result<File, SnapshotError> {
    // Before it is opened: opening a device can do something.
    let kind = fs::metadata(path).map_err(SnapshotError::io("open", path))?.file_type();
    check_is_file(path, kind)?;
    let file = open_at_once(path).map_err(SnapshotError::io("open", path))?;
    // Of the file that is open: under the path there may be another by now.
    let metadata = file.metadata().map_err(SnapshotError::io("open", path))?;
    check_is_file(path, metadata.file_type())?;
    #[cfg(unix)]
    if !allow_shared {
        use std::os::unix::fs::MetadataExt;

        let user = rustix::process::geteuid().as_raw();
        check_private(path, metadata.uid(), metadata.mode(), user)?;
    }
    #[cfg(not(unix))]
    let _ = allow_shared;
    Ok(file)
}

fn open_at_once(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;

        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    options.open(path)
}

fn check_is_file(path: &Path, kind: FileType) -> Result<(), SnapshotError> {
    if kind.is_file() {
        return Ok(());
    }
    Err(SnapshotError::NotAFile { path: path.to_owned(), what: what_it_is(kind) })
}

/// Refuses a file that users other than `user` and root can write: whoever can write a snapshot decides
/// what the cache serves.
#[cfg(unix)]
fn check_private(path: &Path, owner: u32, mode: u32, user: u32) -> Result<(), SnapshotError> {
    let path = || path.to_owned();
    if owner != user && owner != 0 {
        return Err(SnapshotError::OtherOwner { path: path(), uid: owner });
    }
    if mode & 0o022 != 0 {
        return Err(SnapshotError::WritableByOthers { path: path(), mode: mode & 0o777 });
    }
    Ok(())
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

/// Only nothing, an empty file and a snapshot, whatever its state, are replaced: a wrong name must
/// not cost anybody a file.
fn check_replaceable(path: &Path, allow_shared: bool) -> Result<(), SnapshotError> {
    let mut start = Vec::new();
    match open_file(path, allow_shared) {
        Err(error) if error.is_not_found() => return Ok(()),
        file => file?.take(MAGIC.len() as u64).read_to_end(&mut start),
    }
    .map_err(SnapshotError::io("read", path))?;
    // The start of a start is a snapshot that was cut off.
    if MAGIC.starts_with(&start) {
        return Ok(());
    }
    Err(SnapshotError::NotASnapshot { path: path.to_owned() })
}

fn create_locked(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    for _ in 0..ATTEMPTS {
        let file = builder.tempfile_in(folder)?;
        // Where the file system has no locks, nobody else gets one either and the file is safe.
        let is_taken = matches!(file.as_file().try_lock(), Err(fs::TryLockError::WouldBlock));
        // Between creation and lock another writer may have taken it for a leftover.
        if !is_taken && file.path().exists() {
            return Ok(file);
        }
    }
    Err(io::Error::other("other programs keep removing the new file"))
}

/// Removes what writers that died left in a folder. What does not work is left to the next writer.
fn remove_leftovers(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|n| n.starts_with(PREFIX) && n.ends_with(SUFFIX));
        if is_ours
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = open_at_once(&entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const ROOT: u32 = 0;
    const USER: u32 = 1_000;

    #[test]
    fn a_file_is_private_if_only_its_owner_and_root_can_write_it() {
        let check = |owner, mode| check_private(Path::new("snapshot"), owner, mode, USER);
        for owner in [USER, ROOT] {
            for mode in [0o100_600, 0o100_400, 0o100_644, 0o100_755] {
                assert!(check(owner, mode).is_ok(), "{owner} {mode:o}");
            }
            for mode in [0o620, 0o602, 0o664, 0o666] {
                let error = check(owner, 0o100_000 | mode).unwrap_err();
                let SnapshotError::WritableByOthers { mode: found, .. } = error else {
                    panic!("{error}");
                };
                assert_eq!(found, mode);
            }
        }
        let error = check(USER + 1, 0o100_600).unwrap_err();
        assert!(matches!(error, SnapshotError::OtherOwner { uid: 1_001, .. }), "{error}");
        // Root trusts no other user either: that user would decide what root's cache serves.
        assert!(check_private(Path::new("snapshot"), USER, 0o100_600, ROOT).is_err());
    }
}
