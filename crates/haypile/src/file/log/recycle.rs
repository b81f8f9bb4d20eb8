//! Emptying segments, so that they can be refilled.

use std::sync::atomic::Ordering;

use haypile_policy::rules::file::{BytesByFrequency, Keeping};

use crate::file::area::OpError;
use crate::file::crash;
use crate::file::format::counter::Counter;
use crate::file::format::segment::{MAIN, SegmentKind, State};
use crate::file::format::slot::Slot;
use crate::file::index::bucket::Bucket;
use crate::file::index::removals::Removals;
use crate::file::log::candidates::{AHEAD, Candidate, Dropped, Kept};
use crate::file::log::ghosts::Ghosts;
use crate::file::log::hazards::Hazards;
use crate::file::log::lane::Lanes;
use crate::file::log::recycler::Recycler;
use crate::file::log::reserve::Reserve;
use crate::file::log::survey::{Cause, Choice, queue_of};
use crate::file::platform::ground::Ground;
use crate::mutant;
use crate::stats::Event;

/// The outcome of recycling (emptying) a segment, or those of one long record: emptied, or left for
/// a reason, such as that a process uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Recycled {
    /// The segment was emptied, and is free.
    Emptied,
    /// The segment is a run, and stays where it is as the youngest of its queue.
    Renewed,
    /// A process uses the segment.
    InUse,
    /// The records of the segment that have to be kept do not fit elsewhere.
    NoRoom,
    /// The segment has this number of live bytes, and would not have been chosen with them; its count was wrong.
    Miscounted(u64),
}

/// The records of a segment that left, and those that were kept.
#[derive(Debug, Default)]
struct Tally {
    evicted: u64,
    expired: u64,
    reinserted: u64,
}

