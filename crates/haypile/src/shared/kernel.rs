//! What the kernel knows: who is there, by locks on bytes far beyond the end of the file.

#![expect(unsafe_code, reason = "no library has locks of open file descriptions on single bytes")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::map::Anchor;

/// The byte of the first place.
const PLACES_AT: i64 = 1 << 62;
/// The byte of the first segment.
const SEGMENTS_AT: i64 = PLACES_AT + (1 << 32);
/// The byte that who replaces the file has locked.
pub(super) const REPLACER_AT: i64 = PLACES_AT - 1;

/// A file, told apart from others that had or get its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl FileId {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    pub(super) fn at(path: &Path) -> io::Result<Self> {
        let metadata = path.symlink_metadata()?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }
}

/// The file as the kernel sees it.
#[derive(Debug)]
pub(super) struct Kernel {
    /// Never holds a lock: locks do not conflict with those of their own description.
    file: File,
    pub(super) id: FileId,
    pub(super) path: PathBuf,
    is_writable: bool,
    begin: Instant,
}

/// A byte that stays locked until this is dropped, or the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    _anchor: Anchor,
}

impl Kernel {
    pub(super) fn new(file: File, path: &Path, is_writable: bool) -> io::Result<Self> {
        let id = FileId::of(&file)?;
        Ok(Self { file, id, path: path.to_owned(), is_writable, begin: Instant::now() })
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// The file, unless a program has closed all descriptors, also this one, and perhaps opened
    /// another file under its number.
    pub(super) fn file(&self) -> io::Result<&File> {
        if FileId::of(&self.file)? == self.id {
            return Ok(&self.file);
        }
        Err(io::Error::other("the descriptor of the cache's file was closed by somebody"))
    }

    /// The file opened once more. An error where its path is no longer its own.
    fn open_again(&self) -> io::Result<File> {
        let file = open(&self.path, self.is_writable)?;
        if FileId::of(&file)? == self.id {
            return Ok(file);
        }
        Err(io::Error::other("another file has taken the path of the cache"))
    }

    /// Locks the byte of a place; `None` where another has it.
    pub(super) fn take_place(&self, place: u32) -> io::Result<Option<Lock>> {
        let byte = PLACES_AT + i64::from(place);
        let file = self.open_again()?;
        if !set_lock(&file, libc::F_WRLCK, byte)? {
            return Ok(None);
        }
        let anchor = Anchor::new(&file)?;
        drop(file);
        // Closing must not have unlocked it, or all would be taken for dead.
        if is_locked(self.file()?, byte)? {
            return Ok(Some(Lock { _anchor: anchor }));
        }
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "locks of open file descriptions do not hold on this file system (it may be an overlay \
             of a container); put the cache on a local one such as tmpfs, ext4 or xfs",
        ))
    }

    /// Locks the byte of a segment against recycling; `None` where it is locked.
    pub(super) fn pin(&self, segment: u32) -> io::Result<Option<Lock>> {
        let file = self.open_again()?;
        if !set_lock(&file, libc::F_RDLCK, SEGMENTS_AT + i64::from(segment))? {
            return Ok(None);
        }
        Ok(Some(Lock { _anchor: Anchor::new(&file)? }))
    }

    /// Whether somebody has a place. Who cannot be asked about is taken for alive.
    pub(super) fn is_place_locked(&self, place: u32) -> bool {
        self.ask(PLACES_AT + i64::from(place))
    }

    /// Whether somebody reads a segment in place.
    pub(super) fn is_segment_locked(&self, segment: u32) -> bool {
        self.ask(SEGMENTS_AT + i64::from(segment))
    }

    fn ask(&self, byte: i64) -> bool {
        let asked = match self.file() {
            Ok(file) => is_locked(file, byte),
            Err(_) => self.open_again().and_then(|file| is_locked(&file, byte)),
        };
        asked.unwrap_or(true)
    }
}

/// Opens a file that is not a link.
pub(super) fn open(path: &Path, is_writable: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(is_writable).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
    options.open(path)
}

/// Locks a byte; says whether it was free.
pub(super) fn set_lock(file: &File, kind: libc::c_int, byte: i64) -> io::Result<bool> {
    match ofd(file, libc::F_OFD_SETLK, kind, byte) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Whether another description has the byte locked.
fn is_locked(file: &File, byte: i64) -> io::Result<bool> {
    let lock = ofd(file, libc::F_OFD_GETLK, libc::F_WRLCK, byte)?;
    Ok(libc::c_int::from(lock.l_type) != libc::F_UNLCK)
}

fn ofd(file: &File, command: libc::c_int, kind: libc::c_int, byte: i64) -> io::Result<libc::flock> {
    let mut lock = libc::flock {
        l_type: libc::c_short::try_from(kind).expect("a kind of lock"),
        l_whence: libc::c_short::try_from(libc::SEEK_SET).expect("a small number"),
        l_start: byte,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the lock is a valid structure that lives long enough.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(lock) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(path: &Path) -> Kernel {
        Kernel::new(open(path, true).expect("a file"), path, true).expect("its facts")
    }

    #[test]
    fn a_place_is_locked_until_its_lock_is_dropped() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        std::fs::write(&path, "x").expect("a file");
        let (one, other) = (kernel(&path), kernel(&path));
        let lock = one.take_place(3).expect("locks").expect("it is free");
        assert!(one.is_place_locked(3) && other.is_place_locked(3));
        assert!(!other.is_place_locked(4));
        assert!(other.take_place(3).expect("locks").is_none());
        drop(lock);
        assert!(!one.is_place_locked(3));
    }

    #[test]
    fn pins_of_a_segment_are_shared_and_hold_each_for_itself() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        std::fs::write(&path, "x").expect("a file");
        let kernel = kernel(&path);
        let pins = [(); 2].map(|()| kernel.pin(9).expect("locks").expect("no writer"));
        let [one, other] = pins;
        drop(one);
        assert!(kernel.is_segment_locked(9));
        drop(other);
        assert!(!kernel.is_segment_locked(9));
    }

    #[test]
    fn a_file_whose_path_another_has_taken_is_not_opened_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        std::fs::write(&path, "x").expect("a file");
        let kernel = kernel(&path);
        std::fs::rename(&path, directory.path().join("old")).expect("renamed");
        std::fs::write(&path, "y").expect("a file");
        assert!(kernel.take_place(0).is_err());
        assert!(!kernel.is_place_locked(0), "the descriptor still tells");
    }
}
