//! Making a file, and opening one that is there.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FallocateFlags, RenameFlags};

use super::filesystem;
use super::header::{self, Header, HeaderError};
use super::kernel::{self, REPLACER_AT};
use super::layout::Geometry;
use super::{segment, stamp};

/// How often opening begins anew, where files come and go under the path.
const ATTEMPTS: u32 = 100;

/// Why a file could not be opened or made. Texts follow the URL and ": ".
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("{} cannot be used: {source}", path.display())]
    Header { path: PathBuf, source: HeaderError },
    #[error(
        "there is no {}, and a cache that is only read is not made; open it once for writing",
        .0.display()
    )]
    Missing(PathBuf),
    #[error("{} is a {what}, and has to be an ordinary file", path.display())]
    NoFile { path: PathBuf, what: &'static str },
    #[error(
        "{} lies on {name}, a network file system, where processes of several machines would destroy \
         the mapped file; put it on a local one, such as /dev/shm or /var/tmp",
        path.display()
    )]
    Network { path: PathBuf, name: &'static str },
    #[error(
        "{} can be written by others than its owner (mode {mode:o}), who could then have this \
         program read anything; chmod it to 600, or allow that with allow_shared=yes",
        path.display()
    )]
    Writable { path: PathBuf, mode: u32 },
    #[error(
        "there is no room for {bytes} bytes at {}: {source}; choose a smaller size= or another path",
        path.display()
    )]
    NoRoom { path: PathBuf, bytes: u64, source: io::Error },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// A file that has been opened and looked at.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) header: Header,
}

/// What is wanted of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Of a new one.
    pub(super) size_bytes: u64,
    /// Of a new one.
    pub(super) entry_bytes: u64,
    pub(super) is_writable: bool,
    /// Others than the owner may write it.
    pub(super) may_be_shared: bool,
    pub(super) now_ms: u64,
}

/// Opens the file at a path, or makes it.
pub(super) fn open_or_create(path: &Path, wanted: &Wanted) -> Result<Opened, FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    for _ in 0..ATTEMPTS {
        match open(path, wanted) {
            Err(FileError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            other => return other,
        }
        if !wanted.is_writable {
            return Err(FileError::Missing(path.to_owned()));
        }
        let made = make(path, wanted)?;
        let renamed =
            rustix::fs::renameat_with(CWD, made.path(), CWD, path, RenameFlags::NOREPLACE);
        match renamed {
            Ok(()) => {
                made.keep();
            }
            // Another process was faster.
            Err(rustix::io::Errno::EXIST) => {}
            // A file system without this: a link does not replace either.
            Err(rustix::io::Errno::INVAL) => match std::fs::hard_link(made.path(), path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(io_error(error));
                }
                _ => {}
            },
            Err(error) => return Err(io_error(error.into())),
        }
    }
    Err(io_error(io::Error::other("it was made and removed again and again by others")))
}

/// Puts a new, empty file in the place of what is at a path. Gives back the file that was there, whose
/// users have to be told, with a lock that nobody else replaces it under.
fn replace(path: &Path, wanted: &Wanted) -> Result<Option<File>, FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    let old = match kernel::open(path, true) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(io_error(error)),
    };
    if let Some(old) = &old {
        check_kind(path, old)?;
        if !kernel::set_lock(old, libc::F_WRLCK, REPLACER_AT).map_err(io_error)? {
            return Err(io_error(io::Error::other("another process is replacing it just now")));
        }
    }
    let made = make(path, wanted)?;
    std::fs::rename(made.path(), path).map_err(io_error)?;
    made.keep();
    Ok(old)
}

/// As [`replace`], and tells who uses the old file to open the new one.
pub(super) fn replace_and_retire(path: &Path, wanted: &Wanted) -> Result<(), FileError> {
    let Some(old) = replace(path, wanted)? else {
        return Ok(());
    };
    // What is no file of ours has no users who would look.
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    let mut page = vec![0; usize::try_from(header::BYTES).expect("a page")];
    let bytes = old.metadata().map_err(io_error)?.size();
    if old.read_exact_at(&mut page, 0).is_ok() && Header::decode(&page, bytes).is_ok() {
        old.write_all_at(&header::RETIRED.to_le_bytes(), header::STATE).map_err(io_error)?;
    }
    Ok(())
}

fn check_kind(path: &Path, file: &File) -> Result<(), FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    let kind = file.metadata().map_err(io_error)?.file_type();
    if !kind.is_file() {
        let what = if kind.is_dir() { "directory" } else { "device or pipe" };
        return Err(FileError::NoFile { path: path.to_owned(), what });
    }
    Ok(())
}

fn open(path: &Path, wanted: &Wanted) -> Result<Opened, FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    // A pipe would wait for its other end.
    if let Ok(metadata) = path.symlink_metadata() {
        let kind = metadata.file_type();
        let what = if kind.is_symlink() {
            "symbolic link"
        } else if kind.is_dir() {
            "directory"
        } else {
            "device or pipe"
        };
        if !kind.is_file() {
            return Err(FileError::NoFile { path: path.to_owned(), what });
        }
    }
    let mut file = kernel::open(path, wanted.is_writable).map_err(io_error)?;
    check_kind(path, &file)?;
    if let Some(name) = filesystem::network(&file) {
        return Err(FileError::Network { path: path.to_owned(), name });
    }
    let metadata = file.metadata().map_err(io_error)?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o022 != 0 && !wanted.may_be_shared {
        return Err(FileError::Writable { path: path.to_owned(), mode });
    }
    let mut page = Vec::new();
    (&mut file).take(header::BYTES).read_to_end(&mut page).map_err(io_error)?;
    let header = Header::decode(&page, metadata.size())
        .map_err(|source| FileError::Header { path: path.to_owned(), source })?;
    Ok(Opened { file, header })
}

/// A file under a name of its own, removed if it is not kept.
#[derive(Debug)]
struct Made(Option<tempfile::TempPath>);

impl Made {
    fn path(&self) -> &Path {
        self.0.as_deref().expect("it is there until it is kept")
    }

    /// It has another name now.
    fn keep(mut self) {
        if let Some(path) = self.0.take() {
            let _ = path.keep();
        }
    }
}

/// Makes a complete file beside the path.
fn make(path: &Path, wanted: &Wanted) -> Result<Made, FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    let named = builder.prefix(".haypile-").suffix(".new").tempfile_in(directory);
    let (mut file, made) = named.map_err(io_error)?.into_parts();
    if let Some(name) = filesystem::network(&file) {
        return Err(FileError::Network { path: path.to_owned(), name });
    }
    let bytes = wanted.size_bytes;
    let no_room = |source: io::Error| FileError::NoRoom { path: path.to_owned(), bytes, source };
    // What is not there now would be a SIGBUS later.
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)
        .map_err(|error| no_room(error.into()))?;
    let random = || {
        use std::hash::{BuildHasher, Hasher};
        std::collections::hash_map::RandomState::new().build_hasher().finish()
    };
    let header = Header {
        geometry: Geometry::plan(bytes, wanted.entry_bytes),
        identity: u128::from(random()) << 64 | u128::from(random()),
        hash_seed: random(),
        created_ms: wanted.now_ms,
    };
    file.write_all(&header.encode()).map_err(no_room)?;
    let stamp = stamp::of(&file).map_err(io_error)?;
    let table = segment::new_table(header.geometry.numbers.segments, stamp);
    file.write_all_at(&table, header.geometry.table).map_err(no_room)?;
    Ok(Made(Some(made)))
}
