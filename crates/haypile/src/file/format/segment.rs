//! The words of an entry of the segment table.

use crate::file::format::stamp;

/// The kind of a segment of the cache file: free, open, sealed, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum SegmentKind {
    /// No slot points into the segment.
    Free,
    /// Records are appended to the segment.
    Open,
    /// The segment is full, or a run.
    Sealed,
    /// The recycler is emptying the segment.
    Recycling,
    /// The segment is a part of a run, behind its head.
    Member,
    /// The segment is free, and offered to whoever needs one without the recycler's lock.
    Ready,
    /// The segment is taken to be opened or to become part of a run, by an owner whose hazard names
    /// it.
    Taken,
}

/// The number of the queue of segments for new entries that never expire; the next four queues are
/// for new entries with a TTL, by its length.
pub(in crate::file) const SMALL: u32 = 1;
/// The number of the queue of segments for entries that were read again after they were written.
pub(in crate::file) const MAIN: u32 = 0;
/// The number of queues that the segments of a cache file belong to.
pub(in crate::file) const QUEUES: u32 = 6;
/// The number of queues of segments in a cache file that does not keep entries apart by TTL.
pub(in crate::file) const QUEUES_WITHOUT_CLASSES: u32 = 2;

/// The state of a segment of the cache file: its kind, its queue, and the order in which it was
/// opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct State {
    pub(in crate::file) kind: SegmentKind,
    pub(in crate::file) queue: u32,
    /// The number of consecutive segments of a record longer than a segment, in its first segment;
    /// in its other segments, the distance from the first; otherwise zero.
    pub(in crate::file) run: u32,
    /// The position of the segment in the order in which segments were opened: later segments have
    /// a higher number.
    pub(in crate::file) sequence: u64,
}

impl State {
    pub(in crate::file) const FREE: Self =
        Self { kind: SegmentKind::Free, queue: MAIN, run: 0, sequence: 0 };

    #[inline]
    pub(in crate::file) fn encode(self) -> u64 {
        let kind = match self.kind {
            SegmentKind::Free => 0,
            SegmentKind::Open => 1,
            SegmentKind::Sealed => 2,
            SegmentKind::Recycling => 3,
            SegmentKind::Member => 4,
            SegmentKind::Ready => 5,
            SegmentKind::Taken => 6,
        };
        kind | u64::from(self.queue & 31) << 3
            | u64::from(self.run & 0xFFFF) << 8
            | self.sequence << 24
    }

    /// Returns the first segment of the record, longer than a segment, that this segment is a part
    /// of; `None` if there cannot be one.
    pub(in crate::file) fn head_of(self, member: u32) -> Option<u32> {
        member.checked_sub(self.run).filter(|_| self.run > 0)
    }

    /// Decodes the state of a segment from its word in the cache file; garbage is decoded as a
    /// sealed segment of some queue, which will be recycled.
    #[inline]
    pub(in crate::file) fn decode(word: u64) -> Self {
        let kind = match word & 7 {
            0 => SegmentKind::Free,
            1 => SegmentKind::Open,
            3 => SegmentKind::Recycling,
            4 => SegmentKind::Member,
            5 => SegmentKind::Ready,
            6 => SegmentKind::Taken,
            _ => SegmentKind::Sealed,
        };
        let bits = |shift: u32, count: u32| {
            u32::try_from(word >> shift & ((1 << count) - 1)).expect("at most 16 bits")
        };
        let queue = bits(3, 5).min(QUEUES - 1);
        Self { kind, queue, run: bits(8, 16), sequence: word >> 24 }
    }
}

pub(in crate::file) const GENERATION: u64 = 0;
pub(in crate::file) const STATE: u64 = 8;
pub(in crate::file) const USED: u64 = 16;
pub(in crate::file) const EXPIRY: u64 = 32;
pub(in crate::file) const STAMP: u64 = 40;
pub(in crate::file) const EPOCH: u64 = 48;
pub(in crate::file) const OPENED: u64 = 56;

/// The parts of a word of live counts, from the lowest bits: units of 8 bytes, entries, changes.
const UNIT_BITS: u32 = 28;
const ENTRY_BITS: u32 = 24;
const CHANGE: u64 = 1 << (UNIT_BITS + ENTRY_BITS);

