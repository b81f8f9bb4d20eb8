//! Opening a file that exists, making one that does not, and replacing one.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::call::Call;
use crate::compress::Method;
use crate::file::format::header::{self, Header, HeaderError};
use crate::file::platform::filesystem::{self, FileSystem};
use crate::file::platform::kernel::{self, FileId, LOCK_PATIENCE, REPLACER_AT};
use crate::file::platform::stamp;
use crate::file::process::error::FileError;
use crate::file::process::make::make;
use crate::file::process::room;
use crate::mutant;
use crate::private_file::{Exposed, check_private};

/// The longest time for which opening a cache file is retried while files at its path appear and
/// disappear.
pub(in crate::file) const LONGEST_OPENING: Duration = Duration::from_secs(5);

/// A cache file that has been opened, with its header and its boot stamp.
#[derive(Debug)]
pub(in crate::file) struct Opened {
    pub(in crate::file) file: File,
    pub(in crate::file) header: Header,
    /// The boot stamp: a number computed for the current boot of the machine and the opened cache
    /// file.
    pub(in crate::file) stamp: u64,
}

/// The compression that the user asked for, for the values of a cache file to be opened or created:
/// that of an existing file, or a certain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Compressed {
    /// The compression of an existing file; none for a new one.
    AsItIs,
    As(Option<Method>),
}

/// The properties that the user asked for, of a cache file to be opened or created, such as its
/// size and whether it may be shared with other users.
#[expect(clippy::struct_excessive_bools, reason = "options of a URL, each yes or no")]
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Wanted {
    /// The size of a new cache file, in bytes; an existing file keeps its own.
    pub(in crate::file) size_bytes: u64,
    /// The expected size of an entry, for the layout of a new cache file, in bytes.
    pub(in crate::file) entry_bytes: u64,
    /// The number of words that record the last invalidations of groups of entries in a new cache
    /// file; `None` if the user chose none.
    pub(in crate::file) groups: Option<u64>,
    pub(in crate::file) compression: Compressed,
    pub(in crate::file) is_writable: bool,
    /// Whether the whole cache file is read into memory when it is opened.
    pub(in crate::file) prefaults: bool,
    /// Whether a cache file is accepted that other users own or can write.
    pub(in crate::file) may_be_shared: bool,
    /// Whether a cache file on a network file system is accepted.
    pub(in crate::file) may_be_remote: bool,
    pub(in crate::file) now_ms: u64,
}

/// Opens the cache file at a path, or creates it.
pub(in crate::file) fn open_or_create(path: &Path, wanted: &Wanted) -> Result<Opened, FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    let begin = Instant::now();
    while begin.elapsed() < LONGEST_OPENING {
        match open(path, wanted) {
            Err(FileError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            other => return other,
        }
        if !wanted.is_writable {
            return Err(FileError::Missing(path.to_owned()));
        }
        let made = make(path, wanted)?;
        // Where another process was faster, its file is opened.
        if made.take_free(path)? {
            made.keep(path)?;
        }
    }
    Err(io_error(io::Error::other("other processes repeatedly created and removed it")))
}

/// Replaces the cache file at a path by a new, empty one, and marks the old one as replaced for its
/// users.
pub(in crate::file) fn replace_and_retire(path: &Path, wanted: &Wanted) -> Result<(), FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    let begin = Instant::now();
    while begin.elapsed() < LONGEST_OPENING {
        let old = match kernel::open(path, true) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let made = make(path, wanted)?;
                if made.take_free(path)? {
                    return made.keep(path);
                }
                continue;
            }
            Err(error) => return Err(io_error(error)),
        };
        check_owner(path, &check_kind(path, &old)?, wanted)?;
        // Nobody else replaces it while this process does.
        let is_locked = kernel::set_lock_within(&old, REPLACER_AT, LOCK_PATIENCE);
        let is_locked = is_locked.map_err(io_error)?;
        // Who had the lock before has put another file there, whose users are to be told.
        let is_there = FileId::at(path).ok() == FileId::of(&old).ok()
            || mutant::is_on("replacers-do-not-look-again");
        if !is_there {
            continue;
        }
        if !is_locked {
            return Err(FileError::Replacing(path.to_owned()));
        }
        let made = make(path, wanted)?;
        std::fs::rename(made.path(), path).call("rename").map_err(io_error)?;
        // Whatever becomes of the new one, the old one has lost its name.
        retire(&old).map_err(io_error)?;
        return made.keep(path);
    }
    Err(FileError::Replacing(path.to_owned()))
}

