//! The sessions of a process on one path: their fate when the process forks, the file is replaced,
//! or its file system is full.

#![expect(unsafe_code, reason = "a pointer that a fork sets to zero, and lifetimes of sessions")]

use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Clock;
use crate::file::area::{Key, OpError, Owner};
use crate::file::format::slot::Token;
use crate::file::operations::claims::{Claim, ClaimKey, Claimed};
use crate::file::operations::pin::{Pinning, Reading};
use crate::file::operations::read::{Lookup, Seen};
use crate::file::platform::kernel::FileId;
use crate::file::platform::mapped::Mapped;
use crate::file::process::create::{Compressed, Wanted};
use crate::file::process::error::FileError;
use crate::file::process::quiescence::{LookPeriod, MarkPages, OperationGuard, OperationId};
use crate::file::process::session::{ReadsOnly, Session, SessionHold};
use crate::mutant;

/// The word of the wiped pages that leads to the session.
const CURRENT: usize = 0;
/// The word that is 1 while a thread opens one.
const OPENING: usize = 1;

/// The free space of a file system that has to be watched is asked for once in this time.
const WATCH_PERIOD: Duration = Duration::from_secs(1);

/// The sessions (mapped cache files) of this process for one path: a new session is opened in a
/// forked child, and when the file is replaced.
#[derive(Debug)]
pub(in crate::file) struct Sessions {
    page: MarkPages,
    /// The latest session of this process or, in a child that has none yet, of its parent.
    latest: AtomicPtr<Session>,
    path: PathBuf,
    wanted: Wanted,
    verifies_all: bool,
    /// The identity of the directory `/`: after a chroot the path means another file.
    root: Option<FileId>,
    /// The bits of an operation's mark that are compared to tell whether it does the periodic work
    /// ([`LookPeriod::mask`]). Once this is closed, every operation does it, and is refused there.
    looks: AtomicU64,
    is_closed: AtomicBool,
    /// The time at which the free space was last asked for.
    watched_ns: AtomicU64,
}

/// The exclusive right to compute a key's value, which keeps the session (the mapped cache file)
/// that it belongs to open.
#[derive(Debug)]
pub(in crate::file) struct HeldClaim<'a> {
    // Released before it stops to hold the session.
    _claim: Claim<'a, Mapped>,
    _hold: SessionHold,
}

/// The outcome of claiming the exclusive right to compute a key's value: held, taken by another
/// process, or no room for the claim.
#[derive(Debug)]
pub(in crate::file) enum ClaimOutcome<'a> {
    Held(HeldClaim<'a>),
    /// The owner with this token has the claim.
    Taken(Token),
    NoRoom,
}

impl Sessions {
    pub(in crate::file) fn open(
        path: &Path,
        mut wanted: Wanted,
        verifies_all: bool,
        now_ns: u64,
    ) -> Result<Self, FileError> {
        let io_error = |source| FileError::Io { path: path.to_owned(), source };
        let page = MarkPages::new().map_err(io_error)?;
        let first = Session::open(path, &wanted, verifies_all)?;
        // A file that replaces this one later has to be compressed as this one.
        wanted.compression = Compressed::As(first.header.compression);
        let sessions = Self {
            page,
            latest: AtomicPtr::new(ptr::null_mut()),
            path: path.to_owned(),
            wanted,
            verifies_all,
            root: FileId::of_root(),
            looks: AtomicU64::new(LookPeriod::Long.mask()),
            is_closed: AtomicBool::new(false),
            watched_ns: AtomicU64::new(now_ns),
        };
        sessions.put(first);
        Ok(sessions)
    }

    fn put(&self, session: Session) {
        let often = if session.is_watched { LookPeriod::EachOperation } else { LookPeriod::Long };
        self.looks.store(often.mask(), Ordering::SeqCst);
        // In this order: one of this and of `close` sees the other.
        if self.is_closed.load(Ordering::SeqCst) {
            self.looks.store(LookPeriod::EachOperation.mask(), Ordering::SeqCst);
        }
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

    /// Begins an operation (such as a read or write) on the cache file; no session (mapped file)
    /// that it gets is freed until it ends.
    #[inline]
    pub(in crate::file) fn begin(&self) -> OperationGuard<'_> {
        OperationGuard::begin(&self.page)
    }