/// The time at which a segment was filled, relative to the last reboot and to the verification of
/// the index after it, which decides whether reads verify its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Origin {
    /// Processes of this stamp filled it, when no slot could lead there by accident.
    Sure,
    /// Processes of this stamp filled it, before the index was swept.
    Doubtful,
    /// Processes of an earlier stamp filled it: a loss of power or a copy may have torn it.
    Earlier,
}

impl Origin {
    /// Returns when a segment with the boot stamp `own` was filled, relative to the last reboot, as
    /// a process with the boot stamp `stamp` sees it.
    #[inline]
    pub(in crate::file) fn of(own: u64, stamp: u64) -> Self {
        if own == stamp {
            Self::Sure
        } else if own == stamp::doubtful(stamp) {
            Self::Doubtful
        } else {
            Self::Earlier
        }
    }
}

/// The number and the total bytes of a segment's live entries (those that slots of the index point
/// to).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::file) struct Live {
    pub(in crate::file) entries: u64,
    pub(in crate::file) bytes: u64,
}

impl Live {
    /// Adds one live entry of this length to the counts of a segment. The sum is capped, because
    /// damage can make several index slots point to one record.
    pub(in crate::file) fn count(&mut self, bytes: u64) {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns the counts of a segment's live entries encoded in the lower bits of a word; the
    /// upper bits, which count changes, are zero.
    #[inline]
    pub(in crate::file) fn encode(self) -> u64 {
        let part = |number: u64, bits: u32| number & ((1 << bits) - 1);
        part(self.entries, ENTRY_BITS) << UNIT_BITS | part(self.bytes / 8, UNIT_BITS)
    }

    #[inline]
    pub(in crate::file) fn decode(word: u64) -> Self {
        // A sum of words that others change at the same time may lack what was counted before what was
        // taken off: less than nothing is nothing.
        let part = |shift: u32, bits: u32| {
            let part = word >> shift & ((1 << bits) - 1);
            // A record has little more than 1 GiB at most, which is less than three quarters.
            if part >> (bits - 2) == 0b11 { 0 } else { part }
        };
        Self { entries: part(UNIT_BITS, ENTRY_BITS), bytes: part(0, UNIT_BITS) * 8 }
    }

    /// Returns the number to add to a segment's word of live counts so that it holds the counts
    /// `live`; the number of changes in the upper bits stays.
    pub(in crate::file) fn correction(word: u64, live: Self) -> u64 {
        live.encode().wrapping_sub(word & (CHANGE - 1))
    }

    /// Returns the number whose addition to a segment's word of live counts adds these entries and
    /// counts one more change.
    pub(in crate::file) fn coming(self) -> u64 {
        CHANGE.wrapping_add(self.encode())
    }

    /// Returns the number whose addition to a segment's word of live counts subtracts these entries
    /// and counts one more change.
    pub(in crate::file) fn going(self) -> u64 {
        CHANGE.wrapping_sub(self.encode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_they_were_written() {
        for kind in [
            SegmentKind::Free,
            SegmentKind::Open,
            SegmentKind::Sealed,
            SegmentKind::Recycling,
            SegmentKind::Member,
            SegmentKind::Ready,
            SegmentKind::Taken,
        ] {
            let state = State { kind, queue: 5, run: 1025, sequence: (1 << 40) - 1 };
            assert_eq!(State::decode(state.encode()), state);
        }
        assert_eq!(State::decode(0), State::FREE);
        let garbage = State::decode(u64::MAX);
        assert_eq!((garbage.kind, garbage.queue), (SegmentKind::Sealed, QUEUES - 1));
    }

    #[test]
    fn live_counts_go_up_and_down_in_one_word() {
        let (one, two) = (Live { entries: 1, bytes: 200 }, Live { entries: 1, bytes: 1 << 30 });
        let changes = [one.coming(), two.coming(), one.going()];
        let word = changes.into_iter().fold(0, u64::wrapping_add);
        assert_eq!(Live::decode(word), two);
        assert_ne!(word, two.coming(), "changes that cancel each other out are seen");
        assert_eq!(Live::decode(one.going()), Live::default(), "less than nothing");
        let corrected = word.wrapping_add(Live::correction(word, one));
        assert_eq!((Live::decode(corrected), corrected >> 52), (one, word >> 52));
    }
}
