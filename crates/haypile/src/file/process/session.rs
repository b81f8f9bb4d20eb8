//! A process's use of one file, and what becomes of it when the process forks or the file is
//! replaced.

#![expect(unsafe_code, reason = "a pointer that a fork sets to zero")]

use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::file::area::Area;
use crate::file::area::owners::VERSIONS_END;
use crate::file::area::sweep::Sweep;
use crate::file::crash;
use crate::file::format::header::{self, Header};
use crate::file::operations::pin::Pins;
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::file::platform::halted::ProcessId;
use crate::file::platform::kernel::{FileId, Kernel};
use crate::file::platform::map::Map;
use crate::file::platform::mapped::Mapped;
use crate::file::platform::stamp;
use crate::file::process::create::{self, FileError, Opened, Wanted};
use crate::file::process::owners::Owners;
use crate::file::process::schedule::Schedule;
use crate::mutant;
use crate::process::WipedOnFork;

/// Under a new stamp, versions skip this many at least and at most: the word that counts them may
/// have been lost with the power.
const SKIPPED_AT_ONCE: std::ops::RangeInclusive<u64> = 1 << 16..=1 << 32;

/// The number of times that opening begins again, where others replace the file.
const ATTEMPTS: u32 = 100;
/// Nor does it begin again after this time.
const LONGEST_OPENING: Duration = Duration::from_secs(5);

/// A mapped file, and the places that this process has in it.
#[derive(Debug)]
pub(in crate::file) struct Session {
    pub(in crate::file) area: Area<Mapped>,
    pub(in crate::file) header: Header,
    /// None where the file is only read.
    pub(in crate::file) owners: Option<Owners>,
    /// Whether it is only read because other processes have all places.
    pub(in crate::file) is_crowded_out: bool,
    /// Values that are read in place.
    pub(in crate::file) pins: Pins,
    /// Whether it was flushed to disk, with the directory that has its name.
    pub(in crate::file) is_name_durable: AtomicBool,
    process: u32,
    /// The one before: other threads may still be using it.
    before: AtomicPtr<Session>,
}

impl Session {
    /// Opens what has the path, or makes it. Where another file takes the path at the same time,
    /// that one.
    fn open(path: &Path, wanted: &Wanted, verifies_all: bool) -> Result<Self, FileError> {
        let (mut attempts, begin) = (0..ATTEMPTS, Instant::now());
        loop {
            let opened = create::open_or_create(path, wanted)?;
            let id = FileId::of(&opened.file).ok();
            match Self::of(path, opened, wanted, verifies_all) {
                Err(_)
                    if FileId::at(path).ok() != id
                        && attempts.next().is_some()
                        && begin.elapsed() < LONGEST_OPENING => {}
                other => return other,
            }
        }
    }

    fn of(
        path: &Path,
        opened: Opened,
        wanted: &Wanted,
        verifies_all: bool,
    ) -> Result<Self, FileError> {
        let io_error = |source| FileError::Io { path: path.to_owned(), source };
        let Opened { file, header } = opened;
        let stamp = stamp::of(&file).map_err(io_error)?;
        let map = Map::new(&file, header.geometry.file_bytes, wanted.is_writable);
        let map = map.map_err(io_error)?;
        if wanted.prefaults {
            // Pages that cannot be mapped now are mapped when they are used.
            let _ = map.prefault(wanted.is_writable);
        }
        let kernel = Kernel::new(file, path, wanted.is_writable).map_err(io_error)?;
        let mut area = Area {
            ground: Mapped { map, kernel },
            geometry: header.geometry,
            hash_seed: header.hash_seed,
            stamp,
            verifies_all,
            sweep: Sweep::default(),
        };
        let mut owners = None;
        if wanted.is_writable {
            owners = area.attach(path, wanted.now_ms)?;
        } else {
            area.observe();
        }
        Ok(Self {
            area,
            header,
            is_crowded_out: wanted.is_writable && owners.is_none(),
            owners,
            pins: Pins::default(),
            is_name_durable: AtomicBool::new(false),
            process: std::process::id(),
            before: AtomicPtr::new(ptr::null_mut()),
        })
    }

