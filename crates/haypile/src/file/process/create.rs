//! Making a file, and opening one that is there.

use std::collections::hash_map::RandomState;
use std::fs::{File, Metadata, Permissions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FallocateFlags, IFlags, RenameFlags};
use rustix::io::Errno;

use crate::compress::{Compression, Method};
use crate::file::format::header::{self, Header, HeaderError};
use crate::file::format::layout::Geometry;
use crate::file::platform::filesystem::{self, FileSystem};
use crate::file::platform::kernel::{self, FileId, LOCK_PATIENCE, REPLACER_AT};
use crate::file::platform::map::Map;
use crate::file::platform::stamp;
use crate::mutant;
use crate::private_file::{Exposed, Naming, check_private, folder_of, sync_folder};

/// The number of times that opening begins again, where files come and go under the path.
const ATTEMPTS: u32 = 100;

/// A file is allocated in parts of this size; smaller ones where signals interrupt that.
const PART_BYTES: u64 = 1 << 30;
const SMALLEST_PART_BYTES: u64 = 64 << 10;

/// The name of a file until it is complete.
const NAMING: Naming = Naming { prefix: ".haypile-", suffix: ".new" };

/// Why a file could not be opened or made. Texts follow the URL and ": ".
#[derive(Debug, thiserror::Error)]
pub(in crate::file) enum FileError {
    #[error("{} cannot be used: {source}", path.display())]
    Header { path: PathBuf, source: HeaderError },
    #[error(
        "there is no {}, and a cache that is only read is not made; open it once for writing",
        .0.display()
    )]
    Missing(PathBuf),
    #[error("{} is a {what} and not an ordinary file; name another path", path.display())]
    NoFile { path: PathBuf, what: &'static str },
    #[error(
        "{} lies on {name}, {}; put it on a local one, such as /dev/shm or /var/tmp, or allow it \
         with allow_network=yes if no other machine uses the file",
        path.display(),
        "a network file system, where processes of several machines would destroy the mapped file"
    )]
    Network { path: PathBuf, name: &'static str },
    #[error(
        "{} lies on {name}, which may be a network file system, where processes of several \
         machines would destroy the mapped file; put it on a local one, such as /dev/shm or \
         /var/tmp, or allow it with allow_network=yes if no other machine uses the file",
        path.display()
    )]
    PerhapsNetwork { path: PathBuf, name: &'static str },
    #[error(
        "{} belongs to another user (uid {uid}), which could make this program read anything; \
         remove it, choose another path, or allow that with allow_shared=yes",
        path.display()
    )]
    Foreign { path: PathBuf, uid: u32 },
    #[error(
        "{} can be written by users other than its owner (mode {mode:o}), which could make this \
         program read anything; chmod it to 600, or allow that with allow_shared=yes",
        path.display()
    )]
    Writable { path: PathBuf, mode: u32 },
    #[error(
        "{} was made with {} and is opened with {}; leave compress= out to use the \
         file's own, or replace it with recreate=yes, which empties it",
        path.display(), compression(*made), compression(*wanted)
    )]
    Compression { path: PathBuf, made: Option<Method>, wanted: Option<Method> },
    #[error(
        "there is no room for {bytes} bytes at {}: {source}; choose a smaller size= or another \
         path",
        path.display()
    )]
    NoRoom { path: PathBuf, bytes: u64, source: io::Error },
    #[error(
        "{} has holes, like a copy that omits zeros, and reading them takes memory of its file \
         system; open it once for writing, which fills them",
        .0.display()
    )]
    Holes(PathBuf),
    #[error("{} is being replaced by another process; try again", .0.display())]
    Replacing(PathBuf),
    #[error("{}", attaching(path, *process))]
    Attaching { path: PathBuf, process: Option<u64> },
    #[error(
        "all {places} owner slots for processes that write {} are taken; this process only reads \
         until others end; a file of 64 MiB has {} slots, and mode=ro needs none",
        path.display(), crate::file::format::layout::MOST_PLACES
    )]
    Crowded { path: PathBuf, places: u32 },
    #[error(
        "a process that may only read {} has locked the owner slots of those that write; this \
         process only reads until that one ends; chmod the file to 600 to keep others from that",
        .0.display()
    )]
    LockedOut(PathBuf),
    #[error(
        "{} names another file since this process changed its root directory; open the cache \
         again after that",
        .0.display()
    )]
    Chroot(PathBuf),
    #[error("{} was removed; its entries are lost when its last user ends", .0.display())]
    Removed(PathBuf),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn compression(method: Option<Method>) -> String {
    let name = |method| match Compression::from(method) {
        Compression::Lz4 => "compress=lz4".to_owned(),
        Compression::Zstd { .. } => "compress=zstd".to_owned(),
    };
    method.map_or_else(|| "no compression".to_owned(), name)
}

