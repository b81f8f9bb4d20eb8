//! Segments that are ready to be opened, so that writers do not wait for each other to make room.
//!
//! Free segments belong to the holder of the recycler's lock, which makes some of them ready: these
//! belong to the first owner that exchanges their state. The header names them, as a hint. One writer
//! alone has none of them, and makes room when it needs it.

use std::sync::atomic::Ordering;

use haypile_policy::rules::file::RESERVED_SEGMENTS;

use crate::file::area::{Area, OpError};
use crate::file::crash;
use crate::file::format::header;
use crate::file::format::segment::{SegmentKind, State};
use crate::file::log::append::{Appended, Appender, Draft};
use crate::file::log::lane::Lanes;
use crate::file::log::recycler::Recycler;
use crate::file::log::sweep::Sweeper;
use crate::file::platform::ground::Ground;
use crate::mutant;

/// Of this number of segments, one is ready at most.
const SEGMENTS_PER_READY: u32 = 64;

/// Returns where the words are that name ready segments.
fn ready_words() -> impl Iterator<Item = u64> {
    (0..header::READY_WORDS).map(|number| header::READY_AT + 8 * number)
}

/// The free segments of a cache file that are prepared for writers, which open them without a lock
/// (ready segments).
#[derive(Debug)]
pub(in crate::file) struct Ready<'a, G> {
    area: &'a Area<G>,
}

impl<'a, G: Ground> Ready<'a, G> {
    pub(in crate::file) fn of(area: &'a Area<G>) -> Self {
        Self { area }
    }

    /// Returns the free segments that are prepared for writers, each with the offset of the
    /// header's word that names it.
    pub(in crate::file) fn segments(&self) -> impl Iterator<Item = (u64, u32)> {
        ready_words().filter_map(|at| {
            let word = self.area.ground.load(at, Ordering::Relaxed);
            let segment = self.area.segment_named(u32::try_from(word).ok()?)?;
            self.is_ready(segment).then_some((at, segment))
        })
    }

    fn is_ready(&self, segment: u32) -> bool {
        self.area.entry(segment).state().kind == SegmentKind::Ready
    }

    /// Returns the number of free segments that still have to be prepared for writers until there
    /// are as many as wanted.
    pub(in crate::file) fn missing(&self) -> usize {
        self.wanted().saturating_sub(self.segments().count())
    }

    /// Returns the number of free segments that should be prepared for writers: two for each user
    /// of the cache file that writes, beyond the first, up to a limit.
    pub(in crate::file) fn wanted(&self) -> usize {
        let most = u64::from(self.area.geometry.numbers.segments / SEGMENTS_PER_READY);
        let most = usize::try_from(most.min(header::READY_WORDS)).expect("a few");
        (2 * Lanes::of(self.area).count_users().saturating_sub(1)).min(most)
    }

    /// Makes a prepared segment available to writers again, because the user that took it does not
    /// need it.
    pub(in crate::file) fn give_back(&self, segment: u32) {
        self.make_ready(segment);
        let word = u64::from(segment) + 1;
        // Where no word is free, the next process that recycles names it.
        let _ = ready_words().find(|at| self.area.ground.exchange(*at, 0, word).is_ok());
    }

    fn make_ready(&self, segment: u32) {
        let sequence = self.area.next_sequence();
        let ready = State { kind: SegmentKind::Ready, sequence, ..State::FREE };
        self.area.entry(segment).set_state(ready);
    }
}

impl<'a, G: Ground> Appender<'a, G> {
    /// Takes a prepared free segment for this user of the cache file, so that no other user opens
    /// or empties it. No lock is needed: the segment's state differs each time that it is prepared,
    /// and the user's announcement shows that the user is alive. Returns the segment's state, to be
    /// replaced by another; `None` if another user has taken it.
    pub(in crate::file) fn take_ready(&self, segment: u32) -> Option<State> {
        let word = self.area.entry(segment).state_word();
        let is_ready = State::decode(word).kind == SegmentKind::Ready;
        is_ready.then(|| self.take(segment, word)).flatten()
    }

