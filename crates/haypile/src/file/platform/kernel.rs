//! State that the kernel keeps: which processes are alive, by locks on bytes far beyond the end of
//! the file.

#![expect(unsafe_code, reason = "no library has locks of open file descriptions on single bytes")]

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use rustix::fs::SeekFrom;

use crate::call::{Call, errno};
use crate::file::platform::map::Anchor;
use crate::file::platform::random::random;
use crate::mutant;

/// Offset of the byte that the first owner slot locks.
const OWNER_SLOTS_AT: i64 = 1 << 62;
/// The first byte of the first segment.
const SEGMENTS_AT: i64 = OWNER_SLOTS_AT + (1 << 32);
/// The bytes of a segment: one for each owner that can read it in place.
const BYTES_OF_A_SEGMENT: i64 = 1024;
/// The offset of the byte of the cache file that a process locks while it replaces the file.
pub(in crate::file) const REPLACER_AT: i64 = OWNER_SLOTS_AT - 1;
/// The byte that a process locks while it attaches to the file.
const ATTACHER_AT: i64 = OWNER_SLOTS_AT - 2;
/// The longest wait for another process that is replacing or opening the cache file.
pub(in crate::file) const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// The time to sleep before asking again.
const LOCK_SLEEP: Duration = Duration::from_millis(1);

/// The identity of a file (device and inode), which distinguishes it from others at the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::file) struct FileId {
    pub(in crate::file) device: u64,
    pub(in crate::file) inode: u64,
}

impl FileId {
    pub(in crate::file) fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata().call("statx")?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    pub(in crate::file) fn at(path: &Path) -> io::Result<Self> {
        let metadata = path.symlink_metadata().call("statx")?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    /// Returns the identity (device and inode) of the directory '/', which a chroot changes, so
    /// that a path then names another file; `None` if it cannot be read.
    pub(in crate::file) fn of_root() -> Option<Self> {
        Self::at(Path::new("/")).ok()
    }
}

/// A descriptor of the file that another part of the program can close: then its number is soon
/// that of another file.
///
/// Nothing but the position of its description tells whether it is still the one that was opened,
/// for a program may have opened the same file as well. All reading and writing is at offsets, so
/// that the position is free to be a mark.
#[derive(Debug)]
struct Descriptor {
    /// The descriptor, which is closed only where it is known to be still the one that was opened.
    file: ManuallyDrop<File>,
    mark: u64,
}

/// Positions that are used as marks; the first range where the file system allows offsets of this
/// size.
const MARKS: [std::ops::Range<u64>; 2] = [1 << 40..1 << 41, 1 << 29..1 << 30];

impl Descriptor {
    fn new(file: File) -> io::Result<Self> {
        let random = random();
        let mut found = Err(rustix::io::Errno::INVAL);
        for marks in MARKS {
            let mark = marks.start + random % (marks.end - marks.start);
            found = rustix::fs::seek(&file, SeekFrom::Start(mark));
            if found.is_ok() {
                break;
            }
        }
        Ok(Self { mark: found.call("lseek")?, file: ManuallyDrop::new(file) })
    }

    /// Returns whether the number is still that of the description that was opened.
    fn is_own(&self) -> bool {
        rustix::fs::seek(&*self.file, SeekFrom::Current(0)) == Ok(self.mark)
            || mutant::is_on("foreign-descriptors-used")
    }

    /// Calls `work` with the file. `None`: it is no longer the one that was opened.
    fn with<R>(&self, mut work: impl FnMut(&File) -> R) -> Option<R> {
        // Asked again: another thread may have closed it during the work.
        let done = self.is_own().then(|| work(&self.file));
        done.filter(|_| self.is_own())
    }

