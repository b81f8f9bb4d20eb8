//! Files that belong to one user: the rules for which are trusted, and their creation.
//!
//! A file is written under a temporary name, and renamed when it is complete. It is locked while
//! its writer lives. A file with a temporary name and no lock was left by a process that died, and
//! the next writer in the folder removes it.

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::path::{self, Path};
use std::process;

use tempfile::{NamedTempFile, TempPath};

use crate::call::Call;

/// Attempts to create a file that is locked before another writer takes it for a leftover.
const ATTEMPTS: usize = 16;

/// The form of the names of temporary files (such as of snapshots): a random part between a prefix
/// and a suffix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naming {
    pub(crate) prefix: &'static str,
    pub(crate) suffix: &'static str,
}

impl Naming {
    /// Creates a temporary file with a name of this form in a folder, readable only by its owner,
    /// after removing leftovers with such names.
    pub(crate) fn create_in(self, folder: &Path) -> io::Result<NamedTempFile> {
        self.remove_leftovers(folder);
        for _ in 0..ATTEMPTS {
            let file = match self.create_new(folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created.call("open")?,
            };
            // Without locks in the file system no other writer gets one either, and the file is
            // safe.
            let is_taken = matches!(file.as_file().try_lock(), Err(fs::TryLockError::WouldBlock));
            // Between creation and lock, another writer may have taken the file for a leftover.
            if !is_taken && file.path().exists() {
                return Ok(file);
            }
        }
        Err(io::Error::other("other programs keep removing the new file"))
    }

    /// Creates a file with a random name.
    ///
    /// `tempfile` seeds its names with [`std::thread::current`], which allocates a handle that the main thread
    /// never frees: leak checkers report it.
    fn create_new(self, folder: &Path) -> io::Result<NamedTempFile> {
        // A forked child has a copy of its parent's random numbers, and a process id of its own.
        let number = RandomState::new().hash_one(process::id());
        let path =
            path::absolute(folder)?.join(format!("{}{number:016x}{}", self.prefix, self.suffix));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        Ok(NamedTempFile::from_parts(file, TempPath::try_from_path(path)?))
    }

    /// Removes files of dead writers in a folder. Failures are left to the next writer.
    fn remove_leftovers(self, folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            if self.is_name(&entry.file_name())
                && entry.file_type().is_ok_and(|kind| kind.is_file())
                && let Ok(file) = open_at_once(&entry.path())
                && file.try_lock().is_ok()
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn is_name(self, name: &OsStr) -> bool {
        name.to_str().is_some_and(|it| it.starts_with(self.prefix) && it.ends_with(self.suffix))
    }
}

/// The reason why a file is not trusted: another user owns it, or other users can write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposed {
    /// The file belongs to this user, which is neither this process's nor root.
    Owner(u32),
    /// Users other than the file's owner can write it: this is its mode.
    Mode(u32),
}

/// Returns an error if users other than this one and root can have written a file.
#[cfg(unix)]
pub(crate) fn check_private(metadata: &fs::Metadata) -> Result<(), Exposed> {
    use std::os::unix::fs::MetadataExt;

    check_owner(metadata.uid(), metadata.mode(), rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
pub(crate) fn check_private(_: &fs::Metadata) -> Result<(), Exposed> {
    Ok(())
}

#[cfg(unix)]
fn check_owner(owner: u32, mode: u32, user: u32) -> Result<(), Exposed> {
    if owner != user && owner != 0 {
        return Err(Exposed::Owner(owner));
    }
    if mode & 0o022 != 0 {
        return Err(Exposed::Mode(mode & 0o777));
    }
    Ok(())
}

/// Returns the folder in which the file at a path is.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Opens a file for reading, without waiting for a FIFO.
pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
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

/// An open file that notices when the program closes all descriptors, as daemons do: another file
/// that then gets the descriptor's number is neither used nor closed.
#[derive(Debug)]
pub(crate) struct GuardedFile {
    /// The open file; `None` while this is dropped.
    file: Option<File>,
    #[cfg(unix)]
    id: (u64, u64),
}

impl GuardedFile {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            id: id_of(&file)?,
            file: Some(file),
        })
    }

    /// Returns the open file; an error if the program has closed its descriptor.
    ///
    /// # Errors
    ///
    /// The program has closed its descriptor.
    pub(crate) fn get(&mut self) -> io::Result<&mut File> {
        let lost = || io::Error::other("the program has closed the descriptor of the file");
        if !self.is_own() {
            return Err(lost());
        }
        self.file.as_mut().ok_or_else(lost)
    }

    #[cfg(unix)]
    fn is_own(&self) -> bool {
        self.file.as_ref().and_then(|file| id_of(file).ok()) == Some(self.id)
    }

    #[cfg(not(unix))]
    fn is_own(&self) -> bool {
        true
    }
}

#[cfg(unix)]
impl Drop for GuardedFile {
    fn drop(&mut self) {
        if !self.is_own()
            && let Some(file) = self.file.take()
        {
            // The number is left to the file that has it now.
            let _ = std::os::fd::IntoRawFd::into_raw_fd(file);
        }
    }
}

#[cfg(unix)]
fn id_of(file: &File) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Appends bytes to the end of a file.
///
/// # Errors
///
/// Where this process may not write files of that size, [`io::ErrorKind::FileTooLarge`]: the kernel
/// would answer with a signal that ends the process.
pub(crate) fn append(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let file_bytes = file.metadata()?.len().saturating_add(bytes.len() as u64);
    if let Some(limit_bytes) = size_limit().filter(|limit_bytes| *limit_bytes < file_bytes) {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "this process may write files of at most {limit_bytes} bytes (RLIMIT_FSIZE); raise \
                 that limit (ulimit -f)"
            ),
        ));
    }
    file.write_all(bytes)
}

/// Returns the largest size of files that this process may write, if there is a limit.
#[cfg(unix)]
pub(crate) fn size_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Fsize).current
}

#[cfg(not(unix))]
fn size_limit() -> Option<u64> {
    None
}

/// Syncs the entries of a folder (the names of its files) to disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_of_this_user_or_root_that_others_cannot_write_is_private() {
        const ROOT: u32 = 0;
        const USER: u32 = 1_000;
        for owner in [USER, ROOT] {
            for mode in [0o600, 0o400, 0o644, 0o755] {
                assert_eq!(check_owner(owner, 0o100_000 | mode, USER), Ok(()), "{owner} {mode:o}");
            }
            for mode in [0o620, 0o602, 0o664, 0o666] {
                let exposed = check_owner(owner, 0o100_000 | mode, USER);
                assert_eq!(exposed, Err(Exposed::Mode(mode)), "{owner} {mode:o}");
            }
        }
        assert_eq!(check_owner(USER + 1, 0o100_600, USER), Err(Exposed::Owner(USER + 1)));
        // Root does not trust other users either: they would decide what root's cache serves.
        assert_eq!(check_owner(USER, 0o100_600, ROOT), Err(Exposed::Owner(USER)));
    }

    const NAMING: Naming = Naming { prefix: ".haypile-test-", suffix: ".tmp" };

    #[test]
    fn what_a_dead_writer_left_is_removed_and_what_a_living_one_has_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let left = folder.path().join(".haypile-test-left.tmp");
        let other = folder.path().join("other.tmp");
        for path in [&left, &other] {
            fs::write(path, "left").expect("written");
        }
        let living = NAMING.create_in(folder.path()).expect("a file");
        assert!(!left.exists() && other.exists());
        let next = NAMING.create_in(folder.path()).expect("a file");
        assert!(living.path().exists() && next.path().exists());
    }
}
