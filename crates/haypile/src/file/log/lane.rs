//! Lanes: where writers append. Each has a lock and an open segment.
//!
//! An owner appends to a lane of its own for each queue, as far as there are enough of them, so that
//! writers do not wait for each other and change no line that another one changes. That is only a
//! preference: whoever has the lock of a lane may append there.

use std::sync::atomic::Ordering;

use crate::file::area::lock::Held;
use crate::file::area::wait::Wait;
use crate::file::area::{Area, Holder, OpError, Owner};
use crate::file::crash;
use crate::file::format::header;
use crate::file::format::lane::{self, LaneUse};
use crate::file::format::owner_slot::LANES;
use crate::file::format::segment::{SegmentKind, State};
use crate::file::format::slot::LockWord;
use crate::file::log::recycler::Recycler;
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::mutant;

/// Halves of the word that says when a lane was last seen to change.
const SEEN_MASK: u64 = 0xFFFF_FFFF;
/// The users of lanes that are tested for death at most, when one is chosen: each costs a system
/// call.
const DEATHS_TESTED: usize = 8;

/// Whether a lane of this use is one of a queue.
fn is_for(usage: Option<LaneUse>, queue: u32) -> bool {
    usage.is_some_and(|usage| usage.queue == queue)
}

impl<G: Ground> Area<G> {
    fn lanes(&self) -> std::ops::Range<u32> {
        0..self.geometry.numbers.lanes
    }

    #[inline]
    fn use_of(&self, lane: u32) -> Option<LaneUse> {
        let at = self.geometry.lane(lane) + lane::USE;
        LaneUse::decode(self.ground.load(at, Ordering::Relaxed))
    }

    /// The segment that a lane names.
    pub(in crate::file) fn named_in(&self, lane: u32) -> Option<u32> {
        // Who sees another name sees the hazards of those who appended before.
        let order = mutant::order("name-read", Ordering::Acquire);
        let word = LockWord(self.ground.load(self.geometry.lane(lane), order));
        self.segment_named(word.payload())
    }

    /// The segment that is open in a lane.
    fn open_in(&self, lane: u32) -> Option<u32> {
        // Only its own word makes it open: a damaged lane would else keep other segments from ever
        // being recycled.
        self.named_in(lane).filter(|segment| self.entry(*segment).state().kind == SegmentKind::Open)
    }

    /// The segments that are open, each in its lane.
    pub(in crate::file) fn open_segments(&self) -> impl Iterator<Item = u32> {
        self.lanes().filter_map(|lane| self.open_in(lane))
    }

    /// Whether a segment is open in some lane.
    pub(in crate::file) fn is_open(&self, segment: u32) -> bool {
        self.open_segments().any(|open| open == segment)
    }

    /// Whether some lane names a segment.
    pub(in crate::file) fn is_named(&self, segment: u32) -> bool {
        self.lanes().any(|lane| self.named_in(lane) == Some(segment))
    }

    /// The owners that use lanes.
    pub(in crate::file) fn count_users(&self) -> usize {
        let mut users: Vec<u32> =
            self.lanes().filter_map(|lane| self.use_of(lane)).map(|usage| usage.user.0).collect();
        users.sort_unstable();
        users.dedup();
        users.len()
    }

    /// Whether the lane of an owner for a queue is another owner's.
    pub(in crate::file) fn shares_lane(&self, owner: Owner, queue: u32) -> bool {
        let usage = self.remembered_lane(owner, queue).and_then(|lane| self.use_of(lane));
        usage.is_some_and(|usage| usage.user != owner.token)
    }

    /// Lets an owner that shares a lane choose again.
    pub(in crate::file) fn leave_shared_lane(&self, owner: Owner, queue: u32) {
        if self.shares_lane(owner, queue) {
            self.remember_lane(owner, queue, None);
        }
    }

    fn lanes_word(&self, owner: Owner) -> u64 {
        self.geometry.owner_slot(owner.slot) + LANES
    }

    /// The lane that an owner last used for a queue.
    #[inline]
    fn remembered_lane(&self, owner: Owner, queue: u32) -> Option<u32> {
        let word = self.ground.load(self.lanes_word(owner), Ordering::Relaxed);
        lane::remembered(word, queue).filter(|lane| *lane < self.geometry.numbers.lanes)
    }