fn attaching(path: &Path, process: Option<u64>) -> String {
    let path = path.display();
    match process {
        Some(process) => format!(
            "process {process} has been opening {path} for more than two seconds; continue or end \
             that process, and try again"
        ),
        None => format!(
            "a process that may only read {path} has locked it against those that write; end that \
             process, or chmod the file to 600"
        ),
    }
}

/// A file that has been opened, and its header.
#[derive(Debug)]
pub(in crate::file) struct Opened {
    pub(in crate::file) file: File,
    pub(in crate::file) header: Header,
}

/// The compression that is wanted for the values of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Compressed {
    /// As they are in a file that is there; not at all in a new one.
    AsItIs,
    As(Option<Method>),
}

/// The properties that are wanted of a file.
#[expect(clippy::struct_excessive_bools, reason = "options of a URL, each yes or no")]
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Wanted {
    /// Of a new one.
    pub(in crate::file) size_bytes: u64,
    /// Of a new one.
    pub(in crate::file) entry_bytes: u64,
    pub(in crate::file) compression: Compressed,
    pub(in crate::file) is_writable: bool,
    /// Other users may own or write it.
    /// Whether all of the file is mapped when it is opened.
    pub(in crate::file) prefaults: bool,
    pub(in crate::file) may_be_shared: bool,
    /// It may lie on a network file system.
    pub(in crate::file) may_be_remote: bool,
    pub(in crate::file) now_ms: u64,
}

/// Opens the file at a path, or makes it.
pub(in crate::file) fn open_or_create(path: &Path, wanted: &Wanted) -> Result<Opened, FileError> {
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
        // Where another process was faster, its file is opened.
        if made.take_free(path)? {
            made.keep(path)?;
        }
    }
    Err(io_error(io::Error::other("other processes repeatedly created and removed it")))
}

/// Puts a new, empty file in the place of what is at a path, and tells the users of the old one.
pub(in crate::file) fn replace_and_retire(path: &Path, wanted: &Wanted) -> Result<(), FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    for _ in 0..ATTEMPTS {
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
        std::fs::rename(made.path(), path).map_err(io_error)?;
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
    let bytes = old.metadata()?.size();
    let is_ours = old.read_exact_at(&mut page, 0).is_ok()
        && matches!(
            Header::decode(&page, bytes),
            Ok(_) | Err(HeaderError::Older(_) | HeaderError::Newer(_))
        );
    if is_ours {
        old.write_all_at(&header::RETIRED.to_le_bytes(), header::STATE)?;
    }
    Ok(())
}

pub(in crate::file) fn check_kind(path: &Path, file: &File) -> Result<Metadata, FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    let metadata = file.metadata().map_err(io_error)?;
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

fn check_file_system(path: &Path, file: &File, wanted: &Wanted) -> Result<(), FileError> {
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
    fill_holes(path, &file, &metadata, wanted.is_writable)?;
    Ok(Opened { file, header })
}

/// Refuses what a path names, unless it is an ordinary file or nothing.
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
    read.map_err(|source| FileError::Io { path: path.to_owned(), source })?;
    Header::decode(&page, metadata.size())
        .map_err(|source| FileError::Header { path: path.to_owned(), source })
}

/// Allocates what a copy has left out: where the disk is full, writing it would be a SIGBUS later.
fn fill_holes(
    path: &Path,
    file: &File,
    metadata: &Metadata,
    is_writable: bool,
) -> Result<(), FileError> {
    // In units of 512 bytes, whatever the file system's blocks are.
    let bytes = metadata.size();
    if metadata.blocks().saturating_mul(512) >= bytes {
        return Ok(());
    }
    if !is_writable {
        // Elsewhere reading a hole takes nothing.
        let is_memory = filesystem::is_memory(file);
        return if is_memory { Err(FileError::Holes(path.to_owned())) } else { Ok(()) };
    }
    match allocate(file, bytes) {
        // One that compresses or copies on write cannot promise room.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
        Err(source) => Err(FileError::NoRoom { path: path.to_owned(), bytes, source }),
        Ok(()) => Ok(()),
    }
}

