//! Records that are longer than a segment: each has neighbouring segments of its own.

use std::ops::Range;

use crate::file::area::{Area, OpError, Owner, Record};
use crate::file::crash;
use crate::file::format::segment::{MAIN, SMALL, SegmentKind, State};
use crate::file::log::append::{Appended, Draft};
use crate::file::log::open::MOST_AVOIDED;
use crate::file::log::plan::{self, Move, Plan};
use crate::file::log::recycle::{Kept, Recycled};
use crate::file::log::recycler::Recycler;
use crate::file::log::reserve::Reserve;
use crate::file::log::survey::Cause;
use crate::file::platform::ground::Ground;
use crate::file::rules::RESERVED_SEGMENTS;
use crate::mutant;

/// A value is moved in pieces of this size.
const PIECE_BYTES: u64 = 64 << 10;

/// The outcome of emptying a window.
enum Emptied {
    Done,
    /// This segment is in use.
    Not(u32),
}

impl<G: Ground> Area<G> {
    /// Appends a record that is longer than a segment.
    pub(in crate::file) fn append_run(
        &self,
        me: Owner,
        queue: u32,
        draft: &Draft<'_>,
        now_ms: u64,
    ) -> Result<Appended<'_, G>, OpError> {
        let head = draft.head;
        let segments = head.bytes().div_ceil(self.geometry.segment_bytes());
        let segments = u32::try_from(segments).map_err(|_| OpError::Full)?;
        if segments > self.geometry.longest_run() {
            return Err(OpError::Full);
        }
        // A run belongs to one of two queues: it has no open segment that could be of a class.
        let queue = if queue == MAIN { MAIN } else { SMALL };
        self.sweep.set_due();
        let segment = self.lock_recycler(me)?.open_run(queue, segments, now_ms)?;
        let appended = self.begin_record(me.place, segment, 0, head, draft.checksum);
        let entry = self.entry(segment);
        entry.raise_expiry(draft.expires_ms);
        entry.set_used(head.bytes());
        crash::point("run.reserved");
        self.fill(&appended, draft);
        Ok(appended)
    }
}

