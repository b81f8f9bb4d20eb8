//! An owner's choice of the lane that it appends to.

use crate::file::area::wait::Wait;
use crate::file::area::{Holder, OpError};
use crate::file::crash;
use crate::file::format::lane::{self, LaneUse};
use crate::file::log::append::Appender;
use crate::file::log::lane::{Lanes, LockedLane};
use crate::file::platform::ground::Ground;

/// The users of lanes that are tested for death at most, when one is chosen: each costs a system
/// call.
const DEATHS_TESTED: usize = 8;

/// Returns whether a lane of this use is one of a queue.
fn is_for(usage: Option<LaneUse>, queue: u32) -> bool {
    usage.is_some_and(|usage| usage.queue == queue)
}

impl<'a, G: Ground> Appender<'a, G> {
    /// Returns whether another user of the cache file appends to the same open segment of a queue
    /// (in the same append lane) as this user.
    pub(in crate::file) fn shares_lane(&self, queue: u32) -> bool {
        let usage = self.remembered_lane(queue).and_then(|lane| Lanes::of(self.area).use_of(lane));
        usage.is_some_and(|usage| usage.user != self.owner.token)
    }

    /// Makes this user of the cache file choose another append lane (open segment) of a queue for
    /// its next append, if it shares its present one.
    pub(in crate::file) fn leave_shared_lane(&self, queue: u32) {
        if self.shares_lane(queue) {
            self.remember_lane(queue, None);
        }
    }

    /// Returns the lane that the owner last used for a queue.
    #[inline]
    fn remembered_lane(&self, queue: u32) -> Option<u32> {
        let word = self.area.owner_slot(self.owner.slot).lanes();
        lane::remembered(word, queue).filter(|lane| *lane < self.area.geometry.numbers.lanes)
    }

    fn remember_lane(&self, queue: u32, lane: Option<u32>) {
        let slot = self.area.owner_slot(self.owner.slot);
        slot.set_lanes(lane::remember(slot.lanes(), queue, lane));
    }

    /// Locks an append lane (an open segment to append to) of a queue for this user of the cache
    /// file: the lane that it used before, if possible.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn lock_lane(&self, queue: u32) -> Result<LockedLane<'a, G>, OpError> {
        if let Some(lane) = self.remembered_lane(queue)
            && let Ok(held) = LockedLane::lock(self.area, self.owner, lane)
            && is_for(held.usage(), queue)
        {
            return Ok(held);
        }
        // As in `lock`.
        let held = self.choose_lane(queue)?;
        Ok(held)
    }

    #[cold]
    fn choose_lane(&self, queue: u32) -> Result<LockedLane<'a, G>, OpError> {
        let mut wait = Wait::default();
        loop {
            match self.try_choose_lane(queue) {
                Err(OpError::Busy(holder)) => wait.again(&self.area.ground, holder)?,
                outcome => return outcome,
            }
        }
    }

    /// Tries once to choose a lane. It fails where others take lanes at the same time.
    fn try_choose_lane(&self, queue: u32) -> Result<LockedLane<'a, G>, OpError> {
        let lanes = Lanes::of(self.area);
        let seen: Vec<(u32, Option<LaneUse>)> =
            lanes.numbers().map(|lane| (lane, lanes.use_of(lane))).collect();
        let mine = Some(LaneUse { queue, user: self.owner.token });
        let own = seen.iter().filter(|(_, usage)| *usage == mine);
        let others = seen.iter().filter(|(_, usage)| is_for(*usage, queue) && *usage != mine);
        let dead = others.clone().take(DEATHS_TESTED);
        let dead =
            dead.filter(|(_, usage)| usage.is_none_or(|usage| !self.area.is_alive(usage.user)));
        let has_lane = |queue: u32| seen.iter().any(|(_, usage)| is_for(*usage, queue));
        let without =
            (0..self.area.geometry.queues()).filter(|other| *other != queue && !has_lane(*other));
        // One is left for each queue that has none.
        let spared = if has_lane(queue) { without.count() } else { 0 };
        let unused = seen.iter().filter(|(_, usage)| usage.is_none()).skip(spared);
        for (lane, usage) in own.chain(dead).chain(unused) {
            if let Some(held) = self.take_lane(queue, *lane, *usage) {
                return Ok(held);
            }
        }
        // There are more owners and queues than lanes: this one shares a lane from now on.
        let mut others: Vec<&(u32, Option<LaneUse>)> = others.collect();
        if others.is_empty() {
            return self.take_from_another_queue(queue, &seen);
        }
        let from = self.owner.slot as usize % others.len();
        others.rotate_left(from);
        let mut stop = OpError::Busy(Holder::Running);
        for (lane, _) in others {
            match LockedLane::lock(self.area, self.owner.hurried(), *lane) {
                Ok(held) if is_for(held.usage(), queue) => {
                    self.remember_lane(queue, Some(*lane));
                    return Ok(held);
                }
                Ok(_) => {}
                Err(busy) => stop = busy,
            }
        }
        Err(stop)
    }

    /// Makes a lane one of this owner, unless somebody holds its lock or has taken it since.
    fn take_lane(&self, queue: u32, lane: u32, seen: Option<LaneUse>) -> Option<LockedLane<'a, G>> {
        let mut held = LockedLane::lock_if_free(self.area, self.owner, lane)?;
        if held.usage() != seen {
            return None;
        }
        if seen.is_none_or(|usage| usage.queue != queue) {
            // Else what is appended would stand among records of another queue.
            held.empty();
        }
        held.set_usage(Some(LaneUse { queue, user: self.owner.token }));
        crash::point("lane.taken");
        self.remember_lane(queue, Some(lane));
        Some(held)
    }

    /// Takes a lane from a queue that has several: there are as many lanes as queues at least. Where
    /// damage has made that wrong, any.
    fn take_from_another_queue(
        &self,
        queue: u32,
        seen: &[(u32, Option<LaneUse>)],
    ) -> Result<LockedLane<'a, G>, OpError> {
        let count_of = |of: u32| seen.iter().filter(|(_, usage)| is_for(*usage, of)).count();
        let is_spare = |(_, usage): &&(u32, Option<LaneUse>)| {
            usage.is_some_and(|usage| count_of(usage.queue) > 1)
        };
        let spare = seen.iter().filter(is_spare);
        spare
            .chain(seen)
            .find_map(|(lane, usage)| self.take_lane(queue, *lane, *usage))
            .ok_or(OpError::Busy(Holder::Running))
    }

    /// Makes writers of a queue's append lane append to a new segment, and seals the lane's
    /// previous segment.
    pub(in crate::file) fn name(&self, queue: u32, segment: u32) -> Result<(), OpError> {
        self.lock_lane(queue)?.name(segment);
        Ok(())
    }

    /// Removes a segment that is about to be filled from all append lanes, so that no other writer
    /// appends to it: a loss of power can leave it in a lane.
    pub(in crate::file) fn forget_in_lanes(&self, segment: u32) -> Result<(), OpError> {
        let lanes = Lanes::of(self.area);
        for lane in lanes.numbers() {
            if lanes.segment_of(lane) == Some(segment) {
                let mut held = LockedLane::lock(self.area, self.owner, lane)?;
                if held.segment() == Some(segment) {
                    held.forget();
                }
            }
        }
        Ok(())
    }
}
