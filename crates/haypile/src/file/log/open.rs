//! Opening segments, and making room for that.

use crate::file::area::{Area, Holder, OpError, Owner};
use crate::file::crash;
use crate::file::format::header;
use crate::file::format::segment::{Live, SegmentKind, State};
use crate::file::log::recycle::Recycled;
use crate::file::log::recycler::Recycler;
use crate::file::log::reserve::Reserve;
use crate::file::log::survey::Survey;
use crate::file::platform::ground::Ground;
use crate::file::rules::{MAX_RECYCLED, RESERVED_SEGMENTS};

/// A write chooses another segment at most this often, where the one chosen is in use.
pub(in crate::file) const MOST_AVOIDED: usize = 64;

impl<G: Ground> Area<G> {
    /// Opens a segment for a queue, unless there is one with enough room by now.
    pub(in crate::file) fn open_segment(
        &self,
        me: Owner,
        queue: u32,
        bytes: u64,
        now_ms: u64,
    ) -> Result<(), OpError> {
        self.sweep.set_due();
        // There may be a lane for this owner alone by now.
        self.leave_shared_lane(me, queue);
        if self.open_ready(me, queue, bytes, now_ms)? {
            self.prepare(me, now_ms);
            return Ok(());
        }
        let recycler = self.lock_recycler(me)?;
        if self.has_open_room(me, queue, bytes) {
            return Ok(());
        }
        let missing = self.ready_wanted().saturating_sub(self.ready().count());
        let free = recycler.make_free(RESERVED_SEGMENTS as usize + 1 + missing, now_ms)?;
        // Copies of kept records may have left room in a segment that the lane names.
        if self.has_open_room(me, queue, bytes) {
            recycler.offer(&free);
            return Ok(());
        }
        for (at, segment) in free.iter().enumerate() {
            if let Some(taken) = recycler.take_free(*segment) {
                self.open_taken(recycler.me, queue, (*segment, taken), bytes, now_ms)?;
                recycler.offer(&free[at + 1..]);
                return Ok(());
            }
        }
        Err(OpError::Busy(Holder::Running))
    }

    /// Opens a segment that this owner has taken, and lets its lane name it, unless the lane has got room
    /// in the meantime.
    pub(in crate::file) fn open_taken(
        &self,
        me: Owner,
        queue: u32,
        (segment, taken): (u32, State),
        bytes: u64,
        now_ms: u64,
    ) -> Result<(), OpError> {
        let opened = self.name_taken(me, queue, (segment, taken), bytes, now_ms);
        if opened != Ok(true) {
            self.give_back(segment);
        }
        // A process that sees no hazard sees the name.
        self.set_hazard(me.place, None);
        opened.map(|_| ())
    }

    fn name_taken(
        &self,
        me: Owner,
        queue: u32,
        (segment, taken): (u32, State),
        bytes: u64,
        now_ms: u64,
    ) -> Result<bool, OpError> {
        self.prepare_taken(me, segment, now_ms)?;
        let lane = self.lock_lane(me, queue)?;
        let open = self.segment_named(lane.payload());
        if open.is_some_and(|open| self.has_room(queue, open, bytes)) {
            return Ok(false);
        }
        self.set_open(queue, (segment, taken));
        self.name_in(lane, segment);
        Ok(true)
    }

    /// Makes a segment that was taken ready to be filled.
    fn prepare_taken(&self, me: Owner, segment: u32, now_ms: u64) -> Result<(), OpError> {
        self.forget_in_lanes(me, segment)?;
        self.begin_segment(me, segment, now_ms);
        crash::point("open.begun");
        Ok(())
    }

    /// Lets the owner of a prepared segment append to it.
    fn set_open(&self, queue: u32, (segment, taken): (u32, State)) {
        self.entry(segment).set_state(State { kind: SegmentKind::Open, queue, ..taken });
        crash::point("open.opened");
    }

    /// Makes a segment ready to be filled. Readers of what it held find out by the generation, which
    /// is raised before anything else is written.
    pub(in crate::file) fn begin_segment(&self, me: Owner, segment: u32, now_ms: u64) {
        self.entry(segment).begin(self.filling_stamp(), self.epoch(), now_ms);
        // No slot leads here, so that nobody changes its count.
        self.correct_live(me, segment, self.live_sum(segment), Live::default());
    }