    fn remember_lane(&self, owner: Owner, queue: u32, lane: Option<u32>) {
        let at = self.lanes_word(owner);
        let word = self.ground.load(at, Ordering::Relaxed);
        self.ground.store(at, lane::remember(word, queue, lane), IN_ORDER);
    }

    /// Locks a lane of a queue, the one that this owner used before if it can.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn lock_lane(
        &self,
        owner: Owner,
        queue: u32,
    ) -> Result<Held<'_, G>, OpError> {
        if let Some(lane) = self.remembered_lane(owner, queue)
            && let Ok(held) = self.lock(owner, self.geometry.lane(lane))
            && is_for(self.use_of(lane), queue)
        {
            return Ok(held);
        }
        // As in `lock`.
        let held = self.choose_lane(owner, queue)?;
        Ok(held)
    }

    #[cold]
    fn choose_lane(&self, owner: Owner, queue: u32) -> Result<Held<'_, G>, OpError> {
        let mut wait = Wait::default();
        loop {
            match self.try_choose_lane(owner, queue) {
                Err(OpError::Busy(holder)) => wait.again(&self.ground, holder)?,
                outcome => return outcome,
            }
        }
    }

    /// One attempt, which fails where others take lanes at the same time.
    fn try_choose_lane(&self, owner: Owner, queue: u32) -> Result<Held<'_, G>, OpError> {
        let seen: Vec<(u32, Option<LaneUse>)> =
            self.lanes().map(|lane| (lane, self.use_of(lane))).collect();
        let mine = Some(LaneUse { queue, user: owner.token });
        let own = seen.iter().filter(|(_, usage)| *usage == mine);
        let others = seen.iter().filter(|(_, usage)| is_for(*usage, queue) && *usage != mine);
        let dead = others.clone().take(DEATHS_TESTED);
        let dead = dead.filter(|(_, usage)| usage.is_none_or(|usage| !self.is_alive(usage.user)));
        let has_lane = |queue: u32| seen.iter().any(|(_, usage)| is_for(*usage, queue));
        let without =
            (0..self.geometry.queues()).filter(|other| *other != queue && !has_lane(*other));
        // One is left for each queue that has none.
        let spared = if has_lane(queue) { without.count() } else { 0 };
        let unused = seen.iter().filter(|(_, usage)| usage.is_none()).skip(spared);
        for (lane, usage) in own.chain(dead).chain(unused) {
            if let Some(held) = self.take_lane(owner, queue, *lane, *usage) {
                return Ok(held);
            }
        }
        // There are more owners and queues than lanes: this one shares a lane from now on.
        let mut others: Vec<&(u32, Option<LaneUse>)> = others.collect();
        if others.is_empty() {
            return self.take_from_another_queue(owner, queue, &seen);
        }
        let from = owner.slot as usize % others.len();
        others.rotate_left(from);
        let mut stop = OpError::Busy(Holder::Running);
        for (lane, _) in others {
            match self.lock(owner.hurried(), self.geometry.lane(*lane)) {
                Ok(held) if is_for(self.use_of(*lane), queue) => {
                    self.remember_lane(owner, queue, Some(*lane));
                    return Ok(held);
                }
                Ok(_) => {}
                Err(busy) => stop = busy,
            }
        }
        Err(stop)
    }

    /// Makes a lane one of this owner, unless somebody holds its lock or has taken it since.
    fn take_lane(
        &self,
        owner: Owner,
        queue: u32,
        lane: u32,
        seen: Option<LaneUse>,
    ) -> Option<Held<'_, G>> {
        let at = self.geometry.lane(lane);
        let mut held = self.lock_if_free(owner, at)?;
        if self.use_of(lane) != seen {
            return None;
        }
        if seen.is_none_or(|usage| usage.queue != queue) {
            // Else what is appended would stand among records of another queue.
            self.empty_lane(&mut held);
        }
        self.ground.store(at + lane::USE, LaneUse { queue, user: owner.token }.encode(), IN_ORDER);
        crash::point("lane.taken");
        self.remember_lane(owner, queue, Some(lane));
        Some(held)
    }

    /// Takes a lane from a queue that has several: there are as many lanes as queues at least. Where
    /// damage has made that wrong, any.
    fn take_from_another_queue(
        &self,
        owner: Owner,
        queue: u32,
        seen: &[(u32, Option<LaneUse>)],
    ) -> Result<Held<'_, G>, OpError> {
        let count_of = |of: u32| seen.iter().filter(|(_, usage)| is_for(*usage, of)).count();
        let is_spare = |(_, usage): &&(u32, Option<LaneUse>)| {
            usage.is_some_and(|usage| count_of(usage.queue) > 1)
        };
        let spare = seen.iter().filter(is_spare);
        spare
            .chain(seen)
            .find_map(|(lane, usage)| self.take_lane(owner, queue, *lane, *usage))
            .ok_or(OpError::Busy(Holder::Running))
    }

    /// Lets a lane name a segment that was begun for a queue, and seals the one that it named.
    pub(in crate::file) fn name(
        &self,
        owner: Owner,
        queue: u32,
        segment: u32,
    ) -> Result<(), OpError> {
        self.name_in(self.lock_lane(owner, queue)?, segment);
        Ok(())
    }

    /// The same in a lane whose lock is held.
    pub(in crate::file) fn name_in(&self, mut lane: Held<'_, G>, segment: u32) {
        let old = self.segment_named(lane.payload());
        lane.set_payload(segment + 1);
        crash::point("open.named");
        drop(lane);
        if let Some(old) = old.filter(|old| *old != segment) {
            self.seal(old);
        }
        crash::point("open.sealed");
    }

    /// Lets a lane name no segment, and seals the one that it named.
    pub(in crate::file) fn empty_lane(&self, lane: &mut Held<'_, G>) {
        let named = self.segment_named(lane.payload());
        lane.set_payload(0);
        crash::point("lane.emptied");
        if let Some(segment) = named {
            self.seal(segment);
        }
    }

    /// Lets lanes forget a segment that is about to be filled: a loss of power can leave one that
    /// names it, and others would append there as well.
    pub(in crate::file) fn forget_in_lanes(
        &self,
        owner: Owner,
        segment: u32,
    ) -> Result<(), OpError> {
        for lane in self.lanes() {
            if self.named_in(lane) == Some(segment) {
                let mut held = self.lock(owner, self.geometry.lane(lane))?;
                if self.segment_named(held.payload()) == Some(segment) {
                    held.set_payload(0);
                }
            }
        }
        Ok(())
    }

    /// Says of a segment that nothing is appended to it any more, if nobody empties it already.
    pub(in crate::file) fn seal(&self, segment: u32) {
        let entry = self.entry(segment);
        let word = entry.state_word();
        let state = State::decode(word);
        if state.kind == SegmentKind::Open {
            entry.exchange_state(word, State { kind: SegmentKind::Sealed, ..state });
        }
    }
}

