//! Opening segments, and making room for that. All under the recycler's lock.

use std::ops::Range;

use super::append::head_at;
use super::area::{Area, Me, Stop};
use super::crash;
use super::ground::Ground;
use super::header;
use super::lock::Held;
use super::segment::{Kind, State};
use super::spare::Spares;
use super::survey::Cause;
use crate::policy::segment::rules::{MAX_RECYCLED, RESERVED_SEGMENTS};

/// A write chooses another segment at most so often, where the one chosen is in use.
const MOST_AVOIDED: usize = 64;

impl<G: Ground> Area<G> {
    pub(super) fn lock_recycler(&self, me: Me) -> Result<Held<'_, G>, Stop> {
        self.lock(me, header::RECYCLER)
    }

    /// Opens a segment for a queue, unless there is one with so much room by now.
    pub(super) fn open_segment(
        &self,
        me: Me,
        queue: u32,
        bytes: u64,
        now_ms: u64,
    ) -> Result<(), Stop> {
        let _recycler = self.lock_recycler(me)?;
        if self.has_open_room(queue, bytes) {
            return Ok(());
        }
        let me = me.hurried();
        let free = self.make_free(me, RESERVED_SEGMENTS as usize + 1, now_ms)?;
        // What is left of a segment for what was kept will do.
        if self.has_open_room(queue, bytes) {
            return Ok(());
        }
        let segment = *free.first().ok_or(Stop::Busy)?;
        self.install(me, queue, segment, now_ms)
    }

    /// Recycles until so many segments are free, or as many as a write may; gives those that are.
    fn make_free(&self, me: Me, wanted: usize, now_ms: u64) -> Result<Vec<u32>, Stop> {
        let mut spares = Spares::default();
        let free = self.recycle_until(me, wanted, &mut spares, now_ms);
        self.publish(me, &spares);
        let mut free = free?;
        // What was kept may have gone to one that was free when that was seen last.
        free.retain(|segment| self.is_free(*segment));
        Ok(free)
    }

    fn recycle_until(
        &self,
        me: Me,
        wanted: usize,
        spares: &mut Spares,
        now_ms: u64,
    ) -> Result<Vec<u32>, Stop> {
        let mut survey = self.survey(now_ms);
        let (mut recycled, mut avoided) = (0, 0);
        let mut busy = Ok(());
        loop {
            if survey.free.len() >= wanted || recycled == MAX_RECYCLED {
                return Ok(survey.free);
            }
            let victim = self.victim(&survey).filter(|_| avoided < MOST_AVOIDED);
            let Some((segment, cause)) = victim else {
                // What is in reserve may do.
                return if survey.free.is_empty() {
                    busy.and(Err(Stop::Full))
                } else {
                    Ok(survey.free)
                };
            };
            let allowed_bytes = self.rules().allowed_bytes(recycled);
            match self.recycle(me, segment, cause, allowed_bytes, spares, now_ms) {
                Ok(true) => {
                    recycled += 1;
                    self.survey_recycled(&mut survey, segment);
                    continue;
                }
                Ok(false) => {}
                Err(stop) => busy = Err(stop),
            }
            avoided += 1;
            survey.avoid(segment);
        }
    }

    /// Opens a free segment for a queue, and seals the one that was.
    fn install(&self, me: Me, queue: u32, segment: u32, now_ms: u64) -> Result<(), Stop> {
        self.begin(me, queue, segment, now_ms)?;
        self.name(me, queue, segment)
    }

    /// Makes a free segment one of a queue that can be appended to. Nobody else finds it yet.
    pub(super) fn begin(&self, me: Me, queue: u32, segment: u32, now_ms: u64) -> Result<(), Stop> {
        if !self.is_walkable(segment) {
            self.adopt(me, segment)?;
        }
        // A loss of power can leave a head that names it: others would append to it as well.
        if self.named_for(queue) == Some(segment) {
            self.lock(me, head_at(queue))?.set_payload(0);
        }
        let entry = self.entry(segment);
        entry.begin(self.stamp, self.epoch(), now_ms);
        crash::point("open.begun");
        let sequence = self.next_sequence();
        entry.set_state(State { kind: Kind::Open, queue, run: 0, sequence });
        crash::point("open.opened");
        Ok(())
    }

    /// Lets all writers append to a segment that was begun for a queue, and seals the one that was.
    pub(super) fn name(&self, me: Me, queue: u32, segment: u32) -> Result<(), Stop> {
        let mut head = self.lock(me, head_at(queue))?;
        let old = self.open_for(queue);
        head.set_payload(segment + 1);
        crash::point("open.named");
        drop(head);
        if let Some(old) = old {
            self.seal(old);
        }
        crash::point("open.sealed");
        Ok(())
    }

    /// Says of a segment that nothing is appended to it any more.
    pub(super) fn seal(&self, segment: u32) {
        let entry = self.entry(segment);
        let state = entry.state();
        if state.kind == Kind::Open {
            entry.set_state(State { kind: Kind::Sealed, ..state });
        }
    }

    /// The number of a segment that becomes the youngest.
    pub(super) fn next_sequence(&self) -> u64 {
        self.ground.add(header::SEQUENCE, 1) & ((1 << 40) - 1)
    }

    /// Empties a window of segments, and makes them one run that this place appends to.
    pub(super) fn open_run(
        &self,
        me: Me,
        queue: u32,
        segments: u32,
        now_ms: u64,
    ) -> Result<u32, Stop> {
        let _recycler = self.lock_recycler(me)?;
        let me = me.hurried();
        // Where that cannot be, there is a window without it, or none.
        let _ = self.make_free(me, RESERVED_SEGMENTS as usize, now_ms);
        let mut refused = Vec::new();
        for attempt in 0..MOST_AVOIDED {
            let (window, is_sparse) = self.window(segments, &refused).ok_or(Stop::Full)?;
            // What is kept may go to others that are wanted, again and again.
            let cause = if is_sparse && attempt == 0 { Cause::Sparse } else { Cause::Room };
            let mut spares = Spares::outside(window.clone());
            let in_use = self.empty_all(me, window.clone(), cause, &mut spares, now_ms);
            self.publish(me, &spares);
            refused.extend(in_use?);
            if window.clone().all(|segment| self.is_free(segment)) {
                return Ok(self.join(me, queue, window.start, segments, now_ms));
            }
        }
        Err(Stop::Full)
    }

    /// Empties segments, and says which could not be, for it is in use.
    fn empty_all(
        &self,
        me: Me,
        window: Range<u32>,
        cause: Cause,
        spares: &mut Spares,
        now_ms: u64,
    ) -> Result<Option<u32>, Stop> {
        for segment in window {
            if !self.is_free(segment) && !self.empty(me, segment, cause, spares, now_ms)? {
                return Ok(Some(segment));
            }
            if !self.is_walkable(segment) {
                self.adopt(me, segment)?;
            }
        }
        Ok(None)
    }

    /// Whether nothing is in a segment.
    pub(super) fn is_free(&self, segment: u32) -> bool {
        let state = self.entry(segment).state();
        match state.kind {
            Kind::Free => true,
            Kind::Member => !self.is_in_run(segment, state),
            _ => false,
        }
    }

    /// Makes free segments a run.
    fn join(&self, me: Me, queue: u32, first: u32, segments: u32, now_ms: u64) -> u32 {
        let epoch = self.epoch();
        for segment in first..first + segments {
            self.entry(segment).begin(self.stamp, epoch, now_ms);
        }
        crash::point("run.begun");
        for segment in first + 1..first + segments {
            let run = segment - first;
            self.entry(segment).set_state(State { kind: Kind::Member, run, ..State::FREE });
        }
        crash::point("run.members");
        self.set_hazard(me.place, Some(first));
        let sequence = self.next_sequence();
        self.entry(first).set_state(State { kind: Kind::Sealed, queue, run: segments, sequence });
        crash::point("run.joined");
        first
    }
}
