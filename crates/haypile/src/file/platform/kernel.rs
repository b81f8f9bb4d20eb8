//! State that the kernel keeps: who is there, by locks on bytes far beyond the end of the file.

#![expect(unsafe_code, reason = "no library has locks of open file descriptions on single bytes")]

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use crate::file::platform::map::Anchor;

/// The byte of the first place.
const PLACES_AT: i64 = 1 << 62;
/// The first byte of the first segment.
const SEGMENTS_AT: i64 = PLACES_AT + (1 << 32);
/// The bytes of a segment: one for each owner that can read it in place.
const BYTES_OF_A_SEGMENT: i64 = 1024;
/// The byte that a process locks while it replaces the file.
pub(in crate::file) const REPLACER_AT: i64 = PLACES_AT - 1;
/// The byte that a process locks while it attaches to the file.
const ATTACHER_AT: i64 = PLACES_AT - 2;
/// The longest wait for a process that replaces the file, or attaches to it.
pub(in crate::file) const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// The time to sleep before asking again.
const LOCK_SLEEP: Duration = Duration::from_millis(1);

/// A file, told apart from others that had or get its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::file) struct FileId {
    pub(in crate::file) device: u64,
    pub(in crate::file) inode: u64,
}

impl FileId {
    pub(in crate::file) fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    pub(in crate::file) fn at(path: &Path) -> io::Result<Self> {
        let metadata = path.symlink_metadata()?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }
}

/// The file as the kernel sees it.
#[derive(Debug)]
pub(in crate::file) struct Kernel {
    /// Never holds a lock: locks do not conflict with those of their own description. None where it
    /// was let go of.
    file: RwLock<Option<ManuallyDrop<File>>>,
    pub(in crate::file) id: FileId,
    pub(in crate::file) path: PathBuf,
    is_writable: bool,
    begin: Instant,
}

/// A byte that stays locked until this is dropped, or the process ends.
#[derive(Debug)]
pub(in crate::file) struct Lock {
    _anchor: Anchor,
}

/// The lock under which a process attaches, until this is dropped.
///
/// It is released by name and not by closing the descriptor, so that a child that another thread
/// forks concurrently does not keep it.
#[derive(Debug)]
pub(in crate::file) struct Attaching(File);

impl Drop for Attaching {
    fn drop(&mut self) {
        let _ = ofd(&self.0, libc::F_OFD_SETLK, libc::F_UNLCK, ATTACHER_AT, 1);
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl Kernel {
    pub(in crate::file) fn new(file: File, path: &Path, is_writable: bool) -> io::Result<Self> {
        let id = FileId::of(&file)?;
        let (file, path) = (RwLock::new(Some(ManuallyDrop::new(file))), path.to_owned());
        Ok(Self { file, id, path, is_writable, begin: Instant::now() })
    }

    pub(in crate::file) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Calls `work` with the file. An error where it was let go of, or where the program has closed
    /// all descriptors, this one included.
    pub(in crate::file) fn with_file<R>(
        &self,
        work: impl FnOnce(&File) -> io::Result<R>,
    ) -> io::Result<R> {
        let file = self.file.read();
        match &*file {
            Some(file) if FileId::of(file)? == self.id => work(file),
            _ => Err(io::Error::other("the descriptor of the cache's file is closed")),
        }
    }

    /// Closes the file.
    pub(in crate::file) fn let_go(&self) {
        // A lock that another thread held when this process was forked stays locked.
        let Some(mut file) = self.file.try_write_for(LOCK_SLEEP) else {
            return;
        };
        if let Some(mut file) = file.take()
            && FileId::of(&file).is_ok_and(|id| id == self.id)
        {
            // A program that closes all descriptors may have opened another file under this number;
            // that one stays open.
            // SAFETY: the field is not used again.
            unsafe { ManuallyDrop::drop(&mut file) };
        }
    }

    /// The file opened once more. An error where its path is no longer its own.
    fn open_again(&self) -> io::Result<File> {
        let file = open(&self.path, self.is_writable)?;
        if FileId::of(&file)? == self.id {
            return Ok(file);
        }
        Err(io::Error::other("another file has taken the path of the cache"))
    }

    /// Locks the file for attaching. `None`: another process holds the lock for too long.
    pub(in crate::file) fn start_attaching(&self) -> io::Result<Option<Attaching>> {
        let file = self.open_again()?;
        let is_locked = set_lock_within(&file, ATTACHER_AT, LOCK_PATIENCE)?;
        Ok(is_locked.then(|| Attaching(file)))
    }

    /// Whether a process that may write holds the lock for attaching.
    pub(in crate::file) fn is_writer_attaching(&self) -> bool {
        self.ask(libc::F_RDLCK, ATTACHER_AT, 1)
    }

    /// Whether any of the first `places` places is taken.
    pub(in crate::file) fn is_any_place_taken(&self, places: u32) -> bool {
        self.ask(libc::F_RDLCK, PLACES_AT, places.into())
    }

    /// Locks the byte of a place; `None` where another process has it.
    pub(in crate::file) fn take_place(&self, place: u32) -> io::Result<Option<Lock>> {
        let byte = PLACES_AT + i64::from(place);
        let file = self.open_again()?;
        if !set_lock(&file, libc::F_WRLCK, byte)? {
            return Ok(None);
        }
        let anchor = Anchor::new(&file)?;
        drop(file);
        // Closing must not have unlocked it, or all would be taken for dead.
        if self.with_file(|file| conflicts(file, libc::F_RDLCK, byte, 1))? {
            return Ok(Some(Lock { _anchor: anchor }));
        }
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "locks of open file descriptions do not hold on this file system (it may be an overlay \
             of a container); put the cache on a local one such as tmpfs, ext4 or xfs",
        ))
    }