impl<G: Ground> Recycler<'_, G> {
    /// Empties neighbouring segments, and makes them one run that this place appends to.
    ///
    /// While there is a way to keep every live record, that way is taken: some of them are moved.
    fn open_run(&self, queue: u32, segments: u32, now_ms: u64) -> Result<u32, OpError> {
        // Where nothing can be recycled, there is a window without it, or none.
        let _ = self.make_free(RESERVED_SEGMENTS as usize, now_ms);
        self.revoke_ready();
        let segment_bytes = self.geometry.segment_bytes();
        let (mut refused, mut are_lanes_open) = (Vec::new(), true);
        let most = MOST_AVOIDED + 4 * segments as usize;
        let mut has_sparse = true;
        // Each of these wins room, or finds one more segment that is in use.
        for attempt in 0..most {
            self.note_progress();
            let uses = self.uses(&refused, now_ms);
            let keep_all = |reserved| plan::keep_all(&uses, segments, reserved, segment_bytes);
            let plan = keep_all(RESERVED_SEGMENTS);
            if plan.is_none() && has_sparse && !mutant::is_on("a-run-spends-the-reserve") {
                has_sparse = attempt < most / 2 && self.recycle_sparse(&mut refused, now_ms);
                continue;
            }
            if plan.is_none() && are_lanes_open {
                // Segments that are open in many lanes may leave no window between them.
                self.seal_all_lanes();
                are_lanes_open = false;
                continue;
            }
            // The reserve is the last resort: without one, copies of the next sparse segment find no
            // room, and live entries leave.
            let emptied = if let Some(plan) = plan.or_else(|| keep_all(0)) {
                self.carry_out(&plan, now_ms)
            } else {
                let window =
                    plan::lose_least(&uses, segments, segment_bytes).ok_or(OpError::Full)?;
                let cause = Cause::Room;
                let emptied = self.empty_window(&window, cause, now_ms);
                emptied.map(|emptied| (window, emptied))
            };
            match emptied? {
                (window, Emptied::Done) => {
                    if let Some(first) = self.join(queue, &window, now_ms) {
                        return Ok(first);
                    }
                }
                (_, Emptied::Not(segment)) => refused.push(segment),
            }
        }
        Err(OpError::Full)
    }

    /// Empties one segment of which little is live, so that more are free; says whether it did.
    fn recycle_sparse(&self, refused: &mut Vec<u32>, now_ms: u64) -> bool {
        let mut survey = self.survey(now_ms);
        for segment in refused.iter() {
            survey.avoid(*segment);
        }
        let Some(segment) = self.sparse_victim(&survey) else {
            return false;
        };
        let mut reserve = Reserve::default();
        let recycled = self.recycle(segment, Cause::Sparse, 0, &mut reserve, now_ms);
        self.publish(&reserve);
        if recycled != Ok(Recycled::Emptied) {
            refused.push(segment);
        }
        true
    }

    fn carry_out(&self, plan: &Plan, now_ms: u64) -> Result<(Range<u32>, Emptied), OpError> {
        for planned in &plan.moves {
            if !self.move_run(*planned, now_ms)? {
                return Ok((plan.window.clone(), Emptied::Not(planned.head)));
            }
        }
        let emptied = self.empty_window(&plan.window, Cause::Sparse, now_ms)?;
        Ok((plan.window.clone(), emptied))
    }

    /// Empties the segments of a window; copies of what is kept go elsewhere.
    fn empty_window(
        &self,
        window: &Range<u32>,
        cause: Cause,
        now_ms: u64,
    ) -> Result<Emptied, OpError> {
        let mut reserve = Reserve::outside(window.clone());
        let mut emptied = Ok(Emptied::Done);
        for segment in window.clone() {
            self.note_progress();
            if self.is_free(segment) {
                continue;
            }
            match self.empty(segment, cause, &mut reserve, now_ms) {
                Ok(Recycled::Emptied) => {}
                Ok(Recycled::Renewed | Recycled::InUse | Recycled::NoRoom)
                | Err(OpError::Busy(_)) => {
                    emptied = Ok(Emptied::Not(segment));
                    break;
                }
                Err(stop) => {
                    emptied = Err(stop);
                    break;
                }
            }
        }
        self.publish(&reserve);
        emptied
    }

    /// Makes free segments a run that this place appends to; `None`: somebody else has one of them.
    fn join(&self, queue: u32, window: &Range<u32>, now_ms: u64) -> Option<u32> {
        let (first, segments) = (window.start, window.end - window.start);
        let sequence = self.next_sequence();
        let state = State { kind: SegmentKind::Sealed, queue, run: segments, sequence };
        self.begin_run(first, state, now_ms).then_some(first)
    }

    /// Makes segments a run that this place appends to, unless somebody else has one of them.
    fn begin_run(&self, first: u32, state: State, now_ms: u64) -> bool {
        for segment in first..first + state.run {
            if self.take_free(segment).is_none() {
                (first..segment).for_each(|taken| self.entry(taken).set_state(State::FREE));
                self.set_hazard(self.me.place, None);
                return false;
            }
        }
        for segment in first..first + state.run {
            self.begin_segment(self.me, segment, now_ms);
        }
        crash::point("run.begun");
        for segment in first + 1..first + state.run {
            let run = segment - first;
            self.entry(segment).set_state(State { kind: SegmentKind::Member, run, ..State::FREE });
        }
        crash::point("run.members");
        // Until it is published it looks dead: whoever chooses what to recycle sees this.
        let is_held = !mutant::is_on("a-run-in-the-making-is-not-held");
        self.set_hazard(self.me.place, is_held.then_some(first));
        self.entry(first).set_state(state);
        crash::point("run.joined");
        true
    }

    /// Moves the record of a run to free segments; `false`: a process uses it.
    fn move_run(&self, planned: Move, now_ms: u64) -> Result<bool, OpError> {
        let Some(state) = self.begin_recycling(planned.head) else {
            return Ok(false);
        };
        let moved = self.move_candidate(planned, state, now_ms);
        match moved {
            Ok(true) => self.free_recycled(planned.head),
            Ok(false) | Err(_) => self.end_recycling(planned.head, state),
        }
        match moved {
            Err(OpError::Busy(_)) => Ok(false),
            moved => moved,
        }
    }

    fn move_candidate(
        &self,
        Move { head, segments, to }: Move,
        state: State,
        now_ms: u64,
    ) -> Result<bool, OpError> {
        let candidates = self.candidates(head, state)?;
        let [candidate] = candidates.as_slice() else {
            return Ok(candidates.is_empty());
        };
        let record = &candidate.record;
        let planned_bytes = u64::from(segments) << self.geometry.numbers.segment_log2;
        if state.run != segments || record.head.bytes() > planned_bytes {
            // The copy would not fit: something garbled the file after the plan was made, or the
            // run's own word leads beyond the last segment.
            return Ok(false);
        }
        if !self.is_trusted(candidate.hash, record)? {
            // A copy would make it a sound one.
            let is_current = self.entry(head).epoch() == self.epoch();
            return self.drop_entry(candidate, is_current, now_ms).map(|_| true);
        }
        let state = State { kind: SegmentKind::Sealed, ..state };
        if !self.begin_run(to, state, now_ms) {
            return Ok(false);
        }
        let copy = self.copy_record(record, to)?;
        crash::point("run.moved");
        let frequency = candidate.slot.frequency();
        // A copy that could not be published is dead.
        Ok(self.publish_copy(candidate, &copy, frequency)? == Kept::Yes)
    }

    /// Copies the record of a run, word for word, into the segments of another.
    fn copy_record(&self, record: &Record, to: u32) -> Result<Appended<'_, G>, OpError> {
        let (bytes, start) = (record.head.bytes(), self.geometry.segment_start(to));
        let checksum = self.checksum_of(record);
        let appended = self.begin_record(self.me.place, to, 0, record.head, checksum);
        let entry = self.entry(to);
        entry.raise_expiry(self.expires_ms(record));
        entry.set_used(bytes);
        let mut piece = Vec::new();
        for at in (16..bytes).step_by(usize::try_from(PIECE_BYTES).expect("64 bits")) {
            let length = PIECE_BYTES.min(bytes - at);
            self.copy_bytes(record.at + at, length, &mut piece)?;
            self.ground.copy_in(start + at, &piece);
            self.note_progress();
        }
        Ok(appended)
    }
}
