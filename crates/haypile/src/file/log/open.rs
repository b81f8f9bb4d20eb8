//! Opening segments, and making room for that.

use std::time::Duration;

use haypile_policy::rules::file::{MAX_RECYCLED, RESERVED_SEGMENTS};

use crate::file::area::wait::Wait;
use crate::file::area::{Area, Holder, OpError};
use crate::file::crash;
use crate::file::format::segment::{Live, SegmentKind, State};
use crate::file::log::append::{Appended, Appender, Draft};
use crate::file::log::hazards::Hazards;
use crate::file::log::ready::Ready;
use crate::file::log::recycle::Recycled;
use crate::file::log::recycler::Recycler;
use crate::file::log::reserve::Reserve;
use crate::file::log::survey::Survey;
use crate::file::platform::ground::Ground;

/// A write verifies counts of segments for this time at most: a loss of power can leave all of them wrong,
/// and each that is verified is right for the next write.
const LONGEST_RECOUNT: Duration = Duration::from_millis(20);

impl<'a, G: Ground> Appender<'a, G> {
    /// Opens a segment for a queue and appends a record to it, unless this user's open segment has
    /// room for the record by then. No other user can append to the previous segment in the
    /// meantime, so that no second segment is opened.
    pub(in crate::file) fn append_to_new(
        &self,
        queue: u32,
        draft: &Draft<'_>,
        now_ms: u64,
    ) -> Result<Appended<'a, G>, OpError> {
        // There may be a lane for this owner alone by now.
        self.leave_shared_lane(queue);
        if let Some(appended) = self.append_to_ready(queue, draft, now_ms)? {
            return Ok(appended);
        }
        let recycler = Recycler::lock(self.area, self.owner)?;
        if let Some(appended) = self.append_to_open(queue, draft)? {
            return Ok(appended);
        }
        let mut wait = Wait::default();
        loop {
            let missing = Ready::of(self.area).missing();
            let free = recycler.make_free(RESERVED_SEGMENTS as usize + 1 + missing, now_ms)?;
            // Copies of kept records may have left room in the segment that the lane names.
            let appended = match self.append_to_open(queue, draft)? {
                None => recycler.append_to_free(self, queue, &free, draft, now_ms)?,
                appended => appended,
            };
            if let Some(appended) = appended {
                recycler.offer(&free);
                return Ok(appended);
            }
            // What was kept has taken all that was won.
            wait.again(&self.area.ground, Holder::Running)?;
        }
    }

    /// Opens a segment that this user has taken and appends a record to it; appends to the segment
    /// that was open before instead, if that has room now.
    pub(in crate::file) fn append_to_taken(
        &self,
        queue: u32,
        (segment, taken): (u32, State),
        draft: &Draft<'_>,
        now_ms: u64,
    ) -> Result<Appended<'a, G>, OpError> {
        let prepared = self.prepare_taken(segment, now_ms);
        let lane = match prepared.and_then(|()| self.lock_lane(queue)) {
            Ok(lane) => lane,
            Err(stop) => {
                Ready::of(self.area).give_back(segment);
                self.set_hazard(None);
                return Err(stop);
            }
        };
        let open = lane.segment();
        let bytes = draft.head.bytes();
        let room = open.and_then(|open| Some((open, self.area.room_in(queue, open, bytes)?)));
        if let Some(room) = room {
            Ready::of(self.area).give_back(segment);
            let appended = self.extend(room, draft);
            drop(lane);
            appended.fill(draft);
            return Ok(appended);
        }
        set_open(self.area, queue, (segment, taken));
        // The hazard names the segment from when it was taken until the record is published.
        let appended = self.extend((segment, 0), draft);
        lane.name(segment);
        appended.fill(draft);
        Ok(appended)
    }

    /// Makes a segment that was taken ready to be filled.
    fn prepare_taken(&self, segment: u32, now_ms: u64) -> Result<(), OpError> {
        self.forget_in_lanes(segment)?;
        self.begin_segment(segment, now_ms);
        crash::point("open.begun");
        Ok(())
    }

    /// Makes a segment of the cache file ready to be filled with records. Readers of its old
    /// records notice by the segment's generation, which is raised before anything else is written.
    pub(in crate::file) fn begin_segment(&self, segment: u32, now_ms: u64) {
        self.area.entry(segment).begin(self.area.filling_stamp(), self.area.epoch(), now_ms);
        // No slot leads here, so that nobody changes its count.
        self.area.correct_live(
            self.owner.slot,
            segment,
            self.area.live_sum(segment),
            Live::default(),
        );
    }
}

/// Lets the owner of a prepared segment append to it.
fn set_open<G: Ground>(area: &Area<G>, queue: u32, (segment, taken): (u32, State)) {
    area.entry(segment).set_state(State { kind: SegmentKind::Open, queue, ..taken });
    crash::point("open.opened");
}

