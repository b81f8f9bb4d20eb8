//! Files that are written under a name of their own, and get the one they are for when they are
//! whole.
//!
//! Such a file is locked for as long as its writer lives. One that is not locked was left by a process
//! that died, and the next writer in the folder removes it.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use tempfile::NamedTempFile;

/// How often a new file may be taken for a leftover before it could be locked.
const ATTEMPTS: usize = 16;

/// How such files are called: something random stands between the two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naming {
    pub(crate) prefix: &'static str,
    pub(crate) suffix: &'static str,
}

impl Naming {
    /// Makes a file in a folder that only its owner can read. Leftovers there are removed before.
    pub(crate) fn create_in(self, folder: &Path) -> io::Result<NamedTempFile> {
        self.remove_leftovers(folder);
        let mut builder = tempfile::Builder::new();
        builder.prefix(self.prefix).suffix(self.suffix);
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

    /// Removes what writers that died left in a folder. What does not work is left to the next.
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

/// The folder of a path.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Opens a file for reading. A FIFO is not waited for.
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

/// Brings what a folder says of its files to disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
