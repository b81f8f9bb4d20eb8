//! Reading values in place.

#![expect(unsafe_code, reason = "a value that nobody changes while its segment is locked")]

use std::collections::HashMap;
use std::slice;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::file::area::pins::PinCounts;
use crate::file::area::{Area, OpError, Record};
use crate::file::format::segment::{Origin, SegmentKind};
use crate::file::operations::read::{Lookup, Search, Seen};
use crate::file::operations::verified::Verified;
use crate::file::platform::ground::Ground;
use crate::file::platform::kernel::{FileId, Lock};
use crate::file::platform::mapped::Mapped;
use crate::mutant;
use crate::process::{self, SharedValues};
use crate::sync::Mutex;

/// The length in bytes from which a value is read in place, in the mapped file: copying a shorter
/// one costs less than locking its segment.
pub(in crate::file) const PINNED_FROM_BYTES: u64 = 64 << 10;

/// The time for which values are copied without asking, once all pins are taken.
const REFUSED_FOR: Duration = Duration::from_millis(10);

/// A value that is read in place in the mapped cache file, and stays unchanged until this guard is
/// dropped.
///
/// Only a process that disregards the protocol could change it; who may write the file can destroy it
/// anyway.
///
/// It belongs to the process that asked for it: in a forked child the bytes stay readable, and
/// change once the parent has let go of them.
#[derive(Debug)]
pub(in crate::file) struct InPlace<'a> {
    area: &'a Area<Mapped>,
    at: u64,
    bytes: usize,
    /// The pin of the segment; `None` only while this is dropped.
    pin: Option<Arc<SegmentPin>>,
}

/// The segments of a cache file in which one handle reads values in place, and which are not
/// recycled (emptied) in the meantime.
#[derive(Debug)]
pub(in crate::file) struct Pins {
    /// The number of pinned segments, or [`CLOSED`].
    count: Arc<AtomicUsize>,
    /// The pins of all handles of this process.
    in_process: Arc<PinnedInProcess>,
    /// Held while a segment is pinned: of two threads, the second one shares the pin of the first.
    pinning: Mutex<()>,
    /// The pinned segments, by number. All values of a segment share its lock.
    segments: Mutex<HashMap<u32, Weak<SegmentPin>>>,
    /// The time at which a pin was last refused, in microseconds of the ground's time.
    refused_us: AtomicU64,
}

/// A segment that is not filled again until this is dropped.
#[derive(Debug)]
struct SegmentPin {
    segment: u32,
    /// The process that has the pin, which a forked child leaves alone.
    process: u64,
    // Released before it stops to count: a file that is let go of has no lock any more.
    _lock: Lock,
    _counted: Counted,
}

/// Counts a pin, and its segments, until it is dropped.
#[derive(Debug)]
struct Counted {
    count: Arc<AtomicUsize>,
    in_process: Arc<PinnedInProcess>,
    segments: usize,
}

/// The number of segments that all handles of this process have pinned in one file.
#[derive(Debug)]
struct PinnedInProcess {
    segments: AtomicUsize,
    file: FileId,
}

/// Of a file that was let go of: nothing is pinned in it any more.
const CLOSED: usize = usize::MAX;

static BY_FILE: SharedValues<FileId, PinnedInProcess> = SharedValues::new();

impl Pins {
    /// Returns an empty set of segments in which a new handle of this cache file reads values in
    /// place.
    pub(in crate::file) fn of(file: FileId) -> Self {
        let none = || PinnedInProcess { segments: AtomicUsize::new(0), file };
        Self {
            count: Arc::default(),
            in_process: BY_FILE.get_or_create(file, none),
            pinning: Mutex::default(),
            segments: Mutex::default(),
            refused_us: AtomicU64::new(u64::MAX),
        }
    }

    /// Counts one more of this number of segments, if the process then has `most` of them at most.
    fn add(&self, segments: u32, most: u32) -> Option<Counted> {
        let (segments, most) = (segments as usize, most as usize);
        let (done, seen) = (Ordering::SeqCst, Ordering::SeqCst);
        let within = |pinned: usize| Some(pinned + segments).filter(|sum| *sum <= most);
        self.in_process.segments.try_update(done, seen, within).ok()?;
        let more = |pins: usize| (pins != CLOSED).then_some(pins + 1);
        if self.count.try_update(done, seen, more).is_err() {
            self.in_process.segments.fetch_sub(segments, Ordering::SeqCst);
            return None;
        }
        let (count, in_process) = (Arc::clone(&self.count), Arc::clone(&self.in_process));
        Some(Counted { count, in_process, segments })
    }

    /// Returns the pin that other values of a segment share.
    fn shared(&self, segment: u32) -> Option<Arc<SegmentPin>> {
        self.segments.lock().get(&segment)?.upgrade()
    }

