//! Opening segments, and making room for that. All under the recycler's lock.

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
        if let Some(segment) = self.open_for(queue)
            && self.has_room(queue, segment, bytes)
        {
            return Ok(());
        }
        let me = me.hurried();
        let free = self.make_free(me, RESERVED_SEGMENTS as usize + 1, now_ms)?;
        let segment = *free.first().ok_or(Stop::Full)?;
        self.install(me, queue, segment, now_ms)
    }

    /// Recycles until so many segments are free, or as many as a write may; gives those that are.
    fn make_free(&self, me: Me, wanted: usize, now_ms: u64) -> Result<Vec<u32>, Stop> {
        let mut spares = Spares::default();
        let free = self.recycle_until(me, wanted, &mut spares, now_ms);
        self.publish(me, &spares);
        free
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
        // A loss of power can leave a head that names a free segment: this one.
        let old = self.open_for(queue).filter(|old| *old != segment);
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
        let mut refused = Vec::new();
        for attempt in 0..MOST_AVOIDED {
            let first = self.window(segments, &refused).ok_or(Stop::Full)?;
            // What is kept may go to the free ones that are wanted, again and again.
            let cause = if attempt == 0 { Cause::Sparse } else { Cause::Room };
            for segment in first..first + segments {
                if !self.is_free(segment) && !self.empty(me, segment, cause, now_ms)? {
                    refused.push(segment);
                    break;
                }
                if !self.is_walkable(segment) {
                    self.adopt(me, segment)?;
                }
            }
            // What was kept may have gone to a free one of the window.
            if (first..first + segments).all(|segment| self.is_free(segment)) {
                return Ok(self.join(me, queue, first, segments, now_ms));
            }
        }
        Err(Stop::Full)
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

    /// Where a window of so many segments begins that loses the fewest live bytes, without open
    /// and refused ones.
    fn window(&self, segments: u32, refused: &[u32]) -> Option<u32> {
        let count = self.geometry.numbers.segments;
        let open: Vec<u32> =
            (0..super::segment::HEADS).filter_map(|queue| self.open_for(queue)).collect();
        // A window that begins or ends within another run takes all of that run.
        let cost = |segment: u32| -> Option<u64> {
            if open.contains(&segment) || refused.contains(&segment) {
                return None;
            }
            let entry = self.entry(segment);
            let state = entry.state();
            match state.kind {
                _ if self.is_free(segment) => Some(0),
                Kind::Member => {
                    let head = segment - state.run;
                    (!refused.contains(&head)).then_some(self.geometry.segment_bytes())
                }
                _ => Some(entry.live().bytes.min(self.geometry.segment_bytes())),
            }
        };
        let costs: Vec<Option<u64>> = (0..count).map(cost).collect();
        let windows = costs.windows(segments as usize).zip(0..);
        let all = |window: &[Option<u64>]| window.iter().copied().sum::<Option<u64>>();
        let costs = windows.filter_map(|(window, first)| all(window).map(|cost| (cost, first)));
        costs.min().map(|(_, first)| first)
    }
}
