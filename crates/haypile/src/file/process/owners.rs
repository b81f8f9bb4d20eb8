//! Owner slots of this process, over which its threads are spread.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::file::area::owners::OwnerSlot;
use crate::file::area::records::VERSIONS_END;
use crate::file::area::{Area, Counting, Owner};
use crate::file::format::counter::Counted;
use crate::file::format::header;
use crate::file::format::record::MAX_VERSION;
use crate::file::platform::ground::Ground;
use crate::file::platform::halted::ProcessId;
use crate::file::platform::kernel::Lock;
use crate::file::platform::mapped::Mapped;
use crate::file::process::threads;

/// The maximum number of slots of one process.
const MAX_SLOTS: usize = 16;
/// An extra slot is given back after this number of checks in which no thread has used it.
const IDLE_CHECKS: u32 = 16;
/// The number of versions that an owner draws at once.
const VERSIONS_AT_ONCE: u64 = 1024;

/// An owner slot that this process has taken.
#[derive(Debug)]
struct TakenSlot {
    owner: Owner,
    _lock: Lock,
    /// Values of the slot's counters when it was taken.
    before: Counted,
}

/// The state of an owner slot (an entry of this process in the cache file) for the one thread that
/// works through it at a time.
#[derive(Debug, Default)]
pub(in crate::file) struct Work {
    /// The slot; `None` once it was given back.
    slot: Option<TakenSlot>,
    versions: std::ops::Range<u64>,
    /// The number of checks for idle owners for which the slot stays, unless it is used again.
    checks_left: u32,
}

/// An owner, with or without a slot. On lines of its own: its thread writes them.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OwnerCell {
    /// The number of the owner's slot, for counting without the lock. Where the slot has just been
    /// given back, a count may be another process's.
    counting: AtomicU32,
    work: Mutex<Work>,
}

/// An owner slot (an entry of this process in the cache file) that the calling thread uses alone at
/// the moment.
#[derive(Debug)]
pub(in crate::file) struct Taken<'a> {
    pub(in crate::file) owner: Owner,
    work: MutexGuard<'a, Work>,
}

impl<'a> Taken<'a> {
    /// None where the owner has no slot. `is_own` says whether it is that of the calling thread.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    fn of(mut work: MutexGuard<'a, Work>, is_own: bool) -> Option<Self> {
        let owner = Owner { is_own, ..work.slot.as_ref()?.owner };
        work.checks_left = IDLE_CHECKS;
        Some(Self { owner, work })
    }

    /// Returns a new version number for an entry, which no other entry of the cache file has.
    #[inline]
    pub(in crate::file) fn version(&mut self, area: &Area<Mapped>) -> u64 {
        let skipped = area.ground.load(header::SKIPPED_VERSIONS, Ordering::Relaxed);
        let version = self.work.versions.next().filter(|version| *version > skipped);
        version.unwrap_or_else(|| self.draw_versions(area, skipped)) & MAX_VERSION
    }

    #[cold]
    fn draw_versions(&mut self, area: &Area<Mapped>, skipped: u64) -> u64 {
        // Whoever skipped them did so too, but perhaps that is not seen here yet.
        if skipped < VERSIONS_END {
            area.ground.raise(header::NEXT_VERSION, skipped + 1);
        }
        let first = area.ground.add(header::NEXT_VERSION, VERSIONS_AT_ONCE);
        self.work.versions = first.wrapping_add(1)..first.wrapping_add(VERSIONS_AT_ONCE);
        first
    }
}

/// The owner slots (entries in the file's table of users) that a process has in a cache file.
#[derive(Debug)]
pub(in crate::file) struct Owners {
    all: [OwnerCell; MAX_SLOTS],
    count: AtomicUsize,
    /// The owner that stands for the whole process until all are given back.
    first: Owner,
    /// The lock that is held while owners come or go.
    changing: Mutex<Changes>,
}

/// The owners that a process has had.
#[derive(Debug, Default)]
struct Changes {
    /// Sums of the counters of slots that were given back.
    counted: Counted,
    /// Whether all slots were given back.
    have_left: bool,
}

