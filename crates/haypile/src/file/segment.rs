//! An entry of the segment table.

use std::sync::atomic::Ordering;

use super::ground::{Ground, IN_ORDER};
use super::stamp;
use crate::mutant;

/// The kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentKind {
    /// No slot points into it.
    Free,
    /// Records are appended to it.
    Open,
    /// Full, or a run.
    Sealed,
    /// Being emptied.
    Recycling,
    /// A part of a run, behind its head.
    Member,
}

/// The queue of new entries that never expire; those with a TTL are the next four, by class.
pub(super) const SMALL: u32 = 1;
/// The queue of entries that have proved their use.
pub(super) const MAIN: u32 = 0;
/// All queues that segments are open for.
pub(super) const HEADS: u32 = 6;

/// The state of a segment: its kind, its queue, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) kind: SegmentKind,
    pub(super) queue: u32,
    /// Of a run's head: how many segments. Of a member: its distance from the head. Else zero.
    pub(super) run: u32,
    /// Segments that were opened later have a higher one.
    pub(super) sequence: u64,
}

impl State {
    pub(super) const FREE: Self =
        Self { kind: SegmentKind::Free, queue: MAIN, run: 0, sequence: 0 };

    fn encode(self) -> u64 {
        let kind = match self.kind {
            SegmentKind::Free => 0,
            SegmentKind::Open => 1,
            SegmentKind::Sealed => 2,
            SegmentKind::Recycling => 3,
            SegmentKind::Member => 4,
        };
        kind | u64::from(self.queue & 31) << 3
            | u64::from(self.run & 0xFFFF) << 8
            | self.sequence << 24
    }

    /// The head of the run that a member of this number belongs to. `None`: garbage, no head is there.
    pub(super) fn head_of(self, member: u32) -> Option<u32> {
        member.checked_sub(self.run).filter(|_| self.run > 0)
    }

    /// Garbage is a sealed segment of some queue: it will be recycled.
    fn decode(word: u64) -> Self {
        let kind = match word & 7 {
            0 => SegmentKind::Free,
            1 => SegmentKind::Open,
            3 => SegmentKind::Recycling,
            4 => SegmentKind::Member,
            _ => SegmentKind::Sealed,
        };
        let bits = |shift: u32, count: u32| {
            u32::try_from(word >> shift & ((1 << count) - 1)).expect("at most 16 bits")
        };
        let queue = bits(3, 5).min(HEADS - 1);
        Self { kind, queue, run: bits(8, 16), sequence: word >> 24 }
    }
}

const GENERATION: u64 = 0;
const STATE: u64 = 8;
const USED: u64 = 16;
const LIVE: u64 = 24;
const EXPIRY: u64 = 32;
const STAMP: u64 = 40;
const EPOCH: u64 = 48;
const OPENED: u64 = 56;

/// The parts of a word of live counts, from the lowest bits: units of 8 bytes, entries, changes.
const UNIT_BITS: u32 = 28;
const ENTRY_BITS: u32 = 24;
const CHANGE: u64 = 1 << (UNIT_BITS + ENTRY_BITS);

/// The origin of a segment: who filled it, as far as its records depend on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Processes of this stamp, when no slot could lead there by accident.
    Sure,
    /// Processes of this stamp, before the index was swept.
    Doubtful,
    /// Processes of an earlier stamp: a loss of power or a copy may have torn it.
    Earlier,
}

impl Origin {
    /// That of a segment with a stamp of its own, as a process of another one sees it.
    #[inline]
    fn of(own: u64, stamp: u64) -> Self {
        if own == stamp {
            Self::Sure
        } else if own == stamp::doubtful(stamp) {
            Self::Doubtful
        } else {
            Self::Earlier
        }
    }
}

/// The words of one segment.
#[derive(Debug)]
pub(super) struct Entry<'a, G> {
    pub(super) ground: &'a G,
    pub(super) at: u64,
}

/// Entries of a segment that slots point to, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

impl Live {
    /// Counts one more entry. Damage makes several slots lead to one record: the sum has a bound.
    pub(super) fn count(&mut self, bytes: u64) {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// The lower bits of the word; those that count changes are zero.
    fn encode(self) -> u64 {
        let part = |number: u64, bits: u32| number & ((1 << bits) - 1);
        part(self.entries, ENTRY_BITS) << UNIT_BITS | part(self.bytes / 8, UNIT_BITS)
    }

    pub(super) fn decode(word: u64) -> Self {
        let part = |shift: u32, bits: u32| word >> shift & ((1 << bits) - 1);
        Self { entries: part(UNIT_BITS, ENTRY_BITS), bytes: part(0, UNIT_BITS) * 8 }
    }

    /// The addition to the word when this comes, counted as a change.
    fn coming(self) -> u64 {
        CHANGE.wrapping_add(self.encode())
    }

    /// The addition to the word when this goes.
    fn going(self) -> u64 {
        CHANGE.wrapping_sub(self.encode())
    }
}

impl<G: Ground> Entry<'_, G> {
    fn load(&self, word: u64) -> u64 {
        self.ground.load(self.at + word, Ordering::Relaxed)
    }

    fn put(&self, word: u64, value: u64) {
        self.ground.store(self.at + word, value, IN_ORDER);
    }

    /// The generation: a reader of it sees that nothing points to what was there before.
    pub(super) fn generation(&self) -> u64 {
        let order = mutant::order("generation-read", Ordering::Acquire);
        self.ground.load(self.at + GENERATION, order)
    }

