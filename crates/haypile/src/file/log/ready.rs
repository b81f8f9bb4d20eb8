//! Segments that are ready to be opened, so that writers do not wait for each other to make room.
//!
//! Free segments belong to the holder of the recycler's lock, which makes some of them ready: these
//! belong to the first owner that exchanges their state. The header names them, as a hint. One writer
//! alone has none of them, and makes room when it needs it.

use std::sync::atomic::Ordering;

use haypile_policy::rules::file::RESERVED_SEGMENTS;

use crate::file::area::{Area, OpError, Owner};
use crate::file::crash;
use crate::file::format::header;
use crate::file::format::segment::{SegmentKind, State};
use crate::file::log::append::{Appended, Draft};
use crate::file::log::recycler::Recycler;
use crate::file::platform::ground::Ground;
use crate::mutant;

/// Of this number of segments, one is ready at most.
const SEGMENTS_PER_READY: u32 = 64;

impl<G: Ground> Area<G> {
    fn ready_words() -> impl Iterator<Item = u64> {
        (0..header::READY_WORDS).map(|number| header::READY_AT + 8 * number)
    }

    /// The segments that are ready and that the header names.
    pub(in crate::file) fn ready(&self) -> impl Iterator<Item = (u64, u32)> {
        Self::ready_words().filter_map(|at| {
            let word = self.ground.load(at, Ordering::Relaxed);
            let segment = self.segment_named(u32::try_from(word).ok()?)?;
            self.is_ready(segment).then_some((at, segment))
        })
    }

    fn is_ready(&self, segment: u32) -> bool {
        self.entry(segment).state().kind == SegmentKind::Ready
    }

    /// The number of segments that should be ready: two for each owner that writes but one.
    pub(in crate::file) fn ready_wanted(&self) -> usize {
        let most = u64::from(self.geometry.numbers.segments / SEGMENTS_PER_READY);
        let most = usize::try_from(most.min(header::READY_WORDS)).expect("a few");
        (2 * self.count_users().saturating_sub(1)).min(most)
    }

    /// Makes a segment that is ready this owner's, which then nobody else opens or empties. No lock is
    /// needed: its word is another one each time that it is made ready, and the hazard says that the
    /// owner is alive. Returns its state, to be replaced by another; `None`: somebody else has it.
    pub(in crate::file) fn take_ready(&self, owner: Owner, segment: u32) -> Option<State> {
        let word = self.entry(segment).state_word();
        let is_ready = State::decode(word).kind == SegmentKind::Ready;
        is_ready.then(|| self.take(owner, segment, word)).flatten()
    }

    /// Takes a segment whose state this is, unless it is another one by now.
    pub(in crate::file) fn take(&self, owner: Owner, segment: u32, word: u64) -> Option<State> {
        let entry = self.entry(segment);
        self.set_hazard(owner.slot, Some(segment));
        crash::point("take.hazard");
        let sequence = self.next_sequence();
        let taken = State { kind: SegmentKind::Taken, sequence, ..State::FREE };
        let is_taken = if mutant::is_on("ready-segments-are-taken-twice") {
            entry.set_state(taken);
            true
        } else {
            entry.exchange_state(word, taken)
        };
        crash::point("take.taken");
        if !is_taken {
            self.set_hazard(owner.slot, None);
        }
        is_taken.then_some(taken)
    }

    /// Makes a segment ready that was taken and is not needed.
    pub(in crate::file) fn give_back(&self, segment: u32) {
        self.make_ready(segment);
        let word = u64::from(segment) + 1;
        // Where no word is free, the next process that recycles names it.
        let _ = Self::ready_words().find(|at| self.ground.exchange(*at, 0, word).is_ok());
    }

    fn make_ready(&self, segment: u32) {
        let sequence = self.next_sequence();
        let ready = State { kind: SegmentKind::Ready, sequence, ..State::FREE };
        self.entry(segment).set_state(ready);
    }

    /// Opens one of the segments that are ready, with a record as its first; `None`: none is ready.
    pub(in crate::file) fn append_to_ready(
        &self,
        owner: Owner,
        queue: u32,
        draft: &Draft<'_>,
        now_ms: u64,
    ) -> Result<Option<Appended<'_, G>>, OpError> {
        for (at, segment) in self.ready() {
            let _ = self.ground.exchange(at, u64::from(segment) + 1, 0);
            if let Some(taken) = self.take_ready(owner, segment) {
                return self
                    .append_to_taken(owner, queue, (segment, taken), draft, now_ms)
                    .map(Some);
            }
        }
        Ok(None)
    }

    /// Does the work that writes have left: a part of the sweep, and segments for the next ones. To be called
    /// when a write is done: its owner's hazard is needed for the copies of kept records.
    #[cold]
    pub(in crate::file) fn keep_up(&self, owner: Owner, now_ms: u64) {
        self.upkeep.take();
        self.sweep_on(owner);
        self.prepare(owner, now_ms);
    }

    /// Makes room before it is needed, if nobody else does so. What fails is tried again by the next.
    fn prepare(&self, owner: Owner, now_ms: u64) {
        let missing = self.ready_wanted().saturating_sub(self.ready().count());
        if missing == 0 {
            return;
        }
        let Some(recycler) = self.recycler_if_free(owner) else {
            return;
        };
        let wanted = RESERVED_SEGMENTS as usize + missing;
        if let Ok(free) = recycler.make_free(wanted, now_ms) {
            recycler.offer(&free);
        }
    }
}

impl<G: Ground> Recycler<'_, G> {
    /// Makes free segments beyond the reserve ready.
    pub(in crate::file) fn offer(&self, free: &[u32]) {
        let named: Vec<(u64, u32)> = self.ready().collect();
        let missing = self.ready_wanted().saturating_sub(named.len());
        if missing == 0 {
            return;
        }
        let all = 0..self.geometry.numbers.segments;
        let unnamed =
            all.filter(|it| self.is_ready(*it) && named.iter().all(|(_, ready)| ready != it));
        let reserved = if mutant::is_on("the-reserve-is-ready") { 0 } else { RESERVED_SEGMENTS };
        let spare = free.iter().copied().filter(|segment| self.is_free(*segment));
        let offered = unnamed.chain(spare.skip(reserved as usize)).take(missing);
        let empty =
            Area::<G>::ready_words().filter(|at| named.iter().all(|(taken, _)| taken != at));
        for (at, segment) in empty.zip(offered) {
            if self.is_free(segment) {
                self.make_ready(segment);
            }
            self.ground.store(at, u64::from(segment) + 1, Ordering::Relaxed);
        }
    }

    /// Makes what is ready free again: then nobody else takes it.
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
