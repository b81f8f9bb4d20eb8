//! Lanes: the places where writers append. Each has a lock and an open segment.
//!
//! An owner appends to a lane of its own for each queue, as far as there are enough of them, so that
//! writers do not wait for each other and change no line that another one changes. That is only a
//! preference: whoever has the lock of a lane may append there.

use std::sync::atomic::Ordering;

use crate::file::area::lock::Held;
use crate::file::area::{Area, OpError, Owner};
use crate::file::crash;
use crate::file::format::header;
use crate::file::format::lane::{self, LaneUse};
use crate::file::format::segment::SegmentKind;
use crate::file::format::slot::LockWord;
use crate::file::log::recycler::Recycler;
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::mutant;

/// Halves of the word that says when a lane was last seen to change.
const SEEN_MASK: u64 = 0xFFFF_FFFF;
/// The append lanes of a cache file (open segments to which writers append in parallel), read
/// without their locks.
#[derive(Debug)]
pub(in crate::file) struct Lanes<'a, G> {
    area: &'a Area<G>,
}

impl<'a, G: Ground> Lanes<'a, G> {
    #[inline]
    pub(in crate::file) fn of(area: &'a Area<G>) -> Self {
        Self { area }
    }

    /// Returns the numbers of all append lanes of the cache file, which are open segments to which
    /// writers append in parallel.
    pub(in crate::file) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.area.geometry.numbers.lanes
    }

    /// Returns the user of an append lane (an open segment that writers append to), and the queue
    /// of its records; `None` for an unused lane.
    #[inline]
    pub(in crate::file) fn use_of(&self, lane: u32) -> Option<LaneUse> {
        let at = self.area.geometry.lane(lane) + lane::USE;
        LaneUse::decode(self.area.ground.load(at, Ordering::Relaxed))
    }

    /// Returns the segment that the writers of an append lane fill now; `None` if the lane names no
    /// segment.
    pub(in crate::file) fn segment_of(&self, lane: u32) -> Option<u32> {
        // Who sees another name sees the hazards of those who appended before.
        let order = mutant::order("name-read", Ordering::Acquire);
        let word = LockWord(self.area.ground.load(self.area.geometry.lane(lane), order));
        self.area.segment_named(word.payload())
    }

    /// Returns the segment that is open in a lane.
    fn open_in(&self, lane: u32) -> Option<u32> {
        // Only its own word makes it open: a damaged lane would else keep other segments from ever
        // being recycled.
        self.segment_of(lane)
            .filter(|segment| self.area.entry(*segment).state().kind == SegmentKind::Open)
    }

    /// Returns the segments of the cache file that are open for appending, one for each append lane
    /// in use.
    pub(in crate::file) fn open_segments(&self) -> impl Iterator<Item = u32> + use<'_, 'a, G> {
        self.numbers().filter_map(|lane| self.open_in(lane))
    }

    /// Returns whether a segment of the cache file is open for writers in one of the append lanes
    /// now.
    pub(in crate::file) fn have_open(&self, segment: u32) -> bool {
        self.open_segments().any(|open| open == segment)
    }

    /// Returns whether one of the append lanes names this segment as the one to append to, open or
    /// not.
    pub(in crate::file) fn name(&self, segment: u32) -> bool {
        self.numbers().any(|lane| self.segment_of(lane) == Some(segment))
    }

    /// Returns the number of users of the cache file that have an append lane (an open segment) for
    /// their records.
    pub(in crate::file) fn count_users(&self) -> usize {
        let mut users: Vec<u32> =
            self.numbers().filter_map(|lane| self.use_of(lane)).map(|usage| usage.user.0).collect();
        users.sort_unstable();
        users.dedup();
        users.len()
    }
}

/// A locked append lane of a cache file: one of the open segments to which writers append in
/// parallel.
#[derive(Debug)]
pub(in crate::file) struct LockedLane<'a, G: Ground> {
    area: &'a Area<G>,
    number: u32,
    held: Held<'a, G>,
}