/// Allocates the first bytes of a file, however often a signal comes.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    // In parts: where a signal undoes what was begun, the next attempt is at less.
    let (mut at, mut part) = (0, PART_BYTES);
    while at < bytes {
        let length = part.min(bytes - at);
        match rustix::fs::fallocate(file, FallocateFlags::empty(), at, length) {
            Ok(()) => at += length,
            Err(Errno::INTR) => part = (part / 2).max(SMALLEST_PART_BYTES),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A complete file under a name of its own, removed if it is not kept.
#[derive(Debug)]
struct Made(tempfile::NamedTempFile);

impl Made {
    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Gives it the path, if nothing has that; says whether it did.
    fn take_free(&self, path: &Path) -> Result<bool, FileError> {
        let io_error = |source| FileError::Io { path: path.to_owned(), source };
        let free = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(CWD, self.path(), CWD, path, free) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            // A file system without this: a link does not replace either.
            Err(Errno::INVAL) => match std::fs::hard_link(self.path(), path) {
                Ok(()) => {
                    let _ = std::fs::remove_file(self.path());
                    Ok(true)
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(io_error(error)),
            },
            Err(error) => Err(io_error(error.into())),
        }
    }

    /// It has the path now, also after a loss of power.
    fn keep(self, path: &Path) -> Result<(), FileError> {
        let io_error = |source| FileError::Io { path: path.to_owned(), source };
        self.0.keep().map_err(|error| io_error(error.error))?;
        make_name_durable(path).map_err(io_error)
    }
}

/// Brings the name of a file to disk.
pub(in crate::file) fn make_name_durable(path: &Path) -> io::Result<()> {
    #[cfg(feature = "test-hooks")]
    crate::file::hooks::note_sync("name");
    match sync_folder(folder_of(path)) {
        // A folder that cannot be read cannot be opened: then all of its file system.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Ok(rustix::fs::syncfs(&kernel::open(path, false)?)?)
        }
        other => other,
    }
}

/// Makes a complete file next to the path.
fn make(path: &Path, wanted: &Wanted) -> Result<Made, FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    let mut made = NAMING.create_in(folder_of(path)).map_err(io_error)?;
    let file = made.as_file_mut();
    check_file_system(path, file, wanted)?;
    // Whatever the process masks out.
    file.set_permissions(Permissions::from_mode(0o600)).map_err(io_error)?;
    // Where every write takes a new block, a full disk would be a SIGBUS.
    if filesystem::copies_on_write(file) {
        let _ = rustix::fs::ioctl_setflags(&*file, IFlags::NOCOW);
    }
    let bytes = wanted.size_bytes;
    let no_room = |source: io::Error| FileError::NoRoom { path: path.to_owned(), bytes, source };
    if wanted.prefaults && filesystem::is_memory(file) {
        // Where huge pages are to be asked for, only a mapping gets them: allocating does not.
        file.set_len(bytes).map_err(no_room)?;
        let _ = Map::new(file, bytes, true).and_then(|map| map.prefault(true));
    }
    allocate(file, bytes).map_err(no_room)?;
    let header = Header {
        geometry: Geometry::plan(bytes, wanted.entry_bytes),
        identity: u128::from(random()) << 64 | u128::from(random()),
        hash_seed: hash_seed(),
        created_ms: wanted.now_ms,
        compression: match wanted.compression {
            Compressed::AsItIs => None,
            Compressed::As(method) => method,
        },
    };
    file.write_all(&header.encode(stamp::of(file).map_err(io_error)?)).map_err(no_room)?;
    // Else the path could name a file without a header after a loss of power.
    file.sync_all().map_err(io_error)?;
    Ok(Made(made))
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The seed of a new file: random, unless a test has chosen it.
fn hash_seed() -> u64 {
    #[cfg(feature = "test-hooks")]
    return crate::file::hooks::hash_seed();
    #[cfg(not(feature = "test-hooks"))]
    random()
}