    /// The number of a segment that becomes the youngest.
    pub(in crate::file) fn next_sequence(&self) -> u64 {
        self.ground.add(header::SEQUENCE, 1) & ((1 << 40) - 1)
    }

    /// Whether a segment is free: it belongs to the holder of the recycler's lock.
    pub(in crate::file) fn is_free(&self, segment: u32) -> bool {
        let state = self.entry(segment).state();
        match state.kind {
            SegmentKind::Free => true,
            SegmentKind::Member => !self.is_in_run(segment, state),
            _ => false,
        }
    }

    /// Whether nothing can be in a segment that a slot may lead to.
    pub(in crate::file) fn holds_nothing(&self, segment: u32) -> bool {
        let kind = self.entry(segment).state().kind;
        matches!(kind, SegmentKind::Ready | SegmentKind::Taken) || self.is_free(segment)
    }
}

impl<G: Ground> Recycler<'_, G> {
    /// Makes a free segment this owner's, whose hazard says so. Returns its state, to be replaced by
    /// another; `None`: it is not free any more.
    pub(in crate::file) fn take_free(&self, segment: u32) -> Option<State> {
        if !self.is_free(segment) {
            return self.take_ready(self.me, segment);
        }
        // Nobody else changes the state of a free segment.
        self.take(self.me, segment, self.entry(segment).state_word())
    }

    /// Makes a free segment one of a queue that this owner appends to, and that no lane names;
    /// `false`: it is not free any more.
    pub(in crate::file) fn begin(
        &self,
        queue: u32,
        segment: u32,
        now_ms: u64,
    ) -> Result<bool, OpError> {
        let Some(taken) = self.take_free(segment) else {
            return Ok(false);
        };
        let prepared = self.prepare_taken(self.me, segment, now_ms);
        if prepared.is_ok() {
            self.set_open(queue, (segment, taken));
        } else {
            self.entry(segment).free();
        }
        // Nobody else empties segments now.
        self.set_hazard(self.me.place, None);
        prepared.map(|()| true)
    }

    /// Frees the segments that were taken by owners that have died since.
    fn free_abandoned(&self, survey: &mut Survey) {
        for segment in std::mem::take(&mut survey.abandoned) {
            let entry = self.entry(segment);
            let word = entry.state_word();
            let state = State::decode(word);
            // In this order: while its owner is alive, a segment has its hazard.
            let is_abandoned = state.kind == SegmentKind::Taken && !self.is_appended_to(segment);
            let marked = State { kind: SegmentKind::Recycling, ..state };
            if is_abandoned && entry.exchange_state(word, marked) {
                entry.free();
                survey.free.push(segment);
            }
        }
    }

    /// Recycles until this number of segments is free, or as many as a write may; gives those that
    /// are.
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
        let (mut won, mut avoided) = (0, 0);
        let (mut busy, mut has_room) = (Ok(()), true);
        loop {
            if survey.free.len() >= wanted || won == MAX_RECYCLED {
                return Ok(survey.free);
            }
            let victim = self.victim(&survey, has_room).filter(|_| avoided < MOST_AVOIDED);
            let Some((segment, cause)) = victim else {
                // The reserve may be enough.
                return if survey.free.is_empty() {
                    busy.and(Err(OpError::Full))
                } else {
                    Ok(survey.free)
                };
            };
            let allowed_bytes = self.rules().allowed_bytes(won);
            match self.recycle(segment, cause, allowed_bytes, reserve, now_ms) {
                Ok(Recycled::Emptied | Recycled::Renewed) => {
                    won += 1;
                    self.survey_recycled(&mut survey, segment);
                    self.note_progress();
                    continue;
                }
                // Then something has to leave.
                Ok(Recycled::NoRoom) if has_room => {
                    has_room = false;
                    continue;
                }
                Ok(Recycled::InUse | Recycled::NoRoom) => {}
                Err(stop) => busy = Err(stop),
            }
            avoided += 1;
            survey.avoid(segment);
        }
    }
}