    fn close(mut self) {
        if self.is_own() {
            // SAFETY: `self` is not used again.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

/// The operating system's view of the cache file: its descriptor and its locks.
#[derive(Debug)]
pub(in crate::file) struct Kernel {
    /// The descriptor of the file, which never holds a lock, because locks do not conflict with
    /// those of their own description; `None` where it was let go of.
    descriptor: RwLock<Option<Descriptor>>,
    pub(in crate::file) id: FileId,
    pub(in crate::file) path: PathBuf,
    is_writable: bool,
    begin: Instant,
}

/// A locked byte of the cache file, which is unlocked when this guard is dropped or the process
/// ends.
#[derive(Debug)]
pub(in crate::file) struct Lock {
    _anchor: Anchor,
}

/// The lock that a process holds while it opens the cache file and takes an owner slot (its entry
/// in the file); released on drop.
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
        let descriptor = RwLock::new(Some(Descriptor::new(file)?));
        Ok(Self { descriptor, id, path: path.to_owned(), is_writable, begin: Instant::now() })
    }

    pub(in crate::file) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Calls `work` with the open cache file, and returns its result. If the program has closed all
    /// descriptors, the file is opened again by its path. An error if the file was closed by the
    /// cache, or cannot be opened again.
    pub(in crate::file) fn with_file<R>(
        &self,
        mut work: impl FnMut(&File) -> io::Result<R>,
    ) -> io::Result<R> {
        match &*self.descriptor.read() {
            None => return Err(io::Error::other("this process has let go of the cache's file")),
            Some(descriptor) => {
                if let Some(done) = descriptor.with(&mut work) {
                    return done;
                }
            }
        }
        let again = Descriptor::new(self.open_again().map_err(|error| {
            let text = "the program has closed the descriptor of the cache's file, which cannot be \
                        opened again";
            io::Error::new(error.kind(), format!("{text}: {error}"))
        })?)?;
        let done = work(&again.file);
        self.put(again);
        done
    }

    /// Takes a descriptor in the place of one that the program has closed.
    fn put(&self, again: Descriptor) {
        // Else another thread is doing the same.
        let Some(mut descriptor) = self.descriptor.try_write_for(LOCK_SLEEP) else {
            return again.close();
        };
        match &mut *descriptor {
            // The number is not closed: it may be another file's.
            Some(lost) if !lost.is_own() => *lost = again,
            _ => again.close(),
        }
    }

    /// Returns whether the program has closed the descriptor of the cache file, so that only the mapping
    /// leads to the file.
    pub(in crate::file) fn has_lost_descriptor(&self) -> bool {
        self.descriptor.read().as_ref().is_some_and(|descriptor| !descriptor.is_own())
    }

    /// Closes the descriptor of the cache file.
    pub(in crate::file) fn let_go(&self) {
        // A lock that another thread held when this process was forked stays locked.
        let Some(mut descriptor) = self.descriptor.try_write_for(LOCK_SLEEP) else {
            return;
        };
        if let Some(descriptor) = descriptor.take() {
            descriptor.close();
        }
    }

    /// Returns the file opened once more. An error where its path is no longer its own.
    fn open_again(&self) -> io::Result<File> {
        let file = open(&self.path, self.is_writable)?;
        if FileId::of(&file)? == self.id {
            return Ok(file);
        }
        Err(io::Error::other("another file has taken the path of the cache"))
    }

    /// Takes the lock for opening the cache file and taking an owner slot (the process's entry in
    /// the file); returns `None` if another process holds it for too long.
    pub(in crate::file) fn start_attaching(&self) -> io::Result<Option<Attaching>> {
        let file = self.open_again()?;
        let is_locked = set_lock_within(&file, ATTACHER_AT, LOCK_PATIENCE)?;
        Ok(is_locked.then(|| Attaching(file)))
    }

    /// Returns whether a process that may write to the cache file is opening it at the moment.
    pub(in crate::file) fn is_writer_attaching(&self) -> io::Result<bool> {
        self.ask(libc::F_RDLCK, ATTACHER_AT, 1)
    }

    /// Returns whether a process has taken any of the first `slots` owner slots (entries for users)
    /// of the cache file.
    pub(in crate::file) fn is_any_slot_taken(&self, slots: u32) -> io::Result<bool> {
        self.ask(libc::F_RDLCK, OWNER_SLOTS_AT, slots.into())
    }

    /// Locks the byte of the cache file that stands for an owner slot (a user's entry); returns
    /// `None` if another process has locked it.
    pub(in crate::file) fn lock_slot(&self, slot: u32) -> io::Result<Option<Lock>> {
        let byte = OWNER_SLOTS_AT + i64::from(slot);
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

    /// Locks a segment against recycling (emptying), by the byte of the cache file that stands for
    /// the segment and an owner slot; returns `None` if that byte is locked.
    pub(in crate::file) fn pin(&self, segment: u32, slot: u32) -> io::Result<Option<Lock>> {
        let file = self.open_again()?;
        let byte = first_byte_of(segment) + i64::from(slot);
        if !set_lock(&file, libc::F_WRLCK, byte)? {
            return Ok(None);
        }
        Ok(Some(Lock { _anchor: Anchor::new(&file)? }))
    }

    /// Returns whether a process has taken this owner slot (a user's entry in the cache file). Only
    /// a write lock proves it, because a process that may only read the file cannot hold one.
    pub(in crate::file) fn is_slot_taken(&self, slot: u32) -> io::Result<bool> {
        self.ask(libc::F_RDLCK, OWNER_SLOTS_AT + i64::from(slot), 1)
    }

    /// Returns whether a process has write-locked a segment of the cache file to read its values in place (read locks do
    /// not count), or the kernel cannot be asked.
    pub(in crate::file) fn is_segment_locked(&self, segment: u32) -> bool {
        self.ask(libc::F_RDLCK, first_byte_of(segment), BYTES_OF_A_SEGMENT).unwrap_or(true)
    }

    /// Returns whether a lock of this kind would meet another.
    fn ask(&self, kind: libc::c_int, byte: i64, count: i64) -> io::Result<bool> {
        self.with_file(|file| conflicts(file, kind, byte, count))
    }

    /// Tests, on a new cache file, whether the file system supports the locks that users of the
    /// file will need. A lock that is hindered by a lock of another kind is not tested.
    pub(in crate::file) fn test_locks(path: &Path) -> io::Result<()> {
        let kernel = Self::new(open(path, true)?, path, true)?;
        let attaching = kernel.start_attaching()?;
        drop(attaching);
        kernel.lock_slot(0).map(drop)
    }
}

fn first_byte_of(segment: u32) -> i64 {
    SEGMENTS_AT + i64::from(segment) * BYTES_OF_A_SEGMENT
}

/// Opens a file that is not a symbolic link. If a pipe has taken its path, the call does not wait
/// for it.
pub(in crate::file) fn open(path: &Path, is_writable: bool) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).write(is_writable).custom_flags(flags).open(path).call("open")
}

/// Locks a byte; says whether it was free.
fn set_lock(file: &File, kind: libc::c_int, byte: i64) -> io::Result<bool> {
    match ofd(file, libc::F_OFD_SETLK, kind, byte, 1) {
        Ok(_) => Ok(true),
        Err(error) if errno(&error) == Some(libc::EAGAIN) => Ok(false),
        Err(error) if errno(&error) == Some(libc::EACCES) => Err(io::Error::new(
            error.kind(),
            "fcntl(F_OFD_SETLK) failed: the system does not allow this process to lock the file; a \
             profile of AppArmor (which has to have 'k') or SELinux may forbid it",
        )),
        Err(error) => Err(error),
    }
}

/// Locks a byte of a file exclusively as soon as it is free; returns whether that was within the
/// given time.
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

/// Returns whether a lock of this kind on some of the bytes would meet one of another description.
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
    if result == -1 {
        let is_question = command == libc::F_OFD_GETLK;
        let name = if is_question { "fcntl(F_OFD_GETLK)" } else { "fcntl(F_OFD_SETLK)" };
        return Err(io::Error::last_os_error()).call(name);
    }
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn kernel(path: &Path) -> Kernel {
        Kernel::new(open(path, true).expect("a file"), path, true).expect("its facts")
    }