impl<'a, G: Ground> Recycler<'a, G> {
    /// Opens the first of these segments that is still free, with a record as its first.
    fn append_to_free(
        &self,
        appender: &Appender<'a, G>,
        queue: u32,
        free: &[u32],
        draft: &Draft<'_>,
        now_ms: u64,
    ) -> Result<Option<Appended<'a, G>>, OpError> {
        for segment in free {
            if let Some(taken) = self.take_free(*segment) {
                let taken = (*segment, taken);
                return appender.append_to_taken(queue, taken, draft, now_ms).map(Some);
            }
        }
        Ok(None)
    }

    /// Takes a free segment for this user of the cache file, so that no other user opens it, and
    /// announces that. Returns the segment's state, to be replaced by another; `None` if the
    /// segment is not free any more.
    pub(in crate::file) fn take_free(&self, segment: u32) -> Option<State> {
        if !self.is_free(segment) {
            return self.appender().take_ready(segment);
        }
        // Nobody else changes the state of a free segment.
        self.appender().take(segment, self.entry(segment).state_word())
    }

    /// Opens a free segment for a queue, so that only this user of the cache file appends to it;
    /// returns `false` if the segment is not free any more.
    pub(in crate::file) fn begin(
        &self,
        queue: u32,
        segment: u32,
        now_ms: u64,
    ) -> Result<bool, OpError> {
        let Some(taken) = self.take_free(segment) else {
            return Ok(false);
        };
        let prepared = self.appender().prepare_taken(segment, now_ms);
        if prepared.is_ok() {
            set_open(self, queue, (segment, taken));
        } else {
            self.entry(segment).free();
        }
        // Nobody else empties segments now.
        self.appender().set_hazard(None);
        prepared.map(|()| true)
    }

    /// Frees the segments that were taken by owners that have died since.
    fn free_abandoned(&self, survey: &mut Survey) {
        for segment in std::mem::take(&mut survey.abandoned) {
            let entry = self.entry(segment);
            let word = entry.state_word();
            let state = State::decode(word);
            // In this order: while its owner is alive, a segment has its hazard.
            let is_abandoned = state.kind == SegmentKind::Taken && !Hazards::of(self).name(segment);
            let marked = State { kind: SegmentKind::Recycling, ..state };
            if is_abandoned && entry.exchange_state(word, marked) {
                entry.free();
                survey.free.push(segment);
            }
        }
    }

    /// Empties segments until this number of them is free, or as many as one write may empty, and
    /// returns the free segments.
    pub(in crate::file) fn make_free(
        &self,
        wanted: usize,
        now_ms: u64,
    ) -> Result<Vec<u32>, OpError> {
        let mut reserve = Reserve::default();
        let free = self.recycle_until(wanted, &mut reserve, now_ms);
        self.publish(&reserve);
        let mut free = free?;
        // Copies of kept records may have taken a segment that was free when it was surveyed.
        free.retain(|segment| self.is_free(*segment));
        Ok(free)
    }

    fn recycle_until(
        &self,
        wanted: usize,
        reserve: &mut Reserve,
        now_ms: u64,
    ) -> Result<Vec<u32>, OpError> {
        let mut survey = self.survey(now_ms);
        self.free_abandoned(&mut survey);
        if survey.free.len() < wanted {
            self.release_idle_lanes();
        }
        let (mut won, mut has_room) = (0, true);
        let (mut hindrance, mut wait) = (None, Wait::default());
        let mut recounting_since = None;
        loop {
            if survey.free.len() >= wanted || won == MAX_RECYCLED {
                return Ok(survey.free);
            }
            let Some(choice) = self.victim(&survey, has_room) else {
                // The reserve may be enough.
                if !survey.free.is_empty() {
                    return Ok(survey.free);
                }
                // Values that are read in place are not waited for.
                wait.again(&self.ground, hindrance.take().ok_or(OpError::Full)?)?;
                (survey, has_room) = (self.survey(now_ms), true);
                continue;
            };
            self.note_progress();
            let segment = choice.segment;
            let allowed_bytes = self.rules().allowed_bytes(won);
            match self.recycle(choice, allowed_bytes, reserve, now_ms) {
                Ok(Recycled::Emptied | Recycled::Renewed) => {
                    won += 1;
                    self.survey_recycled(&mut survey, segment);
                }
                // Then something has to leave.
                Ok(Recycled::NoRoom) if has_room => has_room = false,
                Ok(Recycled::Miscounted(live_bytes)) => {
                    survey.recount(segment, live_bytes);
                    let now = self.ground.now();
                    if now.saturating_sub(*recounting_since.get_or_insert(now)) >= LONGEST_RECOUNT {
                        survey.distrust();
                        has_room = false;
                    }
                }
                Ok(Recycled::InUse | Recycled::NoRoom) => {
                    hindrance.get_or_insert(Holder::Running);
                    survey.avoid(segment);
                }
                Err(OpError::Busy(holder)) => {
                    hindrance = Some(holder);
                    survey.avoid(segment);
                }
                Err(stop) => return Err(stop),
            }
        }
    }
}