impl Owners {
    /// Takes the first owner slot of this process in the cache file; returns `None` if other
    /// processes have taken all slots.
    pub(in crate::file) fn attach(area: &Area<Mapped>, now_ms: u64) -> io::Result<Option<Self>> {
        let Some(slot) = TakenSlot::take(area, now_ms, false)? else {
            return Ok(None);
        };
        let owners = Self {
            all: Default::default(),
            count: AtomicUsize::new(0),
            first: slot.owner,
            changing: Mutex::default(),
        };
        owners.put(0, slot);
        Ok(Some(owners))
    }

    fn put(&self, number: usize, slot: TakenSlot) {
        let cell = &self.all[number];
        cell.counting.store(slot.owner.slot, Ordering::Relaxed);
        let work = Work { slot: Some(slot), checks_left: IDLE_CHECKS, ..Work::default() };
        *cell.work.lock() = work;
        self.count.store(number + 1, Ordering::Release);
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Returns the number of the first owner slot of this process in the cache file, by which it
    /// locks segments. The slot may have been given back.
    pub(in crate::file) fn first_slot(&self) -> u32 {
        self.first.slot
    }

    /// Returns the owner slot whose statistics counters this thread raises: its own, or a shared
    /// one if threads share slots.
    #[inline]
    pub(in crate::file) fn counting(&self) -> Counting {
        let (thread, count) = (threads::number(), self.count());
        let is_own = thread < count;
        let number = if is_own { thread } else { thread % count };
        Counting { slot: self.all[number].counting.load(Ordering::Relaxed), is_own }
    }

    /// Returns an owner slot of the cache file for this thread alone; a process with more threads
    /// takes more slots. Returns `None` if all were given back.
    #[inline]
    pub(in crate::file) fn take(
        &self,
        area: &Area<Mapped>,
        now_ms: impl Fn() -> u64,
    ) -> Option<Taken<'_>> {
        self.take_own().or_else(|| self.take_any(area, now_ms))
    }

    /// Returns this thread's own owner slot of the cache file; `None` if the thread shares slots
    /// with others, or the slot is in use.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn take_own(&self) -> Option<Taken<'_>> {
        let thread = threads::number();
        if thread >= self.count() {
            return None;
        }
        Taken::of(self.all[thread].work.try_lock()?, true)
    }

    #[cold]
    fn take_any(&self, area: &Area<Mapped>, now_ms: impl Fn() -> u64) -> Option<Taken<'_>> {
        let (thread, count) = (threads::number(), self.count());
        let first = thread % count;
        let of = |number: usize, work| Taken::of(work, number == thread);
        for number in (first..count).chain(0..first) {
            if let Some(taken) = self.all[number].work.try_lock().and_then(|work| of(number, work))
            {
                return Some(taken);
            }
        }
        self.grow(area, now_ms());
        let own = thread % self.count();
        of(own, self.all[own].work.lock()).or_else(|| of(0, self.all[0].work.lock()))
    }

    /// Takes an owner slot of the cache file for this thread, if it has none of its own and many
    /// are free; otherwise records that the thread uses its own slot. To be called from time to
    /// time.
    pub(in crate::file) fn keep_own(&self, area: &Area<Mapped>, now_ms: impl Fn() -> u64) {
        let thread = threads::number();
        if let Some(own) = self.all.get(thread) {
            if thread >= self.count() {
                self.grow(area, now_ms());
            } else if let Some(mut work) = own.work.try_lock() {
                work.checks_left = IDLE_CHECKS;
            }
        }
    }

    /// Takes one more slot, while there are plenty.
    fn grow(&self, area: &Area<Mapped>, now_ms: u64) {
        let Some(_changing) = self.changing.try_lock() else {
            return;
        };
        let count = self.count();
        if count < MAX_SLOTS
            && let Ok(Some(slot)) = TakenSlot::take(area, now_ms, true)
        {
            self.put(count, slot);
        }
    }

    /// Gives back the last additional owner slot of this process in the cache file, if no thread
    /// has used it between the last few calls.
    pub(in crate::file) fn shrink(&self, area: &Area<Mapped>) {
        let Some(mut changes) = self.changing.try_lock() else {
            return;
        };
        let last = self.count() - 1;
        if last == 0 {
            return;
        }
        let Some(mut work) = self.all[last].work.try_lock() else {
            return;
        };
        if work.checks_left > 0 {
            work.checks_left -= 1;
            return;
        }
        self.count.store(last, Ordering::Release);
        if let Some(slot) = work.slot.take() {
            slot.leave(area, true, &mut changes.counted);
        }
    }

    /// Returns the statistics that this process has counted in all its owner slots of the cache
    /// file since it took them.
    pub(in crate::file) fn counted(&self, area: &Area<Mapped>) -> Counted {
        let mut counted = self.changing.lock().counted;
        for cell in &self.all {
            if let Some(slot) = &cell.work.lock().slot {
                slot.add_to(area, &mut counted);
            }
        }
        counted
    }

    /// Calls `act` with the owner slot that stands for the whole process in the cache file, and
    /// keeps the slot until `act` returns. Returns `None` if the slot was given back already: a
    /// lock taken in its name would look like that of a dead process.
    pub(in crate::file) fn as_process<T>(&self, act: impl FnOnce(Owner) -> T) -> Option<T> {
        let changes = self.changing.lock();
        (!changes.have_left).then(|| act(self.first))
    }

    /// Gives back all owner slots of this process in the cache file, once the threads that use them
    /// are done. If nothing may be stored in the file, the slots look like those of a process that
    /// has died.
    pub(in crate::file) fn leave(&self, area: &Area<Mapped>, may_store: bool) {
        let mut changes = self.changing.lock();
        changes.have_left = true;
        for cell in &self.all {
            if let Some(slot) = cell.work.lock().slot.take() {
                slot.leave(area, may_store, &mut changes.counted);
            }
        }
    }
}

