//! Reading values in place.

#![expect(unsafe_code, reason = "a value that nobody changes while its segment is locked")]

use std::collections::HashMap;
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use crate::file::area::{Area, Key, OpError, Record};
use crate::file::format::segment::{Origin, SegmentKind};
use crate::file::operations::read::{Search, Seen};
use crate::file::platform::ground::Ground;
use crate::file::platform::kernel::Lock;
use crate::file::platform::mapped::Mapped;
use crate::mutant;
use crate::sync::Mutex;

/// The length from which a value is pinned: copying a shorter one costs less than the lock.
pub(in crate::file) const PINNED_FROM_BYTES: u64 = 64 << 10;

/// A value in the file that stays what it is until this is dropped.
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
    _pin: Arc<SegmentPin>,
}

/// The segments of a file in which this process reads values in place.
#[derive(Debug, Default)]
pub(in crate::file) struct Pins {
    /// Their number.
    count: Arc<AtomicUsize>,
    /// By number. All values of a segment share its lock.
    segments: Mutex<HashMap<u32, Weak<SegmentPin>>>,
}

/// A segment that is not filled again until this is dropped.
#[derive(Debug)]
struct SegmentPin {
    // Released before it stops to count: a file that is let go of has no lock any more.
    _lock: Lock,
    _counted: Counted,
}

/// Counts one of them until it is dropped.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

/// Of a file that was let go of: nothing is pinned in it any more.
const CLOSED: usize = usize::MAX;

impl Pins {
    /// One more, if there are fewer than `most`.
    fn add(&self, most: usize) -> Option<Counted> {
        let more = |pins: usize| (pins != CLOSED && pins < most).then_some(pins + 1);
        self.count.try_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        Some(Counted(Arc::clone(&self.count)))
    }

    /// Returns the pin that other values of a segment share.
    fn shared(&self, segment: u32) -> Option<Arc<SegmentPin>> {
        self.segments.lock().get(&segment)?.upgrade()
    }

    /// Lets other values of a segment share a pin; forgets those that are gone.
    fn share(&self, segment: u32, pin: &Arc<SegmentPin>) {
        let mut segments = self.segments.lock();
        segments.retain(|_, pin| pin.strong_count() > 0);
        segments.insert(segment, Arc::downgrade(pin));
    }

    /// Lets there be none from now on, if there is none; says whether that is so.
    pub(in crate::file) fn close(&self) -> bool {
        let closed = self.count.compare_exchange(0, CLOSED, Ordering::SeqCst, Ordering::SeqCst);
        closed.is_ok_and(|_| true) || closed == Err(CLOSED)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
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

impl Area<Mapped> {
    /// Locks the segment of an entry that was found and has at least `least_bytes`; `None` where it is
    /// to be copied.
    pub(in crate::file) fn pin<'a>(
        &'a self,
        key: &Key<'_>,
        seen: &Seen,
        least_bytes: u64,
        pins: &Pins,
    ) -> Result<Option<(InPlace<'a>, Seen)>, OpError> {
        let is_long = self
            .record(seen.slot, seen.segment)
            .is_some_and(|record| record.head.value_bytes() >= least_bytes);
        let most = self.geometry.numbers.segments as usize / 8;
        // Of a run from before a loss of power, a part may be free to be refilled.
        let is_sure =
            self.origin(seen.segment) == Origin::Sure || mutant::is_on("doubtful-values-pinned");
        if !is_long || !is_sure {
            return Ok(None);
        }
        let held = if let Some(pin) = pins.shared(seen.segment) {
            self.hold_in(key, seen.segment)?.map(|(record, seen)| Held { record, seen, pin })
        } else {
            let Some(counted) = pins.add(most) else {
                return Ok(None);
            };
            self.hold(key, seen)?.map(|Held { record, seen, pin }| {
                let pin = Arc::new(SegmentPin { _lock: pin, _counted: counted });
                // Only now: the segment was not being emptied when it was locked.
                pins.share(seen.segment, &pin);
                Held { record, seen, pin }
            })
        };
        Ok(held.and_then(|Held { record, seen, pin }| {
            let bytes = usize::try_from(record.head.value_bytes()).ok()?;
            let at = record.at + record.head.value_at();
            Some((InPlace { area: self, at, bytes, _pin: pin }, seen))
        }))
    }
}

/// An entry whose segment stays what it is.
#[derive(Debug)]
pub(in crate::file) struct Held<P> {
    pub(in crate::file) record: Record,
    pub(in crate::file) seen: Seen,
    pub(in crate::file) pin: P,
}

impl<G: Ground> Area<G> {
    /// Pins the segment of an entry that was found, if the entry is still in it then.
    pub(in crate::file) fn hold(
        &self,
        key: &Key<'_>,
        seen: &Seen,
    ) -> Result<Option<Held<G::Pin<'_>>>, OpError> {
        let Some(pin) = self.ground.pin(seen.segment) else {
            return Ok(None);
        };
        // A process that recycles sets the state, and asks for the pins then.
        self.ground.fence(mutant::order("fence-after-pinning", Ordering::SeqCst));
        let is_filled = matches!(
            self.entry(seen.segment).state().kind,
            SegmentKind::Open | SegmentKind::Sealed
        );
        if !is_filled && !mutant::is_on("pin-ignores-the-state") {
            return Ok(None);
        }
        let held = self.hold_in(key, seen.segment)?;
        Ok(held.map(|(record, seen)| Held { record, seen, pin }))
    }

    /// Finds an entry in a segment that is pinned, and so stays what it is: is the record still in it?
    fn hold_in(&self, key: &Key<'_>, segment: u32) -> Result<Option<(Record, Seen)>, OpError> {
        let again = match self.search(key, None)? {
            Search::Found(again) if again.segment == segment => again,
            _ => return Ok(None),
        };
        let record = self.record(again.slot, again.segment);
        Ok(record.map(|record| (record, again)))
    }
}