    /// Begins an operation on the cache file like [`begin`](Self::begin), for a thread that may
    /// never begin another:
    /// the thread gets no number, and so no owner slot of its own.
    pub(in crate::file) fn begin_in_passing(&self) -> OperationGuard<'_> {
        OperationGuard::begin_in_passing(&self.page)
    }

    /// Returns the size of the cache file in bytes, as last seen by this process, or by its parent
    /// before a fork.
    pub(in crate::file) fn file_bytes(&self) -> u64 {
        let _using = self.begin_in_passing();
        // SAFETY: no session is freed that was the latest when an operation began, and `open` puts the first.
        unsafe { &*self.latest.load(Ordering::Acquire) }.header.geometry.file_bytes
    }

    /// Marks the store as closed, so that every later operation calls [`attend`](Self::attend);
    /// returns whether this call closed the store.
    pub(in crate::file) fn close(&self) -> bool {
        let is_new = !self.is_closed.swap(true, Ordering::SeqCst);
        self.looks.store(LookPeriod::EachOperation.mask(), Ordering::SeqCst);
        is_new
    }

    #[inline]
    pub(in crate::file) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Returns whether an operation on the cache file has to call [`attend`](Self::attend), which
    /// does periodic work.
    #[inline]
    pub(in crate::file) fn is_due(&self, operation: OperationId) -> bool {
        operation.is_due(self.looks.load(Ordering::Relaxed))
    }

    /// Returns the current session (the mapped cache file and this process's slots in it) of this
    /// process.
    #[inline]
    pub(in crate::file) fn get<'a>(
        &'a self,
        using: &'a OperationGuard<'_>,
    ) -> Result<&'a Session, FileError> {
        let current = self.current();
        if !current.is_null() {
            // SAFETY: what `put` made is freed only when no operation is in progress that began when
            // it was current, and this operation lasts while it is borrowed.
            let session = unsafe { &*current };
            if !session.area.is_retired() {
                return Ok(session);
            }
        }
        self.open_again(using.operation(), current)
    }

    /// In a forked child, or after the file was replaced.
    #[cold]
    fn open_again(
        &self,
        operation: OperationId,
        known: *mut Session,
    ) -> Result<&Session, FileError> {
        let _opening = Opening::begin(&self.page);
        if !self.has_root() {
            // SAFETY: as in `get`.
            let session = unsafe { known.as_ref() };
            return session.ok_or_else(|| FileError::Chroot(self.path.clone()));
        }
        let current = self.current();
        // SAFETY: as in `get`.
        let session = unsafe { current.as_ref() };
        // Another thread may have opened one that was replaced before this operation began.
        let is_retired = session.is_none_or(|session| session.area.is_retired())
            && !mutant::is_on("sessions-of-others-are-trusted");
        let is_doubtful = current == known || is_retired;
        if is_doubtful && !self.is_at_path(current) {
            self.put(Session::open(&self.path, &self.wanted, self.verifies_all)?);
            self.let_go_of_others(operation);
        }
        // SAFETY: as in `get`.
        Ok(unsafe { &*self.current() })
    }

    /// Does periodic work for the cache file, such as checking whether the file was replaced, on
    /// behalf of all threads.
    ///
    /// # Errors
    ///
    /// [`FileError::LowSpace`] where the file system has too little free space to write, and the file
    /// cannot be opened for reading only.
    #[cold]
    pub(in crate::file) fn attend(
        &self,
        operation: OperationId,
        clock: &dyn Clock,
        now_ms: impl Fn() -> u64,
    ) -> Result<(), FileError> {
        self.watch(operation, clock)?;
        if operation.is_due(LookPeriod::Long.mask()) {
            self.look(operation, now_ms);
        }
        Ok(())
    }

    /// Does the rarer periodic work for the cache file: opens the file again at its path if it was
    /// replaced, and takes or gives back owner slots.
    pub(in crate::file) fn look(&self, operation: OperationId, now_ms: impl Fn() -> u64) {
        let current = self.current();
        if current.is_null() || !self.has_root() {
            return;
        }
        // Where that fails, the old file is still a cache.
        if let Ok(session) = self.open_again(operation, current) {
            if session.reads_only == Some(ReadsOnly::Crowded) {
                self.try_to_attach(operation);
            }
            if let Some(owners) = &session.owners {
                owners.keep_own(&session.area, now_ms);
                owners.shrink(&session.area);
            }
            let _opening = Opening::begin(&self.page);
            self.let_go_of_others(operation);
        }
    }

    /// Opens the file for writing, if there is an owner slot again.
    fn try_to_attach(&self, operation: OperationId) {
        let _opening = Opening::begin(&self.page);
        let opened = Session::open(&self.path, &self.wanted, self.verifies_all);
        if let Some(session) = opened.ok().filter(|session| session.reads_only.is_none()) {
            self.put(session);
            self.let_go_of_others(operation);
        }
    }

    /// Opens the file for reading only while its file system has too little free space, and for
    /// writing again after that.
    fn watch(&self, operation: OperationId, clock: &dyn Clock) -> Result<(), FileError> {
        let current = self.current();
        // SAFETY: as in `get`.
        let Some(session) = (unsafe { current.as_ref() }).filter(|session| session.is_watched)
        else {
            return Ok(());
        };
        let (now_ns, watched_ns) = (clock.now_ns(), self.watched_ns.load(Ordering::Relaxed));
        let age = Duration::from_nanos(now_ns.saturating_sub(watched_ns));
        let order = Ordering::Relaxed;
        if age < WATCH_PERIOD
            || self.watched_ns.compare_exchange(watched_ns, now_ns, order, order).is_err()
        {
            return Ok(());
        }
        let is_low = session.has_low_space() && !mutant::is_on("low-space-ignored");
        if is_low == (session.reads_only == Some(ReadsOnly::LowSpace)) {
            return Ok(());
        }
        let _opening = Opening::begin(&self.page);
        if self.current() != current {
            return Ok(());
        }
        let opened = if self.has_root() {
            Session::open(&self.path, &self.wanted, self.verifies_all)
                .map(|session| self.put(session))
        } else {
            Err(FileError::Chroot(self.path.clone()))
        };
        if opened.is_err() && is_low {
            self.watched_ns.store(watched_ns, order);
            return Err(session.low_space(&self.path));
        }
        self.let_go_of_others(operation);
        Ok(())
    }

    /// Lets go of the files of all sessions but the current one, and frees those that no operation
    /// uses. Nobody else opens one at the same time.
    fn let_go_of_others(&self, operation: OperationId) {
        // Letting go waits for threads that write, and an outer operation of this one may.
        if operation.may_be_nested() {
            return;
        }
        // SAFETY: as in `get`; a session was put before.
        let current = unsafe { &*self.current() };
        // To give an owner slot back is a write.
        let keeps_slots = current.reads_only == Some(ReadsOnly::LowSpace)
            && !mutant::is_on("owner-slots-given-back-without-space");
        let mut link = &current.before;
        loop {
            let session = link.load(Ordering::Relaxed);
            // SAFETY: what is linked was not freed, and only this thread frees.
            let Some(other) = (unsafe { session.as_ref() }) else { return };
            let next = other.before.load(Ordering::Relaxed);
            if !other.is_own() {
                if other.abandon_inherited() {
                    link.store(next, Ordering::Release);
                    keep(session);
                    continue;
                }
            } else if !(keeps_slots && other.owners.is_some()) && other.let_go(&self.page) {
                link.store(next, Ordering::Release);
                // SAFETY: `put` made it; no operation in progress, and nothing that outlives one, uses
                // it, and it is no longer linked.
                drop(unsafe { Box::from_raw(session) });
                continue;
            }
            link = &other.before;
        }
    }

    /// Locks the segment of a found entry, for reading its value in place, as
    /// [`Lookup::pin`](crate::file::operations::read::Lookup::pin) does. The lock keeps the session
    /// open.
    #[expect(clippy::unused_self, reason = "what is returned does not outlive it")]
    pub(in crate::file) fn pin<'a>(
        &'a self,
        session: &Session,
        key: &Key<'_>,
        seen: &Seen,
        pinning: Pinning<'_>,
    ) -> Result<Reading<'a>, OpError> {
        // SAFETY: no session is freed in which a value is pinned, nor before `self` is dropped.
        let session: &'a Session = unsafe { &*ptr::from_ref(session) };
        Lookup::new(&session.area, key).pin(seen, pinning)
    }

    /// Claims the exclusive right to compute a key's value, as
    /// [`ClaimKey::claim`](crate::file::operations::claims::ClaimKey::claim) does. The claim keeps
    /// the session open.
    #[expect(clippy::unused_self, reason = "what is returned does not outlive it")]
    pub(in crate::file) fn claim<'a>(
        &'a self,
        session: &Session,
        owner: Owner,
        hash: u64,
        take_over: Option<Token>,
    ) -> Result<ClaimOutcome<'a>, OpError> {
        let hold = session.hold();
        // SAFETY: no session is freed that is held, nor before `self` is dropped.
        let session: &'a Session = unsafe { &*ptr::from_ref(session) };
        Ok(match ClaimKey::new(&session.area, hash).claim(owner, take_over)? {
            Claimed::Held(claim) => ClaimOutcome::Held(HeldClaim { _claim: claim, _hold: hold }),
            Claimed::Taken(owner) => ClaimOutcome::Taken(owner),
            Claimed::NoRoom => ClaimOutcome::NoRoom,
        })
    }

    /// Returns whether the file of a session still has the path. One that says that it was replaced and has it
    /// all the same got it back, by a loss of power or by hand: it is in use.
    fn is_at_path(&self, session: *mut Session) -> bool {
        // SAFETY: as in `get`.
        let Some(session) = (unsafe { session.as_ref() }) else { return false };
        let own = session.area.ground.kernel.id;
        // A process that replaces a file renames first and says so then; hence asked in this order.
        let is_retired = session.area.is_retired();
        let is_at_path = FileId::at(&self.path).is_ok_and(|id| id == own);
        if is_at_path && is_retired && session.owners.is_some() {
            session.area.set_ready();
        }
        is_at_path
    }

    /// Returns whether '/' is what it was, and the path names the same place.
    fn has_root(&self) -> bool {
        FileId::of_root() == self.root
    }

    pub(in crate::file) fn path(&self) -> &Path {
        &self.path
    }
}