    /// Corrects wrong counts of entries, if this process writes.
    pub(in crate::file) fn recount(&self, now_ms: impl Fn() -> u64) {
        if self.area.believable_live().is_some() {
            return;
        }
        // Held until the end: a place that was given back would make its locks a dead owner's.
        let taken = self.owners.as_ref().and_then(|owners| owners.take(&self.area, now_ms));
        if let Some(taken) = taken {
            self.area.recount_after_deaths(taken.me);
        }
    }

    /// Why this process only reads.
    pub(in crate::file) fn crowded_out(&self, path: &Path) -> FileError {
        let places = self.area.geometry.numbers.places;
        let is_free = |place: &u32| !self.area.ground.kernel.is_place_taken(*place);
        let path = path.to_owned();
        if (0..places).any(|place| is_free(&place)) {
            return FileError::LockedOut(path);
        }
        FileError::Crowded { path, places }
    }

    /// Lets go of a file that this process has left, though threads may still be using it: they find
    /// an empty one at the same addresses. Not while values are read in place; says whether it did.
    fn let_go(&self) -> bool {
        if !self.pins.close() {
            return false;
        }
        if let Some(owners) = self.owners.as_ref().filter(|_| self.is_own()) {
            // Waits for threads that write.
            owners.leave(&self.area);
        }
        let is_gone = self.area.ground.map.replace_by_zeros().is_ok();
        self.area.ground.kernel.let_go();
        is_gone
    }

