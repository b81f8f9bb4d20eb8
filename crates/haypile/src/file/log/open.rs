//! Opening segments, and making room for that.

use crate::file::area::{Area, Holder, OpError, Owner};
use crate::file::crash;
use crate::file::format::header;
use crate::file::format::segment::{Live, MAIN, SegmentKind, State};
use crate::file::log::recycle::Recycled;
use crate::file::log::recycler::Recycler;
use crate::file::log::reserve::Reserve;
use crate::file::platform::ground::Ground;
use crate::file::rules::{MAX_RECYCLED, RESERVED_SEGMENTS};
use crate::mutant;

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
        if self.open_ready(me, queue, now_ms)? {
            self.prepare(me, now_ms);
            return Ok(());
        }
        let recycler = self.lock_recycler(me)?;
        if self.has_open_room(me, queue, bytes) {
            return Ok(());
        }
        let me = recycler.me;
        let wanted = RESERVED_SEGMENTS as usize + 1 + self.ready_wanted();
        let mut free = recycler.make_free(wanted, now_ms)?;
        // What is left of a segment for what was kept will do.
        let mut is_open = self.has_open_room(me, queue, bytes);
        while !is_open && !free.is_empty() {
            is_open = self.install(me, queue, free.remove(0), now_ms)?;
        }
        recycler.offer(&free);
        if is_open { Ok(()) } else { Err(OpError::Busy(Holder::Running)) }
    }

    /// Opens a free segment for a queue, and seals the one that was; `false`: somebody else has it.
    pub(in crate::file) fn install(
        &self,
        me: Owner,
        queue: u32,
        segment: u32,
        now_ms: u64,
    ) -> Result<bool, OpError> {
        let begun = self.begin(me, queue, segment, now_ms);
        if begun == Ok(true) {
            self.name(me, queue, segment)?;
        }
        // Whoever sees that it is gone sees the name.
        self.set_hazard(me.place, None);
        begun
    }

    /// Makes a free segment this owner's, which then nobody else begins or empties. No lock is needed:
    /// the hazard keeps the segment from those who empty others. Returns its state, to be exchanged
    /// for another; `None`: somebody else has it.
    pub(in crate::file) fn take_free(&self, me: Owner, segment: u32) -> Option<State> {
        let entry = self.entry(segment);
        let word = entry.state_word();
        if !self.is_free_in(segment, State::decode(word)) {
            return None;
        }
        self.set_hazard(me.place, Some(segment));
        crash::point("take.hazard");
        let sequence = self.next_sequence();
        let taken = State { kind: SegmentKind::Recycling, queue: MAIN, run: 0, sequence };
        let is_taken = if mutant::is_on("free-segments-are-taken-twice") {
            entry.set_state(taken);
            true
        } else {
            entry.exchange_state(word, taken)
        };
        crash::point("take.taken");
        if !is_taken {
            self.set_hazard(me.place, None);
            return None;
        }
        Some(taken)
    }

    /// Makes a free segment one of a queue that can be appended to. Nobody else finds it before a lane
    /// names it, and the hazard is set until then. `false`: somebody else has it.
    pub(in crate::file) fn begin(
        &self,
        me: Owner,
        queue: u32,
        segment: u32,
        now_ms: u64,
    ) -> Result<bool, OpError> {
        let Some(taken) = self.take_free(me, segment) else {
            return Ok(false);
        };
        self.forget_in_lanes(me, segment)?;
        self.begin_segment(me, segment, now_ms);
        crash::point("open.begun");
        let open = State { kind: SegmentKind::Open, queue, ..taken };
        // It is another one while somebody tries to empty it, who then finds the hazard.
        let is_open = self.entry(segment).exchange_state(taken.encode(), open);
        crash::point("open.opened");
        Ok(is_open)
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

    /// Whether nothing is in a segment.
    pub(in crate::file) fn is_free(&self, segment: u32) -> bool {
        self.is_free_in(segment, self.entry(segment).state())
    }

    fn is_free_in(&self, segment: u32, state: State) -> bool {
        match state.kind {
            SegmentKind::Free => true,
            SegmentKind::Member => !self.is_in_run(segment, state),
            _ => false,
        }
    }
}

impl<G: Ground> Recycler<'_, G> {
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
        // What was kept may have gone to one that was free when that was seen last.
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
                // What is in reserve may do.
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