impl<G: Ground> Recycler<'_, G> {
    /// Empties a segment of the cache file, after copying at most `allowed_bytes` of its records
    /// that are worth keeping.
    pub(in crate::file) fn recycle(
        &self,
        choice: Choice,
        allowed_bytes: u64,
        reserve: &mut Reserve,
        now_ms: u64,
    ) -> Result<Recycled, OpError> {
        let segment = choice.segment;
        // It may have been chosen before.
        if reserve.contains(segment) || Lanes::of(self).have_open(segment) {
            return Ok(Recycled::InUse);
        }
        let Some(state) = self.begin_recycling(segment) else {
            return Ok(Recycled::InUse);
        };
        let mut tally = Tally::default();
        let recycled = self.move_or_drop(choice, allowed_bytes, reserve, &mut tally, now_ms);
        self.count(self.owner.counting(), Event::Eviction, tally.evicted);
        self.count(self.owner.counting(), Event::Expired, tally.expired);
        self.count(self.owner.counting(), Counter::Reinserted, tally.reinserted);
        match recycled {
            Ok(Recycled::Emptied) => self.free_recycled(segment),
            Ok(Recycled::Renewed) => self.renew_run(segment, state),
            Ok(Recycled::InUse | Recycled::NoRoom | Recycled::Miscounted(_)) | Err(_) => {
                self.end_recycling(segment, state);
            }
        }
        recycled
    }

    /// Keeps the record of a run if it was used, which is paid for by that; says whether it did.
    fn keep_run(
        &self,
        state: State,
        candidates: &[Candidate],
        now_ms: u64,
    ) -> Result<bool, OpError> {
        let [candidate] = candidates else {
            return Ok(false);
        };
        let kept = self.rules().kept_frequency(queue_of(state), candidate.frequency());
        let Some(frequency) = kept.filter(|_| candidate.expires_ms > now_ms) else {
            return Ok(false);
        };
        let mut bucket = Bucket::lock(self, self.owner, candidate.hash)?;
        let Some((at, _)) = bucket.find_slot(candidate.slot) else {
            return Ok(false);
        };
        bucket.put(at, Slot::new(candidate.hash, frequency.into(), candidate.slot.offset()));
        Ok(true)
    }

    /// Makes a run the youngest of the main queue, where it is: what has segments of its own need not
    /// be copied to go round again.
    fn renew_run(&self, segment: u32, state: State) {
        let sequence = self.next_sequence();
        self.entry(segment).set_state(State {
            kind: SegmentKind::Sealed,
            queue: MAIN,
            sequence,
            ..state
        });
    }

    /// Empties a segment of the cache file, with all segments of the long record that it is a part
    /// of.
    pub(in crate::file) fn empty(
        &self,
        segment: u32,
        cause: Cause,
        reserve: &mut Reserve,
        now_ms: u64,
    ) -> Result<Recycled, OpError> {
        let state = self.entry(segment).state();
        let is_member = state.kind == SegmentKind::Member;
        let head = if is_member { state.head_of(segment) } else { Some(segment) };
        let Some(head) = head else {
            // Something garbled the file since this segment was chosen.
            return Ok(Recycled::InUse);
        };
        // Room was planned for what it is counted to hold.
        let most_bytes = self.live_of(head).bytes;
        self.recycle(Choice { segment: head, cause, most_bytes }, 0, reserve, now_ms)
    }

    /// Marks a segment as being recycled (emptied), and returns its previous state; `None` if a
    /// process appends to it or reads values of it in place. Others may be opening or sealing it:
    /// of them and this one, one gets its state.
    pub(in crate::file) fn begin_recycling(&self, segment: u32) -> Option<State> {
        let entry = self.entry(segment);
        let word = entry.state_word();
        let state = State::decode(word);
        if !matches!(state.kind, SegmentKind::Open | SegmentKind::Sealed | SegmentKind::Recycling) {
            return None;
        }
        // Whoever sees the word that was read before does not exchange this one.
        let marked =
            State { kind: SegmentKind::Recycling, sequence: self.next_sequence(), ..state };
        if !entry.exchange_state(word, marked) {
            return None;
        }
        crash::point("recycle.marked");
        // A process that pins reads the state after it has the lock; this one asks for the lock
        // after it has set the state.
        self.ground.fence(mutant::order("fence-before-pins-are-asked-for", Ordering::SeqCst));
        let is_pinned = self.ground.is_pinned(segment) && !mutant::is_on("pins-ignored");
        // What is sealed is not named any more, and the hazards of its appends were set before. What was marked
        // by a process that has died was perhaps open, and named only after that process had looked.
        let may_be_named = match state.kind {
            SegmentKind::Recycling => !mutant::is_on("what-is-marked-is-taken-for-sealed"),
            kind => kind == SegmentKind::Open,
        };
        let is_held = if may_be_named {
            Hazards::of(self).or_lanes_name(segment)
        } else {
            Hazards::of(self).name(segment)
        };
        if is_held || is_pinned {
            entry.exchange_state(marked.encode(), state);
            return None;
        }
        Some(state)
    }

    /// Restores the state of a segment that was marked as being recycled, but that was not emptied.
    pub(in crate::file) fn end_recycling(&self, segment: u32, state: State) {
        self.entry(segment).set_state(State { kind: SegmentKind::Sealed, ..state });
    }

    pub(in crate::file) fn free_recycled(&self, segment: u32) {
        crash::point("recycle.emptied");
        // The members of a run are free as soon as its head is not a run.
        self.entry(segment).free();
        crash::point("recycle.freed");
    }

    /// Moves or drops every record of a segment.
    fn move_or_drop(
        &self,
        Choice { segment, cause, most_bytes }: Choice,
        allowed_bytes: u64,
        reserve: &mut Reserve,
        tally: &mut Tally,
        now_ms: u64,
    ) -> Result<Recycled, OpError> {
        let sum = self.live_sum(segment);
        let state = self.entry(segment).state();
        let candidates = self.candidates(segment, state)?;
        let is_current = self.entry(segment).epoch() == self.epoch();
        let is_live = |candidate: &Candidate| is_current && candidate.expires_ms > now_ms;
        let live = candidates.iter().filter(|candidate| is_live(candidate));
        let live_bytes: u64 = live.map(Candidate::bytes).sum();
        let is_run = state.run > 1;
        // A run that is chosen for the little it holds holds nothing, as far as is known.
        let most_bytes = if is_run && cause == Cause::Sparse { 0 } else { most_bytes };
        let is_miscounted = match cause {
            Cause::Dead => live_bytes > 0,
            Cause::Sparse if is_run && mutant::is_on("a-published-run-is-dropped-as-dead") => false,
            Cause::Sparse => live_bytes > most_bytes,
            Cause::Room => false,
        };
        if is_miscounted {
            if !mutant::is_on("wrong-count-stays") {
                self.correct_count(segment, sum, &candidates)?;
            }
            return Ok(Recycled::Miscounted(live_bytes));
        }
        if is_run
            && live_bytes > 0
            && cause == Cause::Room
            && allowed_bytes > 0
            && self.keep_run(state, &candidates, now_ms)?
        {
            return Ok(Recycled::Renewed);
        }
        let is_of_use = |candidate: &Candidate| !is_run && is_live(candidate);
        let mut bytes = BytesByFrequency::default();
        for candidate in candidates.iter().filter(|candidate| is_of_use(candidate)) {
            bytes[usize::from(candidate.frequency())] += candidate.bytes();
        }
        let mut keeping = Keeping::new(self.rules(), queue_of(state), &bytes, allowed_bytes);
        let queue = if cause == Cause::Sparse { state.queue } else { MAIN };
        let may_evict_new = cause == Cause::Room && state.queue != MAIN;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for (number, candidate) in candidates.iter().enumerate() {
            self.note_progress_of(number);
            if let Some(ahead) = candidates.get(number + AHEAD) {
                Removals::of(self, ahead.hash).prefetch();
                if may_evict_new {
                    Ghosts::of(self).prefetch(ahead.hash);
                }
            }
            let kept_frequency = match cause {
                _ if !is_of_use(candidate) => None,
                Cause::Sparse | Cause::Dead => Some(candidate.frequency()),
                Cause::Room => keeping.keep(candidate.frequency(), candidate.bytes()),
            };
            let kept = match kept_frequency {
                Some(frequency) => {
                    self.keep(candidate, queue, frequency, reserve, now_ms, (&mut key, &mut value))?
                }
                None => Kept::No,
            };
            match (kept, cause) {
                (Kept::Yes, _) => {
                    tally.reinserted += 1;
                    continue;
                }
                // What is sparse is not dropped for want of room.
                (Kept::NoRoom, Cause::Sparse) if !mutant::is_on("sparse-dropped-without-room") => {
                    return Ok(Recycled::NoRoom);
                }
                (Kept::No | Kept::NoRoom, _) => {}
            }
            match self.drop_entry(candidate, is_current, now_ms)? {
                Dropped::Evicted => {
                    tally.evicted += 1;
                    if state.queue != MAIN {
                        Ghosts::of(self).remember(candidate.hash, candidate.bytes());
                    }
                }
                Dropped::Expired => tally.expired += 1,
                Dropped::Before => {}
                Dropped::Touched => return Ok(Recycled::InUse),
            }
        }
        Ok(Recycled::Emptied)
    }
}