impl<G: Ground> Recycler<'_, G> {
    /// Seals what is open in lanes that nobody has appended to for a while, for room is wanted: their
    /// owners are dead, or write nothing of that queue. Under the recycler's lock.
    pub(in crate::file) fn release_idle_lanes(&self) {
        let now = self.ground.load(header::SEQUENCE, Ordering::Relaxed) & SEEN_MASK;
        let queue_of = |lane| self.use_of(lane).map(|usage| usage.queue);
        for lane in self.lanes() {
            let at = self.geometry.lane(lane);
            let Some(segment) = self.named_in(lane) else { continue };
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
            if self.lanes().filter(|other| queue_of(*other) == queue).count() < 2 {
                continue;
            }
            let Some(mut held) = self.lock_if_free(self.owner, at) else { continue };
            if held.payload() == segment + 1 && self.entry(segment).used() == used {
                held.set_payload(0);
                self.ground.store(at + lane::USE, 0, IN_ORDER);
                crash::point("lane.released");
                self.seal(segment);
            }
        }
    }

    /// Seals whatever is open in lanes that nobody holds, so that it can be moved.
    pub(in crate::file) fn seal_all_lanes(&self) {
        for lane in self.lanes() {
            if let Some(mut held) = self.lock_if_free(self.owner, self.geometry.lane(lane)) {
                self.empty_lane(&mut held);
            }
        }
    }
}
