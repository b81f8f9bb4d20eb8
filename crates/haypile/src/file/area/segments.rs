//! Segments, as their words in the segment table describe them.

use super::Area;
use crate::file::format::header;
use crate::file::format::segment::{Origin, SegmentKind, State};
use crate::file::format::slot::Slot;
use crate::file::platform::ground::Ground;
use crate::mutant;

impl<G: Ground> Area<G> {
    /// Returns the segment that an index slot points into; `None` if it points beyond the last
    /// segment.
    #[inline]
    pub(in crate::file) fn segment_of(&self, slot: Slot) -> Option<u32> {
        let segment = slot.offset() >> self.geometry.numbers.segment_log2;
        if segment >= self.geometry.numbers.segments.into() {
            return None;
        }
        u32::try_from(segment).ok()
    }

    /// Returns the segment that a number in the cache file names, which is the segment's own number
    /// plus 1; `None` for zero, and for numbers beyond the last segment.
    pub(in crate::file) fn segment_named(&self, payload: u32) -> Option<u32> {
        payload.checked_sub(1).filter(|segment| *segment < self.geometry.numbers.segments)
    }

    /// Returns the offset in a segment at which a record of this length can be appended, if the
    /// segment is open for this queue and has room for it. The segment's state is checked because a
    /// death or a loss of power can leave a wrong segment in an append lane. A writer uses this
    /// offset without reading it again: damage may come in between.
    #[expect(clippy::inline_always, reason = "writers of other processes wait for it")]
    #[inline(always)]
    pub(in crate::file) fn room_in(&self, queue: u32, segment: u32, bytes: u64) -> Option<u64> {
        let entry = self.entry(segment);
        let (state, used) = (entry.state(), entry.used());
        let has_room = (state.kind == SegmentKind::Open
            || mutant::is_on("sealed-segments-have-room"))
            && state.queue == queue
            && entry.origin(self.stamp) != Origin::Earlier
            && entry.epoch() == self.epoch()
            && used.is_multiple_of(8)
            && used.saturating_add(bytes) <= self.geometry.segment_bytes();
        has_room.then_some(used)
    }

    /// Returns the number of consecutive segments that the record at a segment's beginning takes:
    /// 1, or more for a record longer than a segment.
    pub(in crate::file) fn run_length(&self, segment: u32) -> u32 {
        self.run_from(segment, self.entry(segment).state())
    }

    /// Returns the number of consecutive segments that the record at a segment's beginning takes,
    /// from the segment's known state. Even for a damaged state, they end at the file's last
    /// segment.
    pub(in crate::file) fn run_from(&self, segment: u32, state: State) -> u32 {
        let left = self.geometry.numbers.segments - segment;
        if state.kind == SegmentKind::Member { 1 } else { state.run.clamp(1, left) }
    }

    /// Returns whether a segment really is a part of the record, longer than a segment, that its
    /// state says it belongs to.
    pub(in crate::file) fn is_in_run(&self, segment: u32, state: State) -> bool {
        let Some(head) = state.head_of(segment) else {
            return false;
        };
        let head = self.entry(head).state();
        matches!(head.kind, SegmentKind::Sealed | SegmentKind::Recycling) && head.run > state.run
    }

    /// Returns a new, highest sequence number in the order in which segments of the cache file are
    /// opened.
    pub(in crate::file) fn next_sequence(&self) -> u64 {
        self.ground.add(header::SEQUENCE, 1) & ((1 << 40) - 1)
    }

    /// Returns whether a segment of the cache file is free, and may be filled by the holder of the
    /// lock for emptying segments.
    pub(in crate::file) fn is_free(&self, segment: u32) -> bool {
        let state = self.entry(segment).state();
        match state.kind {
            SegmentKind::Free => true,
            SegmentKind::Member => !self.is_in_run(segment, state),
            _ => false,
        }
    }

    /// Returns whether a segment of the cache file holds no records (it is free, or taken to be
    /// filled), whatever index slots may point to it.
    pub(in crate::file) fn holds_nothing(&self, segment: u32) -> bool {
        let kind = self.entry(segment).state().kind;
        matches!(kind, SegmentKind::Ready | SegmentKind::Taken) || self.is_free(segment)
    }
}
