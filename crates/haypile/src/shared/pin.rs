//! Reading values in place.

#![expect(unsafe_code, reason = "a value that nobody changes while its segment is locked")]

use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use super::area::{Area, Key, Stop};
use super::get::{Search, Seen};
use super::kernel::Lock;
use super::mapped::Mapped;
use super::segment::Kind;

/// From so many bytes on a value is pinned: copying fewer costs less than the lock.
pub(super) const PINNED_FROM_BYTES: u64 = 64 << 10;

/// A value in the file that stays what it is until this is dropped.
///
/// Only a process that disregards the protocol could change it; who may write the file can destroy it
/// anyway.
#[derive(Debug)]
pub(super) struct InPlace<'a> {
    area: &'a Area<Mapped>,
    at: u64,
    bytes: usize,
    pins: &'a AtomicUsize,
    _lock: Lock,
}

impl AsRef<[u8]> for InPlace<'_> {
    fn as_ref(&self) -> &[u8] {
        let start = self.area.ground.map.address(self.at, self.bytes);
        // SAFETY: the bytes are within the mapping, which `area` keeps. Their record is complete, and
        // its segment is locked against being filled anew; no operation changes a value in place.
        unsafe { slice::from_raw_parts(start, self.bytes) }
    }
}

impl Drop for InPlace<'_> {
    fn drop(&mut self) {
        self.pins.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Area<Mapped> {
    /// Locks the segment of an entry that was found and is long enough; `None` where it is to be copied.
    pub(super) fn pin<'a>(
        &'a self,
        key: &Key<'_>,
        seen: &Seen,
        pins: &'a AtomicUsize,
    ) -> Result<Option<(InPlace<'a>, Seen)>, Stop> {
        let is_long = self
            .record(seen.slot, seen.segment)
            .is_some_and(|record| record.head.value_bytes >= PINNED_FROM_BYTES);
        let most = self.geometry.numbers.segments as usize / 8;
        // Of a run from before a loss of power, a part may be free to be filled anew.
        let is_of_now = self.entry(seen.segment).stamp() == self.stamp;
        if !is_long || !is_of_now || pins.load(Ordering::Relaxed) >= most {
            return Ok(None);
        }
        let Ok(Some(lock)) = self.ground.kernel.pin(seen.segment) else {
            return Ok(None);
        };
        // Who recycles sets the state, and then looks at the locks.
        fence(Ordering::SeqCst);
        if !matches!(self.entry(seen.segment).state().kind, Kind::Open | Kind::Sealed) {
            return Ok(None);
        }
        // From here on the segment stays what it is. Is the record still in it?
        let again = match self.search(key, None)? {
            Search::Found(again) if again.segment == seen.segment => again,
            _ => return Ok(None),
        };
        let Some(record) = self.record(again.slot, again.segment) else {
            return Ok(None);
        };
        let Ok(bytes) = usize::try_from(record.head.value_bytes) else {
            return Ok(None);
        };
        pins.fetch_add(1, Ordering::Relaxed);
        let at = record.at + record.head.value_at();
        Ok(Some((InPlace { area: self, at, bytes, pins, _lock: lock }, again)))
    }
}