    /// Locks a segment against recycling by the byte that belongs to a place; `None` where that is locked.
    pub(in crate::file) fn pin(&self, segment: u32, place: u32) -> io::Result<Option<Lock>> {
        let file = self.open_again()?;
        let byte = first_byte_of(segment) + i64::from(place);
        if !set_lock(&file, libc::F_WRLCK, byte)? {
            return Ok(None);
        }
        Ok(Some(Lock { _anchor: Anchor::new(&file)? }))
    }

    /// Whether a process has a place: only a write lock says so, which no process can hold that
    /// may only read the file.
    pub(in crate::file) fn is_place_taken(&self, place: u32) -> bool {
        self.ask(libc::F_RDLCK, PLACES_AT + i64::from(place), 1)
    }

    /// Whether a process reads a segment in place: only a write lock says so, as for places.
    pub(in crate::file) fn is_segment_locked(&self, segment: u32) -> bool {
        self.ask(libc::F_RDLCK, first_byte_of(segment), BYTES_OF_A_SEGMENT)
    }

    /// Whether a lock of this kind would meet another. An owner that cannot be asked about is taken
    /// for alive.
    fn ask(&self, kind: libc::c_int, byte: i64, count: i64) -> bool {
        let ask = |file: &File| conflicts(file, kind, byte, count);
        let asked = self.with_file(ask).or_else(|_| self.open_again().and_then(|file| ask(&file)));
        asked.unwrap_or(true)
    }
}

fn first_byte_of(segment: u32) -> i64 {
    SEGMENTS_AT + i64::from(segment) * BYTES_OF_A_SEGMENT
}

/// Opens a file that is not a link. A pipe that has taken its path is not waited for.
pub(in crate::file) fn open(path: &Path, is_writable: bool) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).write(is_writable).custom_flags(flags).open(path)
}

/// Locks a byte; says whether it was free.
fn set_lock(file: &File, kind: libc::c_int, byte: i64) -> io::Result<bool> {
    match ofd(file, libc::F_OFD_SETLK, kind, byte, 1) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(false),
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => Err(io::Error::new(
            error.kind(),
            "the system does not allow this process to lock the file; a profile of AppArmor \
             (which has to have 'k') or SELinux may forbid it",
        )),
        Err(error) => Err(error),
    }
}

/// Locks a byte for writing as soon as it is free; says whether it was within this time.
pub(in crate::file) fn set_lock_within(
    file: &File,
    byte: i64,
    patience: Duration,
) -> io::Result<bool> {
    let begin = Instant::now();
    loop {
        if set_lock(file, libc::F_WRLCK, byte)? {
            return Ok(true);
        }
        if begin.elapsed() >= patience {
            return Ok(false);
        }
        std::thread::sleep(LOCK_SLEEP);
    }
}

