//! Sessions: the use of one file by a process, from opening it to letting go of it.

#![expect(unsafe_code, reason = "a mapping that a child gives back")]

use std::io;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::file::area::Area;
use crate::file::area::records::VERSIONS_END;
use crate::file::crash;
use crate::file::format::header::{self, Header};
use crate::file::operations::census::Census;
use crate::file::operations::pin::Pins;
use crate::file::operations::verified::Verified;
use crate::file::platform::filesystem::{self, FreeSpace};
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::file::platform::halted::ProcessId;
use crate::file::platform::kernel::{FileId, Kernel};
use crate::file::platform::map::{Access, Map};
use crate::file::platform::mapped::Mapped;
use crate::file::process::create::{self, Opened, Wanted};
use crate::file::process::error::FileError;
use crate::file::process::owners::{Owners, note_deaths};
use crate::file::process::quiescence::{MarkPages, PendingOperations};
use crate::mutant;

/// Under a new stamp, versions skip this many at least and at most: the word that counts them may
/// have been lost with the power.
const SKIPPED_AT_ONCE: std::ops::RangeInclusive<u64> = 1 << 16..=1 << 32;

/// The reason why a process only reads a cache file, though it asked to write: other processes have
/// all owner slots, or too little disk space is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum ReadsOnly {
    /// Other processes have all owner slots.
    Crowded,
    /// The file system has too little free space for what would be written.
    LowSpace,
}

/// A session: a mapped cache file, and the owner slots (entries in the file's table of users) that
/// this process has in it.
#[derive(Debug)]
pub(in crate::file) struct Session {
    pub(in crate::file) area: Area<Mapped>,
    pub(in crate::file) header: Header,
    /// The owner slots of this process in the cache file; `None` if it only reads the file.
    pub(in crate::file) owners: Option<Owners>,
    pub(in crate::file) reads_only: Option<ReadsOnly>,
    /// Whether the free space of the cache file's file system has to be checked from time to time.
    pub(in crate::file) is_watched: bool,
    /// The segments of the cache file in which this session reads values in place, so that they are
    /// not recycled.
    pub(in crate::file) pins: Pins,
    /// The entries of the cache file whose checksums this session has verified, for reads that
    /// verify each entry once.
    pub(in crate::file) verified: Verified,
    /// The number of claims, which outlive an operation and use the file.
    holds: Arc<AtomicUsize>,
    /// Whether the directory entry of the cache file was flushed to disk.
    pub(in crate::file) is_name_durable: AtomicBool,
    process: u32,
    leaving: Mutex<LeaveProgress>,
    /// The previous session (opening of the cache file) of this process, which other threads may
    /// still be using.
    pub(in crate::file) before: AtomicPtr<Session>,
}

/// The steps of letting go of a file that are done.
#[derive(Debug, Default)]
struct LeaveProgress {
    has_left: bool,
    /// Zeros are mapped in the place of the file.
    is_empty: bool,
    /// The operations that may be using it.
    in_progress: Option<PendingOperations>,
}

/// A guard that keeps a session (a mapped cache file) open for longer than one operation; released
/// on drop.
#[derive(Debug)]
pub(in crate::file) struct SessionHold(Arc<AtomicUsize>);

