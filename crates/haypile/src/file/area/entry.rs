//! An entry of the segment table, as words that processes share.

use std::sync::atomic::Ordering;

use crate::file::format::segment::{
    EPOCH, EXPIRY, GENERATION, OPENED, Origin, STAMP, STATE, SegmentKind, State, USED,
};
use crate::file::format::stamp;
use crate::file::platform::ground::{Ground, IN_ORDER, Line};
use crate::mutant;

/// One segment's entry in the segment table of a cache file: the metadata of that segment of the
/// log of records.
#[derive(Debug)]
pub(in crate::file) struct Entry<'a, G: Ground> {
    pub(in crate::file) ground: &'a G,
    pub(in crate::file) at: u64,
    line: G::Line<'a>,
}

impl<'a, G: Ground> Entry<'a, G> {
    /// Returns the entry of the segment table (the metadata of one segment) that begins at this
    /// offset in the cache file.
    #[inline]
    pub(in crate::file) fn at(ground: &'a G, at: u64) -> Self {
        Self { ground, at, line: ground.line(at) }
    }

    #[inline]
    fn load(&self, word: u64) -> u64 {
        self.line.load(word, Ordering::Relaxed)
    }

    fn put(&self, word: u64, value: u64) {
        self.line.store(word, value, IN_ORDER);
    }

    /// Returns the generation of a segment of the cache file, a count of its fillings: a reader
    /// that sees it change reads again.
    #[inline]
    pub(in crate::file) fn generation(&self) -> u64 {
        let order = mutant::order("generation-read", Ordering::Acquire);
        self.line.load(GENERATION, order)
    }

    /// Returns the generation of a segment of the cache file after an acquire fence: all data read
    /// before the fence is of this generation or an earlier one.
    #[inline]
    pub(in crate::file) fn generation_after(&self) -> u64 {
        self.ground.fence(mutant::order("fence-after-a-record", Ordering::Acquire));
        self.line.load(GENERATION, Ordering::Relaxed)
    }

    #[inline]
    pub(in crate::file) fn state(&self) -> State {
        State::decode(self.load(STATE))
    }

    /// Sets the state (free, open, sealed, …) of a segment of the cache file with release ordering.
    /// A reader that sees the segment refilled also reads its new generation, after the fence of
    /// [`generation_after`](Self::generation_after).
    #[inline]
    pub(in crate::file) fn set_state(&self, state: State) {
        let order = mutant::order("state-written", Ordering::Release);
        self.line.store(STATE, state.encode(), order);
    }

    /// Returns the state (free, open, sealed, …) of a segment as the encoded word in the cache
    /// file, to be replaced by [`exchange_state`](Self::exchange_state).
    pub(in crate::file) fn state_word(&self) -> u64 {
        self.line.load(STATE, mutant::order("state-read", Ordering::Acquire))
    }

    /// Replaces the state of a segment of the cache file by `state`, if its encoded state is still
    /// `read` (compare-and-swap); returns whether it was.
    pub(in crate::file) fn exchange_state(&self, read: u64, state: State) -> bool {
        self.ground.exchange(self.at + STATE, read, state.encode()).is_ok()
    }

    #[inline]
    pub(in crate::file) fn used(&self) -> u64 {
        self.load(USED)
    }

    #[inline]
    pub(in crate::file) fn set_used(&self, bytes: u64) {
        self.put(USED, bytes);
    }

    /// Returns the latest expiry of all records in a segment of the cache file, in ms since 1970;
    /// `u64::MAX` if one never expires.
    #[inline]
    pub(in crate::file) fn expires_ms(&self) -> u64 {
        self.load(EXPIRY)
    }

    #[inline]
    pub(in crate::file) fn raise_expiry(&self, expires_ms: u64) {
        if self.line.load(EXPIRY, Ordering::Relaxed) < expires_ms {
            self.ground.raise(self.at + EXPIRY, expires_ms);
        }
    }

    /// Returns the stamp: a reader that finds it sure sees that no slot leads into the segment by accident.
    fn stamp(&self) -> u64 {
        self.line.load(STAMP, mutant::order("stamp-read", Ordering::Acquire))
    }

    /// Returns when a segment of the cache file was filled: before the last reboot, since then but
    /// before the index was verified, or later; `stamp` is the number of the current boot.
    #[inline]
    pub(in crate::file) fn origin(&self, stamp: u64) -> Origin {
        Origin::of(self.stamp(), stamp)
    }

    /// Returns the salt of a segment of the cache file: 32 bits that differ each time that the
    /// segment is filled, and that its records' checksums are mixed with.
    #[inline]
    pub(in crate::file) fn salt(&self) -> u64 {
        self.salt_under(self.stamp())
    }

    #[inline]
    fn salt_under(&self, own: u64) -> u64 {
        let number = stamp::doubtful(own) ^ self.generation().rotate_left(32);
        number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
    }

    /// Returns when a segment was filled, relative to the last reboot, and the salt that its
    /// records' checksums are mixed with, from one read of its boot stamp.
    #[inline]
    pub(in crate::file) fn origin_and_salt(&self, stamp: u64) -> (Origin, u64) {
        let own = self.stamp();
        (Origin::of(own, stamp), self.salt_under(own))
    }

    /// Marks a segment of the cache file as verified: no index slot that a loss of power left
    /// behind points into it any more.
    pub(in crate::file) fn set_sure(&self, stamp: u64) {
        let order = mutant::order("stamp-made-sure", Ordering::Release);
        self.line.store(STAMP, stamp, order);
    }

    #[inline]
    pub(in crate::file) fn epoch(&self) -> u64 {
        self.line.load(EPOCH, Ordering::Relaxed)
    }

    pub(in crate::file) fn opened_ms(&self) -> u64 {
        self.load(OPENED)
    }

    /// Tells readers that what it held is no more. It is raised when a segment is freed, for the
    /// members of a run are then used without their head; and before it is filled again.
    fn raise_generation(&self) {
        let next = self.load(GENERATION).wrapping_add(1);
        let order = mutant::order("generation-raised", Ordering::Release);
        self.line.store(GENERATION, next, order);
    }

    /// Seals a segment of the cache file, so that no record is appended to it any more, unless
    /// another process is emptying it already.
    pub(in crate::file) fn seal(&self) {
        let word = self.state_word();
        let state = State::decode(word);
        if state.kind == SegmentKind::Open {
            self.exchange_state(word, State { kind: SegmentKind::Sealed, ..state });
        }
    }

    /// Marks a segment of the cache file as free, so that it can be filled again.
    pub(in crate::file) fn free(&self) {
        if !mutant::is_on("generation-not-raised-at-freeing") {
            self.raise_generation();
        }
        self.set_state(State::FREE);
    }

    /// Makes a segment of the cache file ready to be filled with records, and writes its boot stamp
    /// (a number that each reboot changes). Readers of its old records notice by the generation,
    /// which is raised before anything else is written.
    pub(in crate::file) fn begin(&self, stamp: u64, epoch: u64, now_ms: u64) {
        if !mutant::is_on("generation-not-raised-at-filling") {
            self.raise_generation();
        }
        for (word, value) in [(USED, 0), (EXPIRY, 0), (STAMP, stamp), (EPOCH, epoch)] {
            self.put(word, value);
        }
        self.put(OPENED, now_ms);
    }
}