/// Whether a lock of this kind on some of the bytes would meet one of another description.
fn conflicts(file: &File, kind: libc::c_int, byte: i64, count: i64) -> io::Result<bool> {
    let lock = ofd(file, libc::F_OFD_GETLK, kind, byte, count)?;
    Ok(libc::c_int::from(lock.l_type) != libc::F_UNLCK)
}

fn ofd(
    file: &File,
    command: libc::c_int,
    kind: libc::c_int,
    byte: i64,
    count: i64,
) -> io::Result<libc::flock> {
    let mut lock = libc::flock {
        l_type: libc::c_short::try_from(kind).expect("a kind of lock"),
        l_whence: libc::c_short::try_from(libc::SEEK_SET).expect("a small number"),
        l_start: byte,
        l_len: count,
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
        assert!(one.is_place_taken(3) && other.is_place_taken(3));
        assert!(!other.is_place_taken(4));
        assert!(other.take_place(3).expect("locks").is_none());
        drop(lock);
        assert!(!one.is_place_taken(3));
    }

    #[test]
    fn a_read_lock_does_not_make_a_place_taken() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        std::fs::write(&path, "x").expect("a file");
        let kernel = kernel(&path);
        let reader = open(&path, false).expect("a file");
        for byte in [ATTACHER_AT, PLACES_AT + 3, first_byte_of(3)] {
            assert!(set_lock(&reader, libc::F_RDLCK, byte).expect("locks"));
        }
        assert!(!kernel.is_place_taken(3) && !kernel.is_any_place_taken(32));
        assert!(!kernel.is_writer_attaching());
        assert!(kernel.take_place(3).expect("locks").is_none(), "the reader is in the way");
        assert!(!kernel.is_segment_locked(3), "a reader keeps nobody from emptying it");
        let place = kernel.take_place(31).expect("locks");
        assert!(place.is_some() && kernel.is_any_place_taken(32));
        assert!(!kernel.is_any_place_taken(31));
    }

    #[test]
    fn attaching_waits_for_another_and_no_child_keeps_the_lock() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        std::fs::write(&path, "x").expect("a file");
        let (one, other) = (kernel(&path), kernel(&path));
        let attaching = one.start_attaching().expect("locks").expect("it is free");
        assert!(other.is_writer_attaching());
        // As a child would that was forked while it was held.
        let inherited = attaching.0.try_clone().expect("a descriptor");
        assert!(
            !set_lock_within(&open(&path, true).expect("a file"), ATTACHER_AT, LOCK_SLEEP)
                .expect("locks")
        );
        drop(attaching);
        assert!(other.start_attaching().expect("locks").is_some());
        drop(inherited);
    }

    #[test]
    fn a_number_that_another_file_has_got_is_not_closed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        std::fs::write(&path, "x").expect("a file");
        let kernel = kernel(&path);
        // As after closefrom(): the number is another file's.
        let number = kernel.with_file(|file| Ok(file.as_raw_fd())).expect("a file");
        let other = File::open("/dev/null").expect("a file");
        // SAFETY: the kernel's descriptor is given away for another, on purpose.
        assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), number) }, number);
        drop(kernel);
        // SAFETY: only asked about.
        assert_ne!(unsafe { libc::fcntl(number, libc::F_GETFD) }, -1, "it is still open");
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .expect("a pipe");
        assert!(open(&path, false).is_ok(), "it would wait for a writer");
    }

    #[test]
    fn each_pin_of_a_segment_holds_it_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        std::fs::write(&path, "x").expect("a file");
        let kernel = kernel(&path);
        let pin = |place| kernel.pin(9, place).expect("locks");
        let [one, other] = [0, 1023].map(|place| pin(place).expect("it is free"));
        assert!(pin(0).is_none(), "a place has one");
        drop(one);
        assert!(kernel.is_segment_locked(9));
        assert!(!kernel.is_segment_locked(8) && !kernel.is_segment_locked(10));
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
        assert!(!kernel.is_place_taken(0), "the descriptor still tells");
    }
}
