//! Opening segments, and making room for that. All under the recycler's lock.

use crate::file::area::lock::Held;
use crate::file::area::{Area, Holder, OpError, Owner};
use crate::file::crash;
use crate::file::format::header;
use crate::file::format::segment::{Live, SegmentKind, State};
use crate::file::log::recycle::Recycled;
use crate::file::log::reserve::Reserve;
use crate::file::platform::ground::Ground;
use crate::file::rules::{MAX_RECYCLED, RESERVED_SEGMENTS};

/// A write chooses another segment at most this often, where the one chosen is in use.
pub(in crate::file) const MOST_AVOIDED: usize = 64;

impl<G: Ground> Area<G> {
    pub(in crate::file) fn lock_recycler(&self, me: Owner) -> Result<Held<'_, G>, OpError> {
        self.lock(me, header::RECYCLER)
    }

    /// Opens a segment for a queue, unless there is one with enough room by now.
    pub(in crate::file) fn open_segment(
        &self,
        me: Owner,
        queue: u32,
        bytes: u64,
        now_ms: u64,
    ) -> Result<(), OpError> {
        let mut recycler = self.lock_recycler(me)?;
        if self.has_open_room(me, queue, bytes) {
            return Ok(());
        }
        let me = me.hurried();
        let wanted = RESERVED_SEGMENTS as usize + 1;
        let free = self.make_free(me, &mut recycler, wanted, now_ms)?;
        // What is left of a segment for what was kept will do.
        if self.has_open_room(me, queue, bytes) {
            return Ok(());
        }
        let segment = *free.first().ok_or(OpError::Busy(Holder::Running))?;
        self.sweep.set_due();
        self.install(me, queue, segment, now_ms)
    }

    /// Recycles until this number of segments is free, or as many as a write may; gives those that
    /// are.
    pub(in crate::file) fn make_free(
        &self,
        me: Owner,
        recycler: &mut Held<'_, G>,
        wanted: usize,
        now_ms: u64,
    ) -> Result<Vec<u32>, OpError> {
        let mut reserve = Reserve::default();
        let free = self.recycle_until(me, recycler, wanted, &mut reserve, now_ms);
        self.publish(me, &reserve);
        let mut free = free?;
        // What was kept may have gone to one that was free when that was seen last.
        free.retain(|segment| self.is_free(*segment));
        Ok(free)
    }

    fn recycle_until(
        &self,
        me: Owner,
        recycler: &mut Held<'_, G>,
        wanted: usize,
        reserve: &mut Reserve,
        now_ms: u64,
    ) -> Result<Vec<u32>, OpError> {
        let mut survey = self.survey(now_ms);
        if survey.free.len() < wanted {
            self.release_idle_lanes(me);
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
            match self.recycle(me, segment, cause, allowed_bytes, reserve, now_ms) {
                Ok(Recycled::Emptied | Recycled::Renewed) => {
                    won += 1;
                    self.survey_recycled(&mut survey, segment);
                    recycler.note_progress();
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

    /// Opens a free segment for a queue, and seals the one that was.
    fn install(&self, me: Owner, queue: u32, segment: u32, now_ms: u64) -> Result<(), OpError> {
        self.begin(me, queue, segment, now_ms)?;
        self.name(me, queue, segment)
    }

    /// Makes a free segment one of a queue that can be appended to. Nobody else finds it yet.
    pub(in crate::file) fn begin(
        &self,
        me: Owner,
        queue: u32,
        segment: u32,
        now_ms: u64,
    ) -> Result<(), OpError> {
        self.forget_in_lanes(me, segment)?;
        self.begin_segment(me, segment, now_ms);
        crash::point("open.begun");
        let sequence = self.next_sequence();
        self.entry(segment).set_state(State { kind: SegmentKind::Open, queue, run: 0, sequence });
        crash::point("open.opened");
        Ok(())
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
        let state = self.entry(segment).state();
        match state.kind {
            SegmentKind::Free => true,
            SegmentKind::Member => !self.is_in_run(segment, state),
            _ => false,
        }
    }
}