    /// Lets other values of a segment share a pin; forgets those that are gone.
    fn share(&self, pin: &Arc<SegmentPin>) {
        let mut segments = self.segments.lock();
        segments.retain(|_, pin| pin.strong_count() > 0);
        segments.insert(pin.segment, Arc::downgrade(pin));
    }

    /// Returns whether a pin was refused a short time ago.
    fn is_refused(&self, now: Duration) -> bool {
        let refused_us = self.refused_us.load(Ordering::Relaxed);
        let since = now.saturating_sub(Duration::from_micros(refused_us));
        refused_us != u64::MAX && since < REFUSED_FOR
    }

    fn note_refusal(&self, now: Duration) {
        let now_us = u64::try_from(now.as_micros()).unwrap_or(0);
        self.refused_us.store(now_us, Ordering::Relaxed);
    }

    /// Frees the table of segments that the parent reads in place, which a forked child inherits
    /// and does not need. A leak checker would report it: a `HashMap` refers to the middle of its
    /// table. A table that a thread of the parent had locked stays.
    pub(in crate::file) fn free_inherited(&self) {
        if let Some(mut segments) = self.segments.try_lock() {
            *segments = HashMap::new();
        }
    }

    /// Returns whether the file was let go of.
    fn is_closed(&self) -> bool {
        self.count.load(Ordering::SeqCst) == CLOSED
    }

    /// Forbids further reads of values in place in the cache file, if none are in progress; returns
    /// whether they are forbidden now.
    pub(in crate::file) fn close(&self) -> bool {
        let closed = self.count.compare_exchange(0, CLOSED, Ordering::SeqCst, Ordering::SeqCst);
        closed.is_ok_and(|_| true) || closed == Err(CLOSED)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.in_process.segments.fetch_sub(self.segments, Ordering::SeqCst);
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for PinnedInProcess {
    fn drop(&mut self) {
        BY_FILE.forget(&self.file);
    }
}

impl AsRef<[u8]> for InPlace<'_> {
    fn as_ref(&self) -> &[u8] {
        let start = self.area.ground.map.address(self.at, self.bytes);
        // SAFETY: the bytes are within the mapping, which `area` keeps. Their record is complete,
        // and its segment is locked against being filled again; no operation changes a value in
        // place.
        unsafe { slice::from_raw_parts(start, self.bytes) }
    }
}

impl Drop for InPlace<'_> {
    fn drop(&mut self) {
        if let Some(last) = self.pin.take().and_then(Arc::into_inner) {
            last.unpin(self.area);
        }
    }
}

/// The settings of a read that may return its value in place, in the mapped cache file, instead of
/// a copy.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Pinning<'p> {
    /// The length in bytes from which a value is read in place instead of copied.
    pub(in crate::file) least_bytes: u64,
    pub(in crate::file) pins: &'p Pins,
    /// The owner slot (entry in the cache file) of this process, by which it locks segments; a
    /// process without one copies all values.
    pub(in crate::file) owner_slot: Option<u32>,
    /// The entries whose checksums this process has verified, if each entry is to be verified only
    /// once.
    pub(in crate::file) verified: Option<&'p Verified>,
}

/// The outcome of a request to read a value in place: the value in the mapped file, a need to copy
/// it, or damage.
#[derive(Debug)]
pub(in crate::file) enum Reading<'a> {
    InPlace(InPlace<'a>, Seen),
    /// The value has to be copied: no more segments may be pinned.
    OutOfPins,
    /// The value has to be copied for another reason.
    Copied,
    /// The value is not what was written.
    Damaged,
}

/// The outcome of an attempt to lock the segment of an entry.
#[derive(Debug)]
enum Attempt<'a> {
    Pinned(InPlace<'a>, Seen, Record),
    OutOfPins,
    Failed,
}