/// Tells the users of a file to open what has its path now.
fn retire(old: &File) -> io::Result<()> {
    // A file that is not ours has no users who would look.
    let mut page = vec![0; usize::try_from(header::BYTES).expect("a page")];
    let bytes = old.metadata().call("statx")?.size();
    let is_ours = old.read_exact_at(&mut page, 0).is_ok()
        && matches!(
            Header::decode(&page, bytes),
            Ok(_) | Err(HeaderError::Older(_) | HeaderError::Newer(_))
        );
    if is_ours {
        old.write_all_at(&header::RETIRED.to_le_bytes(), header::STATE).call("pwrite")?;
    }
    Ok(())
}

pub(in crate::file) fn check_kind(path: &Path, file: &File) -> Result<Metadata, FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    let metadata = file.metadata().call("statx").map_err(io_error)?;
    let kind = metadata.file_type();
    if !kind.is_file() {
        let what = if kind.is_dir() { "directory" } else { "device or pipe" };
        return Err(FileError::NoFile { path: path.to_owned(), what });
    }
    Ok(metadata)
}

/// Refuses a file that another user than this one and root could have filled.
fn check_owner(path: &Path, metadata: &Metadata, wanted: &Wanted) -> Result<(), FileError> {
    let path = || path.to_owned();
    match check_private(metadata) {
        _ if wanted.may_be_shared => Ok(()),
        Ok(()) => Ok(()),
        Err(Exposed::Owner(uid)) => Err(FileError::Foreign { path: path(), uid }),
        Err(Exposed::Mode(mode)) => Err(FileError::Writable { path: path(), mode }),
    }
}

pub(in crate::file) fn check_file_system(
    path: &Path,
    file: &File,
    wanted: &Wanted,
) -> Result<(), FileError> {
    let path = || path.to_owned();
    match filesystem::of(file) {
        _ if wanted.may_be_remote => Ok(()),
        FileSystem::Local => Ok(()),
        FileSystem::Network(name) => Err(FileError::Network { path: path(), name }),
        FileSystem::Unknown(name) => Err(FileError::PerhapsNetwork { path: path(), name }),
    }
}

fn open(path: &Path, wanted: &Wanted) -> Result<Opened, FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    check_name(path)?;
    let file = kernel::open(path, wanted.is_writable).map_err(io_error)?;
    let metadata = check_kind(path, &file)?;
    check_file_system(path, &file, wanted)?;
    check_owner(path, &metadata, wanted)?;
    let header = read_header(path, &file, &metadata)?;
    if let Compressed::As(wanted) = wanted.compression
        && wanted != header.compression
    {
        let (path, made) = (path.to_owned(), header.compression);
        return Err(FileError::Compression { path, made, wanted });
    }
    let stamp = stamp::of(&file).map_err(io_error)?;
    if wanted.is_writable {
        room::fill_holes(path, &file, &metadata, &header, stamp)?;
    } else if filesystem::is_memory(&file) && room::allocated_bytes(&metadata) < metadata.size() {
        // Elsewhere reading a hole takes nothing.
        return Err(FileError::Holes(path.to_owned()));
    }
    Ok(Opened { file, header, stamp })
}

/// Returns an error if a path names something other than an ordinary file or nothing.
pub(in crate::file) fn check_name(path: &Path) -> Result<(), FileError> {
    let Ok(metadata) = path.symlink_metadata() else {
        return Ok(());
    };
    let kind = metadata.file_type();
    let what = if kind.is_symlink() {
        "symbolic link"
    } else if kind.is_dir() {
        "directory"
    } else {
        "device or pipe"
    };
    if kind.is_file() {
        return Ok(());
    }
    Err(FileError::NoFile { path: path.to_owned(), what })
}

pub(in crate::file) fn read_header(
    path: &Path,
    file: &File,
    metadata: &Metadata,
) -> Result<Header, FileError> {
    let mut page = Vec::new();
    let read = file.take(header::BYTES).read_to_end(&mut page);
    read.call("read").map_err(|source| FileError::Io { path: path.to_owned(), source })?;
    Header::decode(&page, metadata.size())
        .map_err(|source| FileError::Header { path: path.to_owned(), source })
}