impl<'a, G: Ground> LockedLane<'a, G> {
    /// Waits for the lock of an append lane (an open segment for writers), and returns the locked
    /// lane.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn lock(
        area: &'a Area<G>,
        owner: Owner,
        number: u32,
    ) -> Result<Self, OpError> {
        let held = area.lock(owner, area.geometry.lane(number))?;
        Ok(Self { area, number, held })
    }

    /// Takes the lock of an append lane (an open segment for writers), without waiting; returns
    /// `None` if a living process holds it.
    pub(in crate::file) fn lock_if_free(
        area: &'a Area<G>,
        owner: Owner,
        number: u32,
    ) -> Option<Self> {
        let held = area.lock_if_free(owner, area.geometry.lane(number))?;
        Some(Self { area, number, held })
    }

    /// Returns the segment that the writers of this locked append lane fill; `None` if the lane
    /// names no segment.
    #[inline]
    pub(in crate::file) fn segment(&self) -> Option<u32> {
        self.area.segment_named(self.held.payload())
    }

    /// Returns the user of this locked append lane, and the queue of its records; `None` for an
    /// unused lane.
    #[inline]
    pub(in crate::file) fn usage(&self) -> Option<LaneUse> {
        Lanes::of(self.area).use_of(self.number)
    }

    /// Records the user of this locked append lane, and the queue of its records; `None` for an
    /// unused lane.
    pub(in crate::file) fn set_usage(&self, usage: Option<LaneUse>) {
        let at = self.area.geometry.lane(self.number) + lane::USE;
        self.area.ground.store(at, usage.map_or(0, LaneUse::encode), IN_ORDER);
    }

    /// Makes the writers of this locked append lane fill a new segment, and seals the lane's
    /// previous segment.
    pub(in crate::file) fn name(mut self, segment: u32) {
        let Self { area, .. } = self;
        let old = self.segment();
        self.held.set_payload(segment + 1);
        crash::point("open.named");
        drop(self);
        if let Some(old) = old.filter(|old| *old != segment) {
            area.entry(old).seal();
        }
        crash::point("open.sealed");
    }

    /// Removes the segment that writers fill from this locked append lane, and seals the segment.
    pub(in crate::file) fn empty(&mut self) {
        let named = self.segment();
        self.forget();
        crash::point("lane.emptied");
        if let Some(segment) = named {
            self.area.entry(segment).seal();
        }
    }

    /// Removes the segment that writers fill from this locked append lane, without sealing the
    /// segment.
    pub(in crate::file) fn forget(&mut self) {
        self.held.set_payload(0);
    }
}

impl<G: Ground> Recycler<'_, G> {
    /// Seals the open segments to which no writer has appended for a while, because room is needed:
    /// their owners are dead, or write nothing to that queue.
    pub(in crate::file) fn release_idle_lanes(&self) {
        let now = self.ground.load(header::SEQUENCE, Ordering::Relaxed) & SEEN_MASK;
        let lanes = Lanes::of(self);
        let queue_of = |lane| lanes.use_of(lane).map(|usage| usage.queue);
        for lane in lanes.numbers() {
            let at = self.geometry.lane(lane);
            let Some(segment) = lanes.segment_of(lane) else { continue };
            let used = self.entry(segment).used();
            let filling = (used ^ u64::from(segment) << 20) & SEEN_MASK;
            let seen = self.ground.load(at + lane::SEEN, Ordering::Relaxed);
            if seen >> 32 != filling {
                self.ground.store(at + lane::SEEN, filling << 32 | now, Ordering::Relaxed);
                continue;
            }
            let opened = now.wrapping_sub(seen) & SEEN_MASK;
            if opened <= 2 * u64::from(self.geometry.numbers.lanes)
                || mutant::is_on("lanes-stay-idle")
            {
                continue;
            }
            // Otherwise each of the rare writes to the queue would open a segment.
            let queue = queue_of(lane);
            if lanes.numbers().filter(|other| queue_of(*other) == queue).count() < 2 {
                continue;
            }
            let Some(mut lane) = LockedLane::lock_if_free(self, self.owner, lane) else { continue };
            if lane.segment() == Some(segment) && self.entry(segment).used() == used {
                lane.forget();
                lane.set_usage(None);
                crash::point("lane.released");
                self.entry(segment).seal();
            }
        }
    }

    /// Seals all open segments, except those whose append lane another process has locked, so that
    /// the recycler can empty them.
    pub(in crate::file) fn seal_all_lanes(&self) {
        for lane in Lanes::of(self).numbers() {
            if let Some(mut lane) = LockedLane::lock_if_free(self, self.owner, lane) {
                lane.empty();
            }
        }
    }
}