/// Inherited sessions that were abandoned, the last one first, each with the one before it. They are never freed:
/// whoever looks for leaks finds them here.
static ABANDONED: AtomicPtr<Session> = AtomicPtr::new(ptr::null_mut());

/// Keeps a session that is in no other list any more.
fn keep(session: *mut Session) {
    let order = Ordering::AcqRel;
    let _ = ABANDONED.fetch_update(order, Ordering::Acquire, |last| {
        // SAFETY: what was inherited is never freed, and it is in no other list.
        unsafe { &*session }.before.store(last, Ordering::Relaxed);
        Some(session)
    });
}

/// A lock that a fork leaves open, for the pages are wiped.
struct Opening<'a>(&'a AtomicU64);

impl<'a> Opening<'a> {
    fn begin(page: &'a MarkPages) -> Self {
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
            // SAFETY: each was made by `put`, and was not freed.
            let other = unsafe { &*session };
            let next = other.before.load(Ordering::Relaxed);
            if other.is_own() {
                other.leave_slots();
                // SAFETY: it is dropped once: nobody borrows `self` any more.
                drop(unsafe { Box::from_raw(session) });
            } else {
                other.abandon_inherited();
                keep(session);
            }
            session = next;
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::file::process::create;

    fn wanted() -> Wanted {
        Wanted {
            size_bytes: 1 << 20,
            entry_bytes: 256,
            groups: None,
            compression: Compressed::AsItIs,
            is_writable: true,
            prefaults: false,
            may_be_shared: false,
            may_be_remote: false,
            now_ms: 0,
        }
    }

    struct Setting {
        directory: tempfile::TempDir,
        sessions: Sessions,
    }

    impl Setting {
        fn new() -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("cache");
            let sessions = Sessions::open(&path, wanted(), false, 0).expect("a file");
            Self { directory, sessions }
        }

        /// Replaces the file, and has this process use the new one.
        fn replace(&self) {
            let path = self.directory.path().join("cache");
            create::replace_and_retire(&path, &wanted()).expect("another file");
            let using = self.sessions.begin();
            self.sessions.get(&using).expect("a session");
        }

        /// Looks around, and counts the sessions that were not freed.
        fn sessions_after_a_look(&self) -> usize {
            self.sessions.look(self.sessions.begin().operation(), || 0);
            let mut count = 0;
            let mut session = self.sessions.latest.load(Ordering::Acquire);
            // SAFETY: what is linked was not freed, and this thread alone frees.
            while let Some(linked) = unsafe { session.as_ref() } {
                (count, session) = (count + 1, linked.before.load(Ordering::Relaxed));
            }
            count
        }
    }