impl TakenSlot {
    /// Takes a free slot; an extra one only while more than half of them are free.
    fn take(area: &Area<Mapped>, now_ms: u64, is_extra: bool) -> io::Result<Option<Self>> {
        let slots = area.geometry.numbers.owner_slots;
        let is_left = |number: &u32| area.owner_slot(*number).is_left();
        if is_extra && (0..slots).filter(is_left).count() <= slots as usize / 2 {
            return Ok(None);
        }
        // Those that were left first; then those whose owners have died.
        let left = (0..slots).filter(is_left);
        for number in left.chain((0..slots).filter(|number| !is_left(number))) {
            if area.ground.kernel.is_slot_taken(number)? {
                continue;
            }
            if let Some(lock) = area.ground.kernel.lock_slot(number)? {
                let slot = area.owner_slot(number);
                let owner = slot.settle(ProcessId::own(), now_ms);
                return Ok(Some(Self { owner, _lock: lock, before: slot.counted() }));
            }
        }
        Ok(None)
    }

    /// Marks the slot as left, and adds what was counted in it. Dropping it releases the lock.
    fn leave(&self, area: &Area<Mapped>, may_store: bool, counted: &mut Counted) {
        self.add_to(area, counted);
        if may_store {
            area.owner_slot(self.owner.slot).set_left();
        }
    }

    /// Adds what was counted since it was taken.
    fn add_to(&self, area: &Area<Mapped>, counted: &mut Counted) {
        counted.add(&area.owner_slot(self.owner.slot).counted(), &self.before);
    }
}

/// Records in the cache file the deaths of processes whose owner slots no process has taken since:
/// each death may have left a count of entries wrong. Slots that cannot be locked are left to the
/// next call.
pub(in crate::file) fn note_deaths(area: &Area<Mapped>) {
    for slot in area.used_owner_slots().filter(OwnerSlot::seems_taken) {
        // Only the owner of a slot changes its state.
        if !area.ground.is_taken(slot.number)
            && let Ok(Some(_lock)) = area.ground.kernel.lock_slot(slot.number)
            && slot.seems_taken()
        {
            area.ground.add(header::DEATHS, 1);
            slot.set_left();
        }
    }
}