    #[test]
    fn a_slot_is_locked_until_its_lock_is_dropped() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        std::fs::write(&path, "x").expect("a file");
        let (one, other) = (kernel(&path), kernel(&path));
        let lock = one.lock_slot(3).expect("locks").expect("it is free");
        assert!(one.is_slot_taken(3).expect("asked") && other.is_slot_taken(3).expect("asked"));
        assert!(!other.is_slot_taken(4).expect("asked"));
        assert!(other.lock_slot(3).expect("locks").is_none());
        drop(lock);
        assert!(!one.is_slot_taken(3).expect("asked"));
    }

    #[test]
    fn a_read_lock_does_not_make_a_slot_taken() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        std::fs::write(&path, "x").expect("a file");
        let kernel = kernel(&path);
        let reader = open(&path, false).expect("a file");
        for byte in [ATTACHER_AT, OWNER_SLOTS_AT + 3, first_byte_of(3)] {
            assert!(set_lock(&reader, libc::F_RDLCK, byte).expect("locks"));
        }
        assert!(
            !kernel.is_slot_taken(3).expect("asked")
                && !kernel.is_any_slot_taken(32).expect("asked")
        );
        assert!(!kernel.is_writer_attaching().expect("asked"));
        assert!(kernel.lock_slot(3).expect("locks").is_none(), "the reader is in the way");
        assert!(!kernel.is_segment_locked(3), "a reader keeps nobody from emptying it");
        let slot = kernel.lock_slot(31).expect("locks");
        assert!(slot.is_some() && kernel.is_any_slot_taken(32).expect("asked"));
        assert!(!kernel.is_any_slot_taken(31).expect("asked"));
    }

    #[test]
    fn attaching_waits_for_another_and_no_child_keeps_the_lock() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        std::fs::write(&path, "x").expect("a file");
        let (one, other) = (kernel(&path), kernel(&path));
        let attaching = one.start_attaching().expect("locks").expect("it is free");
        assert!(other.is_writer_attaching().expect("asked"));
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

    /// Returns the number of the kernel's descriptor, which another file has now, as after `closefrom`.
    fn given_to(kernel: &Kernel, other: &File) -> libc::c_int {
        let number = kernel.with_file(|file| Ok(file.as_raw_fd())).expect("a file");
        // SAFETY: the kernel's descriptor is given away for another, on purpose.
        assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), number) }, number);
        number
    }

    fn is_open(number: libc::c_int) -> bool {
        // SAFETY: only asked about.
        unsafe { libc::fcntl(number, libc::F_GETFD) != -1 }
    }

    #[test]
    fn a_number_that_another_file_has_got_is_neither_used_nor_closed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        std::fs::write(&path, "x").expect("a file");
        // The program may have opened the cache's file itself.
        for other in ["/dev/null", path.to_str().expect("a path")] {
            let mut other = File::open(other).expect("a file");
            let kernel = kernel(&path);
            let number = given_to(&kernel, &other);
            assert!(kernel.has_lost_descriptor());
            let used = kernel.with_file(|file| Ok((file.as_raw_fd(), FileId::of(file)?)));
            let (used, id) = used.expect("opened again");
            assert!(used != number && id == kernel.id && !kernel.has_lost_descriptor());
            assert_eq!(kernel.with_file(|file| Ok(file.as_raw_fd())).expect("kept"), used);
            drop(kernel);
            assert!(is_open(number));
            // SAFETY: closes what the test has put there.
            assert_eq!(unsafe { libc::close(number) }, 0);
            assert_eq!(
                other.read(&mut [0; 1]).ok(),
                Some(usize::from(other.metadata().expect("it").is_file()))
            );
        }
    }

    #[test]
    fn a_lost_descriptor_whose_path_another_file_has_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        std::fs::write(&path, "x").expect("a file");
        let kernel = kernel(&path);
        let number = given_to(&kernel, &File::open("/dev/null").expect("a file"));
        std::fs::rename(&path, directory.path().join("old")).expect("renamed");
        std::fs::write(&path, "y").expect("a file");
        let error = kernel.with_file(|_| Ok(())).expect_err("it is gone").to_string();
        assert!(error.contains("has closed the descriptor"), "{error}");
        assert!(kernel.is_slot_taken(0).is_err());
        // SAFETY: closes what the test has put there.
        assert_eq!(unsafe { libc::close(number) }, 0);
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
        let pin = |slot| kernel.pin(9, slot).expect("locks");
        let [one, other] = [0, 1023].map(|slot| pin(slot).expect("it is free"));
        assert!(pin(0).is_none(), "a slot has one");
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
        assert!(kernel.lock_slot(0).is_err());
        assert!(!kernel.is_slot_taken(0).expect("asked"), "the descriptor still tells");
    }
}
