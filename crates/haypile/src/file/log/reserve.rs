//! The reserve: segments that only the recycling process appends to.

use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::file::area::OpError;
use crate::file::format::segment::{MAIN, QUEUES, SMALL};
use crate::file::log::append::{Appended, Draft};
use crate::file::log::hazards::Hazards;
use crate::file::log::recycler::Recycler;
use crate::file::platform::ground::Ground;
use crate::mutant;

/// Free segments for copies of records that the recycler keeps: one for each queue whose open
/// segment is full. Other writers could fill a shared segment while this process lacks a processor,
/// and leave no room for kept records.
#[derive(Debug, Default)]
pub(in crate::file) struct Reserve {
    of_queues: [Option<u32>; QUEUES as usize],
    /// The segments that are to be free in the end, none of which the reserve takes.
    emptied: Range<u32>,
}

impl Reserve {
    /// Returns an empty reserve of segments for kept records that never takes one of these
    /// segments, because they are to be free in the end.
    pub(in crate::file) fn outside(emptied: Range<u32>) -> Self {
        Self { emptied, ..Self::default() }
    }

    /// Returns whether a segment is in the reserve for copies of records that the recycler keeps.
    pub(in crate::file) fn contains(&self, segment: u32) -> bool {
        self.of_queues.contains(&Some(segment))
    }

    fn of(&mut self, queue: u32) -> &mut Option<u32> {
        &mut self.of_queues[queue as usize]
    }
}

impl<G: Ground> Recycler<'_, G> {
    /// Appends a copy of a record that the recycler keeps to a segment of a queue; returns `None`
    /// if no segment is free.
    pub(in crate::file) fn append_copy(
        &self,
        reserve: &mut Reserve,
        queue: u32,
        draft: &Draft<'_>,
        now_ms: u64,
    ) -> Result<Option<Appended<'_, G>>, OpError> {
        let bytes = draft.head.bytes();
        match *reserve.of(queue) {
            Some(spare) => {
                if let Some(used) = self.room_in(queue, spare, bytes) {
                    return Ok(Some(self.append_to_spare((spare, used), draft)));
                }
                self.publish_one(queue, spare);
                *reserve.of(queue) = None;
            }
            // A process that has stopped must not keep all others from making room.
            None => match self.appender().append_to_open(queue, draft) {
                Ok(None) | Err(OpError::Busy(_)) => {}
                other => return other,
            },
        }
        let emptied = reserve.emptied.clone();
        let others = || {
            let all = 0..self.geometry.numbers.segments;
            all.filter(|segment| !emptied.contains(segment))
        };
        let spare = if let Some(orphan) = others().find(|it| self.is_orphan(queue, *it, bytes)) {
            orphan
        } else if let Some(free) = self.begin_one_of(queue, others(), now_ms)? {
            free
        } else {
            let other = if queue == MAIN { SMALL } else { MAIN };
            return self.appender().append_to_open(other, draft);
        };
        *reserve.of(queue) = Some(spare);
        // Everything was cleared concurrently, or the segment is damaged.
        let room = self.room_in(queue, spare, bytes);
        Ok(room.map(|used| self.append_to_spare((spare, used), draft)))
    }

    /// Begins a free segment, one that is not ready for others if there is such a one.
    fn begin_one_of(
        &self,
        queue: u32,
        segments: impl Iterator<Item = u32> + Clone,
        now_ms: u64,
    ) -> Result<Option<u32>, OpError> {
        let free = segments.clone().filter(|segment| self.is_free(*segment));
        for segment in free.chain(segments) {
            if self.begin(queue, segment, now_ms)? {
                return Ok(Some(segment));
            }
        }
        Ok(None)
    }

    /// Returns whether a segment of this queue, with room for `bytes` bytes, is an orphan: no
    /// writer appends to it, because the process that had prepared it died. Without reuse, several
    /// such deaths would leave no segment for kept records.
    pub(in crate::file) fn is_orphan(&self, queue: u32, segment: u32, bytes: u64) -> bool {
        let has_room = self.room_in(queue, segment, bytes).is_some();
        self.ground.fence(mutant::order("fence-after-an-orphan", Ordering::Acquire));
        has_room && !Hazards::of(self).or_lanes_name(segment)
    }

    fn append_to_spare(&self, spare: (u32, u64), draft: &Draft<'_>) -> Appended<'_, G> {
        let appended = self.appender().extend(spare, draft);
        appended.fill(draft);
        appended
    }

    /// Makes the partly filled segments of the recycler's reserve available to all writers.
    pub(in crate::file) fn publish(&self, reserve: &Reserve) {
        for (queue, spare) in (0..).zip(reserve.of_queues) {
            if let Some(spare) = spare {
                self.publish_one(queue, spare);
            }
        }
    }

    fn publish_one(&self, queue: u32, spare: u32) {
        // In another owner's lane it would replace a segment that is being filled. As an orphan it is
        // found by the next process that recycles.
        if self.appender().shares_lane(queue) {
            return;
        }
        // Where that cannot be, it is full as it is.
        if self.appender().name(queue, spare).is_err() {
            self.entry(spare).seal();
        }
    }
}