    /// After a fence: what was read before is from no later generation than this says.
    pub(super) fn generation_after(&self) -> u64 {
        self.ground.fence(mutant::order("fence-after-a-record", Ordering::Acquire));
        self.ground.load(self.at + GENERATION, Ordering::Relaxed)
    }

    pub(super) fn state(&self) -> State {
        State::decode(self.load(STATE))
    }

    /// Releases what was written before: a reader that pins a segment and sees that it was begun again
    /// reads its new generation too, after the fence of [`generation_after`](Self::generation_after).
    pub(super) fn set_state(&self, state: State) {
        let order = mutant::order("state-written", Ordering::Release);
        self.ground.store(self.at + STATE, state.encode(), order);
    }

    pub(super) fn used(&self) -> u64 {
        self.load(USED)
    }

    pub(super) fn set_used(&self, bytes: u64) {
        self.put(USED, bytes);
    }

    pub(super) fn live(&self) -> Live {
        Live::decode(self.load(LIVE))
    }

    pub(super) fn live_word(&self) -> u64 {
        self.load(LIVE)
    }

    /// Replaces a word of counts, unless it has changed: changes that cancel each other out count
    /// as well.
    pub(super) fn correct_live(&self, old: u64, live: Live) -> bool {
        let changes = old & CHANGE.wrapping_neg();
        self.ground.exchange(self.at + LIVE, old, changes | live.encode()).is_ok()
    }

    pub(super) fn add_live(&self, bytes: u64) {
        self.ground.add(self.at + LIVE, Live { entries: 1, bytes }.coming());
    }

    pub(super) fn remove_live(&self, bytes: u64) {
        self.ground.add(self.at + LIVE, Live { entries: 1, bytes }.going());
    }

    /// When the last of its records expires, in ms since 1970; `u64::MAX` if one never does.
    pub(super) fn expires_ms(&self) -> u64 {
        self.load(EXPIRY)
    }

    pub(super) fn raise_expiry(&self, expires_ms: u64) {
        if self.ground.load(self.at + EXPIRY, Ordering::Relaxed) < expires_ms {
            self.ground.raise(self.at + EXPIRY, expires_ms);
        }
    }

    /// The stamp: a reader that finds it sure sees that no slot leads into the segment by accident.
    fn stamp(&self) -> u64 {
        self.ground.load(self.at + STAMP, mutant::order("stamp-read", Ordering::Acquire))
    }

    /// By whom it was filled, as a process of this stamp sees it.
    #[inline]
    pub(super) fn origin(&self, stamp: u64) -> Origin {
        Origin::of(self.stamp(), stamp)
    }

    /// 32 bits that differ each time that it is filled, and that its checksums are mixed with.
    #[inline]
    pub(super) fn salt(&self) -> u64 {
        self.salt_under(self.stamp())
    }

    #[inline]
    fn salt_under(&self, own: u64) -> u64 {
        let number = stamp::doubtful(own) ^ self.generation().rotate_left(32);
        number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
    }

    /// Both at once.
    #[inline]
    pub(super) fn origin_and_salt(&self, stamp: u64) -> (Origin, u64) {
        let own = self.stamp();
        (Origin::of(own, stamp), self.salt_under(own))
    }

    /// No slot leads into it by accident any more.
    pub(super) fn set_sure(&self, stamp: u64) {
        let order = mutant::order("stamp-made-sure", Ordering::Release);
        self.ground.store(self.at + STAMP, stamp, order);
    }

    pub(super) fn epoch(&self) -> u64 {
        self.ground.load(self.at + EPOCH, Ordering::Relaxed)
    }

    pub(super) fn opened_ms(&self) -> u64 {
        self.load(OPENED)
    }

    /// Tells readers that what it held is no more. It is raised when a segment is freed, for the
    /// members of a run are then used without their head; and before it is filled again.
    fn raise_generation(&self) {
        let next = self.load(GENERATION).wrapping_add(1);
        let order = mutant::order("generation-raised", Ordering::Release);
        self.ground.store(self.at + GENERATION, next, order);
    }

    /// Frees it.
    pub(super) fn free(&self) {
        if !mutant::is_on("generation-not-raised-at-freeing") {
            self.raise_generation();
        }
        self.set_state(State::FREE);
    }

    /// Makes it ready to be filled, under a stamp or its doubtful form. Readers of what it held
    /// find out by the generation, which is raised before anything else is written.
    pub(super) fn begin(&self, stamp: u64, epoch: u64, now_ms: u64) {
        if !mutant::is_on("generation-not-raised-at-filling") {
            self.raise_generation();
        }
        for (word, value) in [(USED, 0), (LIVE, 0), (EXPIRY, 0), (STAMP, stamp), (EPOCH, epoch)] {
            self.put(word, value);
        }
        self.put(OPENED, now_ms);
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
        ] {
            let state = State { kind, queue: 5, run: 1025, sequence: (1 << 40) - 1 };
            assert_eq!(State::decode(state.encode()), state);
        }
        assert_eq!(State::decode(0), State::FREE);
        let garbage = State::decode(u64::MAX);
        assert_eq!((garbage.kind, garbage.queue), (SegmentKind::Sealed, HEADS - 1));
    }

    #[test]
    fn live_counts_go_up_and_down_in_one_word() {
        let (one, two) = (Live { entries: 1, bytes: 200 }, Live { entries: 1, bytes: 1 << 30 });
        let changes = [one.coming(), two.coming(), one.going()];
        let word = changes.into_iter().fold(0, u64::wrapping_add);
        assert_eq!(Live::decode(word), two);
        assert_ne!(word, two.coming(), "changes that cancel each other out are seen");
    }
}