    #[test]
    fn the_session_of_a_replaced_file_is_freed_when_its_operations_have_ended() {
        let setting = Setting::new();
        let (begun, has_begun) = channel();
        let (end, has_to_end) = channel::<()>();
        std::thread::scope(|scope| {
            let sessions = &setting.sessions;
            let reader = scope.spawn(move || {
                let using = sessions.begin();
                let session = sessions.get(&using).expect("a session");
                begun.send(()).expect("it waits for that");
                let _ = has_to_end.recv();
                // It is an empty file by now, and can be read.
                assert_eq!(session.area.epoch(), 0);
                assert!(session.area.is_retired(), "nobody else begins to use it");
            });
            has_begun.recv().expect("no panic");
            setting.replace();
            assert_eq!(setting.sessions_after_a_look(), 2);
            drop(end);
            reader.join().expect("no panic");
            assert_eq!(setting.sessions_after_a_look(), 1);
        });
    }

    #[test]
    fn what_another_thread_has_opened_is_opened_again_if_it_was_replaced_since() {
        let setting = Setting::new();
        let using = setting.sessions.begin();
        let known = ptr::from_ref(setting.sessions.get(&using).expect("a session")).cast_mut();
        // As another thread: this one has found the first file replaced, and not yet opened another.
        setting.replace();
        create::replace_and_retire(setting.sessions.path(), &wanted()).expect("another file");
        let found = setting.sessions.open_again(using.operation(), known).expect("a session");
        let at_path = FileId::at(setting.sessions.path()).expect("a file");
        assert_eq!(found.area.ground.kernel.id, at_path);
    }

    #[test]
    fn a_claim_keeps_its_session() {
        let setting = Setting::new();
        let claim = {
            let using = setting.sessions.begin();
            let session = setting.sessions.get(&using).expect("a session");
            let owners = session.owners.as_ref().expect("owner slots");
            let claimed =
                owners.as_process(|owner| setting.sessions.claim(session, owner, 7, None));
            let Some(Ok(ClaimOutcome::Held(claim))) = claimed else { panic!("nobody else has it") };
            claim
        };
        setting.replace();
        assert_eq!(setting.sessions_after_a_look(), 2);
        drop(claim);
        assert_eq!(setting.sessions_after_a_look(), 1);
    }

    #[test]
    fn an_operation_within_another_one_frees_nothing() {
        let setting = Setting::new();
        let outer = setting.sessions.begin();
        setting.sessions.get(&outer).expect("a session");
        setting.replace();
        assert_eq!(setting.sessions_after_a_look(), 2);
        drop(outer);
        // Letting go begins now, and takes an operation more to end.
        setting.sessions_after_a_look();
        assert_eq!(setting.sessions_after_a_look(), 1);
    }
}