impl Drop for SessionHold {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl Session {
    /// Opens the cache file at a path, or creates it; if another process creates one at the same
    /// time, opens that file.
    pub(in crate::file) fn open(
        path: &Path,
        wanted: &Wanted,
        verifies_all: bool,
    ) -> Result<Self, FileError> {
        let begin = Instant::now();
        loop {
            let opened = create::open_or_create(path, wanted)?;
            let id = FileId::of(&opened.file).ok();
            match Self::of(path, opened, wanted, verifies_all) {
                Err(_)
                    if FileId::at(path).ok() != id && begin.elapsed() < create::LONGEST_OPENING => {
                }
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
        let Opened { file, header, stamp } = opened;
        let space = if wanted.is_writable { filesystem::free_space(&file) } else { None };
        let is_low = space.is_some_and(|space| space.is_low(header.geometry.file_bytes));
        let is_writable = wanted.is_writable && !is_low;
        let map = Map::new(&file, header.geometry.file_bytes, is_writable);
        let map = map.map_err(io_error)?;
        if wanted.prefaults {
            // Pages that cannot be mapped now are mapped when they are used. Mapping them for writing
            // would have all of them written to disk.
            let _ = map.prefault(Access::Read);
        }
        let kernel = Kernel::new(file, path, is_writable).map_err(io_error)?;
        let pins = Pins::of(kernel.id);
        let ground = Mapped { map, kernel };
        let mut area = Area::new(ground, header.geometry, header.hash_seed, stamp);
        area.verifies_all = verifies_all;
        let mut owners = None;
        if is_writable {
            owners = area.attach(path, wanted.now_ms)?;
        } else {
            area.observe();
        }
        let is_crowded = is_writable && owners.is_none();
        let low = is_low.then_some(ReadsOnly::LowSpace);
        Ok(Self {
            area,
            header,
            owners,
            reads_only: low.or(is_crowded.then_some(ReadsOnly::Crowded)),
            is_watched: space.is_some(),
            pins,
            verified: Verified::default(),
            holds: Arc::default(),
            is_name_durable: AtomicBool::new(false),
            process: std::process::id(),
            leaving: Mutex::default(),
            before: AtomicPtr::new(ptr::null_mut()),
        })
    }

    /// Counts the entries of the cache file again if the stored counts are wrong, and if this
    /// process may write.
    pub(in crate::file) fn recount(&self, now_ms: impl Fn() -> u64) {
        let Some(owners) = &self.owners else { return };
        note_deaths(&self.area);
        if Census::of(&self.area).believable_live().is_some() {
            return;
        }
        // Held until the end: an owner slot that was given back would make its locks a dead owner's.
        if let Some(taken) = owners.take(&self.area, now_ms) {
            Census::of(&self.area).recount_after_deaths(taken.owner);
        }
    }

    /// Returns the reason why this process only reads the cache file, though it asked to write;
    /// `None` if it writes.
    pub(in crate::file) fn why_it_only_reads(&self, path: &Path) -> Option<FileError> {
        Some(match self.reads_only? {
            ReadsOnly::Crowded => self.crowded_out(path),
            ReadsOnly::LowSpace => self.low_space(path),
        })
    }

    /// Returns the error of a write while the cache file's file system has too little free space.
    pub(in crate::file) fn low_space(&self, path: &Path) -> FileError {
        let free_bytes = self.space().map_or(0, |space| space.free_bytes);
        FileError::LowSpace { path: path.to_owned(), free_bytes, needed_bytes: self.needed_bytes() }
    }

    fn crowded_out(&self, path: &Path) -> FileError {
        let slots = self.area.geometry.numbers.owner_slots;
        let path = path.to_owned();
        let asked = (0..slots).map(|slot| self.area.ground.kernel.is_slot_taken(slot));
        match asked.collect::<io::Result<Vec<bool>>>() {
            Ok(taken) if taken.iter().all(|is_taken| *is_taken) => {
                FileError::Crowded { path, slots }
            }
            Ok(_) => FileError::LockedOut(path),
            Err(source) => FileError::Io { path, source },
        }
    }

    fn space(&self) -> Option<FreeSpace> {
        self.area.ground.kernel.with_file(|file| Ok(filesystem::free_space(file))).ok().flatten()
    }

    /// Returns the number of free bytes on the file system below which this process only reads the
    /// cache file.
    pub(in crate::file) fn needed_bytes(&self) -> u64 {
        FreeSpace::needed_bytes(self.area.geometry.file_bytes)
    }

    /// Returns whether free space on the cache file's file system is so low that a write could wait
    /// for it without end.
    pub(in crate::file) fn has_low_space(&self) -> bool {
        let is_low = |space: FreeSpace| space.is_low(self.area.geometry.file_bytes);
        self.is_watched && self.space().is_some_and(is_low)
    }

    /// Returns a guard that keeps this session (the mapped cache file) open for longer than one
    /// operation.
    pub(in crate::file) fn hold(&self) -> SessionHold {
        self.holds.fetch_add(1, Ordering::Relaxed);
        SessionHold(Arc::clone(&self.holds))
    }

    /// Gives back the owner slots (entries in the table of users) of this process in the session's
    /// cache file.
    pub(in crate::file) fn leave_slots(&self) {
        if let Some(owners) = &self.owners {
            // Waits for threads that write.
            let may_store =
                !self.has_low_space() || mutant::is_on("owner-slots-given-back-without-space");
            owners.leave(&self.area, may_store);
        }
    }

    /// Unmaps the cache file of a closed session, unless values of it are read in place; returns
    /// whether nothing uses the session any more. Threads that may still be using it find an empty
    /// file at the same addresses.
    pub(in crate::file) fn let_go(&self, page: &MarkPages) -> bool {
        let mut leaving = self.leaving.lock();
        if !leaving.has_left {
            if !self.pins.close() {
                return false;
            }
            self.leave_slots();
            self.area.ground.kernel.let_go();
            leaving.has_left = true;
            leaving.in_progress = PendingOperations::of(page);
        }
        // In this order: an operation in progress can still begin to hold it.
        let are_over = leaving.in_progress.as_mut().is_some_and(|these| these.are_over(page));
        let is_held =
            self.holds.load(Ordering::Acquire) > 0 && !mutant::is_on("held-sessions-are-freed");
        let is_unused = are_over && !is_held;
        if !is_unused && !leaving.is_empty {
            leaving.is_empty = self.area.ground.map.replace_by_zeros().is_ok();
        }
        is_unused && !mutant::is_on("sessions-never-freed")
    }

    /// Unmaps the cache file of a session that a forked child has inherited, unless values of it
    /// are read in place; returns whether it did. The session itself stays, because a thread of the
    /// parent may have been changing it during the fork.
    pub(in crate::file) fn abandon_inherited(&self) -> bool {
        if !self.pins.close() {
            return false;
        }
        self.area.ground.kernel.let_go();
        // SAFETY: a child has one thread, which is not in an operation that its parent began; claims
        // that it has inherited do nothing, and it reads no value in place. The session is forgotten.
        unsafe { self.area.ground.map.unmap() };
        self.pins.free_inherited();
        self.verified.free_inherited();
        true
    }

    pub(in crate::file) fn is_own(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Area<Mapped> {
    /// Takes an owner slot, and the stamp of all that use the file at this time; if there is nobody else,
    /// installs that of this boot. `None`: other processes have all owner slots.
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
        self.agree_on_stamp(now_ms).map_err(io_error)?;
        Owners::attach(self, now_ms).map_err(io_error)
    }

    /// Returns the process that attaches; `None` where a process holds that lock that may only read.
    fn attacher(&self) -> Option<u64> {
        let is_writer = self.ground.kernel.is_writer_attaching().unwrap_or(true);
        is_writer.then(|| self.ground.load(header::ATTACHER, Ordering::Relaxed))
    }

    fn agree_on_stamp(&mut self, now_ms: u64) -> io::Result<()> {
        let installed = self.ground.load(header::STAMP, Ordering::Relaxed);
        let slots = self.geometry.numbers.owner_slots;
        let is_used = self.ground.kernel.is_any_slot_taken(slots)?;
        if is_used && !mutant::is_on("each-process-has-its-own-stamp") {
            self.stamp = installed;
        } else if installed != self.stamp {
            self.install_stamp(now_ms);
        }
        self.group_base = self.ground.load(header::GROUP_BASE, Ordering::Relaxed);
        Ok(())
    }

    /// The file may have been put together by a loss of power since it was last used.
    fn install_stamp(&self, now_ms: u64) {
        // In this order: a process that dies in between leaves it to the next.
        self.ground.store(header::SWEPT, 0, IN_ORDER);
        crash::point("attach.unswept");
        self.skip_versions();
        self.renew_group_clock(now_ms);
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
    /// none that can be seen, and no proof that the file is as it was left, everything is verified.
    fn observe(&mut self) {
        let installed = self.ground.load(header::STAMP, Ordering::Relaxed);
        let slots = self.geometry.numbers.owner_slots;
        if self.ground.kernel.is_any_slot_taken(slots).unwrap_or(false) {
            self.stamp = installed;
            self.group_base = self.ground.load(header::GROUP_BASE, Ordering::Relaxed);
        } else if installed != self.stamp {
            self.verifies_all = true;
        }
    }
}
