//! Making a file: under a temporary name, until it is complete.

use std::fs::{File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{CWD, IFlags, RenameFlags};
use rustix::io::Errno;

use crate::call::Call;
use crate::file::format::header::Header;
use crate::file::format::layout::Geometry;
use crate::file::platform::filesystem;
use crate::file::platform::kernel::{self, Kernel};
use crate::file::platform::map::{Access, Map};
use crate::file::platform::random::random;
use crate::file::platform::stamp;
use crate::file::process::create::{Compressed, Wanted, check_file_system};
use crate::file::process::error::FileError;
use crate::file::process::room;
use crate::mutant;
use crate::private_file::{Naming, folder_of};
use crate::process::WipedOnFork;

/// The name of a file until it is complete.
const NAMING: Naming = Naming { prefix: ".haypile-", suffix: ".new" };

/// A complete new cache file under a temporary name, which is removed on drop unless the file is
/// kept.
#[derive(Debug)]
pub(in crate::file) struct Made(tempfile::NamedTempFile);

impl Made {
    pub(in crate::file) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Gives the new cache file its path, if no file has that path; returns whether it was given.
    pub(in crate::file) fn take_free(&self, path: &Path) -> Result<bool, FileError> {
        let io_error = |source| FileError::Io { path: path.to_owned(), source };
        let free = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(CWD, self.path(), CWD, path, free) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            // A file system without this, or a filter of system calls: a link does not replace either.
            Err(Errno::INVAL | Errno::PERM | Errno::NOSYS) => {
                match std::fs::hard_link(self.path(), path) {
                    Ok(()) => {
                        let _ = std::fs::remove_file(self.path());
                        Ok(true)
                    }
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                    Err(error) => Err(error).call("renameat2, and then link,").map_err(io_error),
                }
            }
            Err(error) => Err(error).call("renameat2").map_err(io_error),
        }
    }

    /// Keeps the new cache file under its path, and flushes its name to disk, so that it survives a
    /// loss of power.
    pub(in crate::file) fn keep(self, path: &Path) -> Result<(), FileError> {
        let io_error = |source| FileError::Io { path: path.to_owned(), source };
        self.0.keep().map_err(|error| io_error(error.error))?;
        make_name_durable(path).map_err(io_error)
    }
}

/// Flushes the directory entry of a file to disk.
pub(in crate::file) fn make_name_durable(path: &Path) -> io::Result<()> {
    #[cfg(feature = "test-hooks")]
    crate::file::hooks::note_sync("name");
    match File::open(folder_of(path)).call("open") {
        Ok(folder) => folder.sync_all().call("fsync"),
        // A folder that cannot be read cannot be opened: then all of its file system.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            rustix::fs::syncfs(&kernel::open(path, false)?).call("syncfs")
        }
        Err(error) => Err(error),
    }
}

/// Creates a complete cache file under a temporary name next to its path. The locks and memory that
/// its users need are tested before the file takes room.
pub(in crate::file) fn make(path: &Path, wanted: &Wanted) -> Result<Made, FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    let made = NAMING.create_in(folder_of(path)).map_err(io_error)?;
    let file = made.as_file();
    check_file_system(path, file, wanted)?;
    // Whatever the process masks out.
    file.set_permissions(Permissions::from_mode(0o600)).call("fchmod").map_err(io_error)?;
    // Where every write takes a new block, a full disk would be a SIGBUS. Only an empty file can be
    // marked.
    if filesystem::copies_on_write(file) {
        let _ = rustix::fs::ioctl_setflags(file, IFlags::NOCOW);
    }
    let bytes = wanted.size_bytes;
    let no_room = |error| room::failed(path, bytes, error);
    if !mutant::is_on("new-files-filled-untested") {
        Kernel::test_locks(made.path()).map_err(io_error)?;
        drop(WipedOnFork::<1>::new().map_err(io_error)?);
    }
    room::check_limits(path, file, bytes)?;
    file.set_len(bytes).call("ftruncate").map_err(no_room)?;
    let map = Map::new(file, bytes, true).map_err(io_error)?;
    if wanted.prefaults && filesystem::is_memory(file) {
        // Where huge pages are to be asked for, only a mapping gets them: allocating does not.
        let _ = map.prefault(Access::Write);
    }
    drop(map);
    room::reserve(path, file, bytes)?;
    let header = Header {
        geometry: Geometry::plan(bytes, wanted.entry_bytes, wanted.groups),
        identity: u128::from(random()) << 64 | u128::from(random()),
        hash_seed: hash_seed(),
        created_ms: wanted.now_ms,
        compression: match wanted.compression {
            Compressed::AsItIs => None,
            Compressed::As(method) => method,
        },
    };
    let page = header.encode(stamp::of(file).map_err(io_error)?);
    file.write_all_at(&page, 0).call("pwrite").map_err(no_room)?;
    // Else the path could name a file without a header after a loss of power.
    file.sync_all().call("fsync").map_err(no_room)?;
    Ok(Made(made))
}

/// Returns the seed of a new file: random, unless a test has chosen it.
fn hash_seed() -> u64 {
    #[cfg(feature = "test-hooks")]
    return crate::file::hooks::hash_seed();
    #[cfg(not(feature = "test-hooks"))]
    random()
}