    fn is_own(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Area<Mapped> {
    /// Takes a place, and the stamp of all that use the file at this time; if there is nobody else,
    /// installs that of this boot. `None`: other processes have all places.
    fn attach(&mut self, path: &Path, now_ms: u64) -> Result<Option<Owners>, FileError> {
        let io_error = |source| FileError::Io { path: path.to_owned(), source };
        let attaching = self.ground.kernel.start_attaching().map_err(io_error)?;
        let Some(_attaching) = attaching else {
            let (path, process) = (path.to_owned(), self.attacher());
            return Err(FileError::Attaching { path, process });
        };
        let process = ProcessId::own();
        self.ground.store(header::ATTACHER, process.number, Ordering::Relaxed);
        self.ground.store(header::ATTACHER_NAMESPACE, process.namespace, Ordering::Relaxed);
        crash::point("attach.begun");
        self.agree_on_stamp();
        Owners::attach(self, now_ms).map_err(io_error)
    }

    /// The process that attaches; `None` where a process holds that lock that may only read.
    fn attacher(&self) -> Option<u64> {
        let is_writer = self.ground.kernel.is_writer_attaching();
        is_writer.then(|| self.ground.load(header::ATTACHER, Ordering::Relaxed))
    }

    fn agree_on_stamp(&mut self) {
        let installed = self.ground.load(header::STAMP, Ordering::Relaxed);
        let places = self.geometry.numbers.places;
        let is_used = self.ground.kernel.is_any_place_taken(places);
        if is_used && !mutant::is_on("each-process-has-its-own-stamp") {
            self.stamp = installed;
        } else if installed != self.stamp {
            self.install_stamp();
        }
    }

    /// The file may have been put together by a loss of power since it was last used.
    fn install_stamp(&self) {
        // In this order: a process that dies in between leaves it to the next.
        self.ground.store(header::SWEPT, 0, IN_ORDER);
        crash::point("attach.unswept");
        self.skip_versions();
        self.invalidate_counts();
        crash::point("attach.skipped");
        self.ground.store(header::STAMP, self.stamp, IN_ORDER);
    }

    /// Skips as many versions as were drawn under the stamp before, several times over, within
    /// limits: however often stamps change, opening does not use all versions up.
    fn skip_versions(&self) {
        let next = self.ground.load(header::NEXT_VERSION, Ordering::Relaxed);
        let skipped = self.ground.load(header::SKIPPED_VERSIONS, Ordering::Relaxed);
        let drawn = next.saturating_sub(skipped).saturating_mul(4);
        let more = drawn.clamp(*SKIPPED_AT_ONCE.start(), *SKIPPED_AT_ONCE.end());
        let last = next.saturating_add(more);
        if last < VERSIONS_END && !mutant::is_on("versions-do-not-skip") {
            self.skip_versions_to(last);
        }
    }

    /// Takes the stamp of the processes that use the file, as one that only reads. Where there is
    /// none, and no proof that the file is as it was left, everything is verified.
    fn observe(&mut self) {
        let installed = self.ground.load(header::STAMP, Ordering::Relaxed);
        let places = self.geometry.numbers.places;
        if self.ground.kernel.is_any_place_taken(places) {
            self.stamp = installed;
        } else if installed != self.stamp {
            self.verifies_all = true;
        }
    }
}

/// The word of the wiped page that leads to the session.
const CURRENT: usize = 0;
/// The word that is 1 while a thread opens one.
const OPENING: usize = 1;

/// The session of this process, opened again in a forked child and when the file is replaced.
#[derive(Debug)]
pub(in crate::file) struct Sessions {
    page: WipedOnFork,
    /// The latest session of this process or, in a child that has none yet, of its parent.
    latest: AtomicPtr<Session>,
    path: PathBuf,
    wanted: Wanted,
    verifies_all: bool,
    /// The file that '/' is: after a chroot the path means another file.
    root: Option<FileId>,
    looks: Schedule,
}

impl Sessions {
    pub(in crate::file) fn open(
        path: &Path,
        mut wanted: Wanted,
        verifies_all: bool,
    ) -> Result<Self, FileError> {
        let io_error = |source| FileError::Io { path: path.to_owned(), source };
        let page = WipedOnFork::new().map_err(io_error)?;
        let first = Session::open(path, &wanted, verifies_all)?;
        // A file that replaces this one later has to be compressed as this one.
        wanted.compression = create::Compressed::As(first.header.compression);
        let sessions = Self {
            page,
            latest: AtomicPtr::new(ptr::null_mut()),
            path: path.to_owned(),
            wanted,
            verifies_all,
            root: FileId::at(Path::new("/")).ok(),
            looks: Schedule::default(),
        };
        sessions.put(first);
        Ok(sessions)
    }

    fn put(&self, session: Session) {
        let session = Box::new(session);
        let before = self.latest.load(Ordering::Acquire);
        session.before.store(before, Ordering::Relaxed);
        let session = Box::into_raw(session);
        self.latest.store(session, Ordering::Release);
        let address = session.expose_provenance() as u64;
        self.page.word(CURRENT).store(address, Ordering::Release);
    }

    fn current(&self) -> *mut Session {
        let address = self.page.word(CURRENT).load(Ordering::Acquire);
        ptr::with_exposed_provenance_mut(usize::try_from(address).expect("an address"))
    }

    /// The size of the file, as far as this process knows, or its parent did.
    pub(in crate::file) fn file_bytes(&self) -> u64 {
        // SAFETY: what `put` made lives until `self` is dropped, and `open` puts the first.
        unsafe { &*self.latest.load(Ordering::Acquire) }.header.geometry.file_bytes
    }

    /// The session of this process.
    #[inline]
    pub(in crate::file) fn get(&self) -> Result<&Session, FileError> {
        let current = self.current();
        if !current.is_null() {
            // SAFETY: what `put` made lives until `self` is dropped.
            let session = unsafe { &*current };
            if !session.area.is_retired() {
                return Ok(session);
            }
        }
        self.open_again(current)
    }

    /// In a forked child, or after the file was replaced.
    #[cold]
    fn open_again(&self, known: *mut Session) -> Result<&Session, FileError> {
        let _opening = Opening::begin(&self.page);
        if !self.has_root() {
            // SAFETY: as in `get`.
            let session = unsafe { known.as_ref() };
            return session.ok_or_else(|| FileError::Chroot(self.path.clone()));
        }
        if self.current() == known && !self.is_at_path(known) {
            self.put(Session::open(&self.path, &self.wanted, self.verifies_all)?);
            self.let_go_of_others();
        }
        // SAFETY: as in `get`.
        Ok(unsafe { &*self.current() })
    }

    /// The work that a writer does from time to time.
    pub(in crate::file) fn look(&self, now_ms: impl Fn() -> u64) {
        let current = self.current();
        if current.is_null() || !self.has_root() {
            return;
        }
        // Where that fails, the old file is still a cache.
        if let Ok(session) = self.open_again(current) {
            if session.is_crowded_out {
                self.try_for_a_place();
            }
            if let Some(owners) = &session.owners {
                owners.keep_own(&session.area, now_ms);
                owners.shrink(&session.area);
            }
            let _opening = Opening::begin(&self.page);
            self.let_go_of_others();
        }
    }

    /// Opens the file for writing, if there is a place again.
    fn try_for_a_place(&self) {
        let _opening = Opening::begin(&self.page);
        let opened = Session::open(&self.path, &self.wanted, self.verifies_all);
        if let Some(session) = opened.ok().filter(|session| !session.is_crowded_out) {
            self.put(session);
            self.let_go_of_others();
        }
    }

    /// Lets go of the files of all sessions but the current one. Nobody else opens one at the same
    /// time.
    fn let_go_of_others(&self) {
        // SAFETY: as in `get`; a session was put before.
        let current = unsafe { &*self.current() };
        let mut session = current.before.load(Ordering::Relaxed);
        while !session.is_null() {
            // SAFETY: as in `get`.
            let other = unsafe { &*session };
            // One that it could not let go of is tried again.
            let _ = other.let_go();
            session = other.before.load(Ordering::Relaxed);
        }
    }

    /// Whether the file of a session still has the path. One that says that it was replaced and has it
    /// all the same got it back, by a loss of power or by hand: it is in use.
    fn is_at_path(&self, session: *mut Session) -> bool {
        if session.is_null() {
            return false;
        }
        // SAFETY: as in `get`.
        let session = unsafe { &*session };
        let own = session.area.ground.kernel.id;
        // A process that replaces a file renames first and says so then; hence asked in this order.
        let is_retired = session.area.is_retired();
        let is_at_path = FileId::at(&self.path).is_ok_and(|id| id == own);
        if is_at_path && is_retired && session.owners.is_some() {
            session.area.set_ready();
        }
        is_at_path
    }

    /// Whether '/' is what it was, and the path names the same place.
    fn has_root(&self) -> bool {
        FileId::at(Path::new("/")).ok() == self.root
    }

    /// Whether it is time to [`look`](Self::look): seldom, for it costs system calls.
    #[inline]
    pub(in crate::file) fn is_time_to_look(&self) -> bool {
        self.looks.is_time()
    }

    pub(in crate::file) fn path(&self) -> &Path {
        &self.path
    }
}

/// A lock that a fork leaves open, for the page is wiped.
struct Opening<'a>(&'a AtomicU64);

impl<'a> Opening<'a> {
    fn begin(page: &'a WipedOnFork) -> Self {
        let word = page.word(OPENING);
        while word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            std::thread::yield_now();
        }
        Self(word)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        let mut session = *self.latest.get_mut();
        while !session.is_null() {
            // SAFETY: each was made by `put`, and is dropped once: nobody borrows `self` any more.
            let owned = unsafe { Box::from_raw(session) };
            session = owned.before.load(Ordering::Relaxed);
            if !owned.is_own() {
                // A thread of the parent may have been changing it when this process was forked.
                let _ = owned.let_go();
                std::mem::forget(owned);
                continue;
            }
            if let Some(owners) = &owned.owners {
                owners.leave(&owned.area);
            }
        }
    }
}