    /// Takes a segment for this user of the cache file, unless its state is no longer the one
    /// encoded in `word`; returns the segment's new state, or `None`.
    pub(in crate::file) fn take(&self, segment: u32, word: u64) -> Option<State> {
        let entry = self.area.entry(segment);
        self.set_hazard(Some(segment));
        crash::point("take.hazard");
        let sequence = self.area.next_sequence();
        let taken = State { kind: SegmentKind::Taken, sequence, ..State::FREE };
        let is_taken = if mutant::is_on("ready-segments-are-taken-twice") {
            entry.set_state(taken);
            true
        } else {
            entry.exchange_state(word, taken)
        };
        crash::point("take.taken");
        if !is_taken {
            self.set_hazard(None);
        }
        is_taken.then_some(taken)
    }

    /// Opens one of the prepared free segments and appends a record to it; returns `None` if no
    /// segment is prepared.
    pub(in crate::file) fn append_to_ready(
        &self,
        queue: u32,
        draft: &Draft<'_>,
        now_ms: u64,
    ) -> Result<Option<Appended<'a, G>>, OpError> {
        for (at, segment) in Ready::of(self.area).segments() {
            let _ = self.area.ground.exchange(at, u64::from(segment) + 1, 0);
            if let Some(taken) = self.take_ready(segment) {
                return self.append_to_taken(queue, (segment, taken), draft, now_ms).map(Some);
            }
        }
        Ok(None)
    }

    /// Does maintenance of the cache file that writes have left: verifies a part of the index, and
    /// prepares free segments. To be called after a write, when its announcement of a segment is
    /// not needed any more, because copying records needs one.
    #[cold]
    pub(in crate::file) fn keep_up(&self, now_ms: u64) {
        self.area.upkeep.take();
        if let Some(sweeper) = Sweeper::of(self.area, self.owner) {
            sweeper.sweep_on();
        }
        self.prepare(now_ms);
    }

    /// Makes room before it is needed, if nobody else does so. What fails is tried again by the next.
    fn prepare(&self, now_ms: u64) {
        let missing = Ready::of(self.area).missing();
        if missing == 0 {
            return;
        }
        let Some(recycler) = Recycler::lock_if_free(self.area, self.owner) else {
            return;
        };
        let wanted = RESERVED_SEGMENTS as usize + missing;
        if let Ok(free) = recycler.make_free(wanted, now_ms) {
            recycler.offer(&free);
        }
    }
}

impl<G: Ground> Recycler<'_, G> {
    /// Prepares free segments for the next writers, as far as more are free than the recycler
    /// (which empties segments) needs for copies.
    pub(in crate::file) fn offer(&self, free: &[u32]) {
        let ready = Ready::of(self);
        let named: Vec<(u64, u32)> = ready.segments().collect();
        let missing = ready.wanted().saturating_sub(named.len());
        if missing == 0 {
            return;
        }
        let all = 0..self.geometry.numbers.segments;
        let unnamed =
            all.filter(|it| ready.is_ready(*it) && named.iter().all(|(_, other)| other != it));
        let reserved = if mutant::is_on("the-reserve-is-ready") { 0 } else { RESERVED_SEGMENTS };
        let spare = free.iter().copied().filter(|segment| self.is_free(*segment));
        let offered = unnamed.chain(spare.skip(reserved as usize)).take(missing);
        let empty = ready_words().filter(|at| named.iter().all(|(taken, _)| taken != at));
        for (at, segment) in empty.zip(offered) {
            if self.is_free(segment) {
                ready.make_ready(segment);
            }
            self.ground.store(at, u64::from(segment) + 1, Ordering::Relaxed);
        }
    }

    /// Takes all free segments that were prepared for writers back, so that no writer opens them.
    pub(in crate::file) fn revoke_ready(&self) {
        for segment in 0..self.geometry.numbers.segments {
            let entry = self.entry(segment);
            let word = entry.state_word();
            if State::decode(word).kind == SegmentKind::Ready {
                entry.exchange_state(word, State::FREE);
            }
        }
    }
}