impl<'a> Lookup<'a, '_, Mapped> {
    /// Locks the segment of a found entry, so that the entry's value can be read in place, in the
    /// mapped cache file.
    pub(in crate::file) fn pin(
        self,
        seen: &Seen,
        pinning: Pinning<'_>,
    ) -> Result<Reading<'a>, OpError> {
        let (value, seen, record) = match self.try_pin(seen, pinning)? {
            Attempt::Pinned(value, seen, record) => (value, seen, record),
            Attempt::OutOfPins => return Ok(Reading::OutOfPins),
            Attempt::Failed => return Ok(Reading::Copied),
        };
        if let Some(verified) = pinning.verified
            && !verified.contains(&record)
        {
            if !self.area.is_whole(self.key.hash, &record)? {
                return Ok(Reading::Damaged);
            }
            verified.add(&record);
        }
        Ok(Reading::InPlace(value, seen))
    }

    fn try_pin(
        self,
        seen: &Seen,
        Pinning { least_bytes, pins, owner_slot, .. }: Pinning<'_>,
    ) -> Result<Attempt<'a>, OpError> {
        let is_long = self
            .area
            .record(seen.slot, seen.segment)
            .is_some_and(|record| record.head.value_bytes() >= least_bytes);
        // Of a run from before a loss of power, a part may be free to be refilled.
        let is_sure = self.area.origin(seen.segment) == Origin::Sure
            || mutant::is_on("doubtful-values-pinned");
        let Some(owner_slot) = owner_slot.filter(|_| is_long && is_sure) else {
            return Ok(Attempt::Failed);
        };
        if let Some(pin) = pins.shared(seen.segment) {
            return self.read_under(pin);
        }
        let _alone = pins.pinning.lock();
        if let Some(pin) = pins.shared(seen.segment) {
            return self.read_under(pin);
        }
        let now = self.area.ground.now();
        if pins.is_refused(now) {
            return Ok(Attempt::OutOfPins);
        }
        let segments = self.area.run_length(seen.segment);
        let Some(counted) = pins.add(segments, PinCounts::of(self.area).most_of_a_process()) else {
            return Ok(if pins.is_closed() { Attempt::Failed } else { Attempt::OutOfPins });
        };
        let Some(Held { record, seen, pin: lock }) = self.hold(seen, owner_slot)? else {
            return Ok(Attempt::Failed);
        };
        if !PinCounts::of(self.area).count(seen.segment) {
            pins.note_refusal(now);
            return Ok(Attempt::OutOfPins);
        }
        let process = process::generation();
        let pin = SegmentPin { segment: seen.segment, process, _lock: lock, _counted: counted };
        let pin = Arc::new(pin);
        // Only now: the segment was not being emptied when it was locked.
        pins.share(&pin);
        Ok(Attempt::Pinned(InPlace::new(self.area, &record, pin), seen, record))
    }

    /// Reads a value under a pin that its segment has already, if the entry is still in it.
    fn read_under(self, pin: Arc<SegmentPin>) -> Result<Attempt<'a>, OpError> {
        match self.hold_in(pin.segment) {
            Ok(Some((record, seen))) => {
                Ok(Attempt::Pinned(InPlace::new(self.area, &record, pin), seen, record))
            }
            other => {
                // It may be the last by now.
                if let Some(last) = Arc::into_inner(pin) {
                    last.unpin(self.area);
                }
                other.map(|_| Attempt::Failed)
            }
        }
    }
}

impl<'a> InPlace<'a> {
    fn new(area: &'a Area<Mapped>, record: &Record, pin: Arc<SegmentPin>) -> Self {
        let bytes = usize::try_from(record.head.value_bytes()).expect("64-bit platforms only");
        let has_groups = area.expiration(record).has_groups;
        let marks = if has_groups { area.marks(record).map_or(0, |marks| marks.bytes) } else { 0 };
        let bytes = bytes - marks;
        Self { area, at: record.at + record.head.value_at(), bytes, pin: Some(pin) }
    }
}

impl SegmentPin {
    /// Releases the last pin of a segment.
    fn unpin(self, area: &Area<Mapped>) {
        if self.process == process::generation() {
            PinCounts::of(area).uncount(self.segment);
        }
    }
}

/// A found entry whose segment is locked against recycling, so that its record stays unchanged.
#[derive(Debug)]
pub(in crate::file) struct Held<P> {
    pub(in crate::file) record: Record,
    pub(in crate::file) seen: Seen,
    pub(in crate::file) pin: P,
}

impl<'a, G: Ground> Lookup<'a, '_, G> {
    /// Locks the segment of a found entry against recycling (emptying); returns `None` if the entry
    /// has left the segment, or the lock is taken.
    pub(in crate::file) fn hold(
        self,
        seen: &Seen,
        owner_slot: u32,
    ) -> Result<Option<Held<G::Pin<'a>>>, OpError> {
        let Some(pin) = self.area.ground.pin(seen.segment, owner_slot) else {
            return Ok(None);
        };
        // A process that recycles sets the state, and asks for the pins then.
        self.area.ground.fence(mutant::order("fence-after-pinning", Ordering::SeqCst));
        let is_filled = matches!(
            self.area.entry(seen.segment).state().kind,
            SegmentKind::Open | SegmentKind::Sealed
        );
        if !is_filled && !mutant::is_on("pin-ignores-the-state") {
            return Ok(None);
        }
        let held = self.hold_in(seen.segment)?;
        Ok(held.map(|(record, seen)| Held { record, seen, pin }))
    }

    /// Finds an entry in a segment that is pinned, and so stays what it is: is the record still in it?
    fn hold_in(self, segment: u32) -> Result<Option<(Record, Seen)>, OpError> {
        let again = match self.search(None)? {
            Search::Found(again) if again.segment == segment => again,
            _ => return Ok(None),
        };
        let record = self.area.record(again.slot, again.segment);
        Ok(record.map(|record| (record, again)))
    }
}
