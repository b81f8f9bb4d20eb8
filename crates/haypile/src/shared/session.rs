//! A process' use of one file, and what becomes of it when the process forks or the file is replaced.

#![expect(unsafe_code, reason = "a pointer that a fork sets to zero")]

use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::area::Area;
use super::create::{self, FileError, Opened, Wanted};
use super::header::Header;
use super::kernel::Kernel;
use super::map::{Map, WipedOnFork};
use super::mapped::Mapped;
use super::seats::Seats;
use super::stamp;

/// A mapped file, and the places that this process has in it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) area: Area<Mapped>,
    pub(super) header: Header,
    /// None where the file is only read.
    pub(super) seats: Option<Seats>,
    process: u32,
    /// The one before: others may still be using it.
    before: AtomicPtr<Session>,
}

impl Session {
    fn open(path: &Path, wanted: &Wanted, verifies_all: bool) -> Result<Self, FileError> {
        let opened = create::open_or_create(path, wanted)?;
        Self::of(path, opened, wanted, verifies_all)
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
        let kernel = Kernel::new(file, path, wanted.is_writable).map_err(io_error)?;
        let area = Area {
            ground: Mapped { map, kernel },
            geometry: header.geometry,
            hash_seed: header.hash_seed,
            stamp,
            verifies_all,
        };
        let mut seats = None;
        if wanted.is_writable {
            area.note_boot();
            seats = Some(Seats::attach(&area, wanted.now_ms).map_err(io_error)?);
        }
        let before = AtomicPtr::new(ptr::null_mut());
        Ok(Self { area, header, seats, process: std::process::id(), before })
    }
}

/// The word of the wiped page that leads to the session.
const CURRENT: u64 = 0;
/// The word that is 1 while somebody makes one.
const MAKING: u64 = 1;

/// The session of this process, made anew in a forked child and when the file is replaced.
#[derive(Debug)]
pub(super) struct Sessions {
    page: WipedOnFork,
    path: PathBuf,
    wanted: Wanted,
    verifies_all: bool,
    /// How often the path has been looked at.
    looks: AtomicU64,
}

impl Sessions {
    pub(super) fn open(path: &Path, wanted: Wanted, verifies_all: bool) -> Result<Self, FileError> {
        let io_error = |source| FileError::Io { path: path.to_owned(), source };
        let page = WipedOnFork::new().map_err(io_error)?;
        let looks = AtomicU64::new(0);
        let sessions = Self { page, path: path.to_owned(), wanted, verifies_all, looks };
        sessions.put(Session::open(path, &wanted, verifies_all)?);
        Ok(sessions)
    }

    fn put(&self, session: Session) {
        let session = Box::new(session);
        session.before.store(self.current(), Ordering::Relaxed);
        let address = Box::into_raw(session).expose_provenance() as u64;
        self.page.word(CURRENT).store(address, Ordering::Release);
    }

    fn current(&self) -> *mut Session {
        let address = self.page.word(CURRENT).load(Ordering::Acquire);
        ptr::with_exposed_provenance_mut(usize::try_from(address).expect("an address"))
    }

    /// The session of this process.
    #[inline]
    pub(super) fn get(&self) -> Result<&Session, FileError> {
        let current = self.current();
        if !current.is_null() {
            // SAFETY: what `put` made lives until `self` is dropped.
            let session = unsafe { &*current };
            if !session.area.is_retired() {
                return Ok(session);
            }
        }
        self.make_anew(current)
    }

    /// In a forked child, or after the file was replaced.
    #[cold]
    fn make_anew(&self, known: *mut Session) -> Result<&Session, FileError> {
        // A lock that a fork leaves open: the page is wiped.
        let making = self.page.word(MAKING);
        while making.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            std::thread::yield_now();
        }
        let result = if self.current() != known || self.is_at_path(known) {
            Ok(())
        } else {
            Session::open(&self.path, &self.wanted, self.verifies_all)
                .map(|session| self.put(session))
        };
        making.store(0, Ordering::Release);
        result?;
        // SAFETY: as in `get`.
        Ok(unsafe { &*self.current() })
    }

    /// Goes on with the file that has the path now, if that is another one.
    pub(super) fn follow_path(&self) {
        let current = self.current();
        if !current.is_null() {
            // Where that fails, the old file is still a cache.
            let _ = self.make_anew(current);
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
        // Who replaces a file renames first and says so then; hence asked in this order.
        let is_retired = session.area.is_retired();
        let is_at_path = super::kernel::FileId::at(&self.path).is_ok_and(|id| id == own);
        if is_at_path && is_retired && session.seats.is_some() {
            session.area.set_ready();
        }
        is_at_path
    }

    /// Whether it is time to look at the path: seldom, for it costs a system call.
    #[inline]
    pub(super) fn is_time_to_look(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) % 4096 == 4095
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        let mut session = self.current();
        while !session.is_null() {
            // SAFETY: each was made by `put`, and is dropped once: nobody borrows `self` any more.
            let owned = unsafe { Box::from_raw(session) };
            session = owned.before.load(Ordering::Relaxed);
            if let Some(seats) = &owned.seats
                && owned.process == std::process::id()
            {
                seats.leave(&owned.area);
            }
        }
    }
}
