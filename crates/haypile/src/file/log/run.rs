//! Runs: records that are longer than a segment, each in neighbouring segments of its own.

use std::ops::Range;

use haypile_policy::rules::file::RESERVED_SEGMENTS;

use crate::file::area::wait::{LONGEST_WAIT, Wait};
use crate::file::area::{Holder, OpError, Record};
use crate::file::crash;
use crate::file::format::segment::{MAIN, SMALL, SegmentKind, State};
use crate::file::log::append::{Appended, Appender, Draft};
use crate::file::log::candidates::Kept;
use crate::file::log::plan::{self, Move, Plan};
use crate::file::log::recycle::Recycled;
use crate::file::log::recycler::Recycler;
use crate::file::log::reserve::Reserve;
use crate::file::log::survey::Cause;
use crate::file::platform::ground::Ground;
use crate::mutant;

/// A value is moved in pieces of this size.
const PIECE_BYTES: u64 = 64 << 10;

/// The outcome of emptying a window.
enum Emptied {
    Done,
    /// This segment cannot be emptied: a process uses it for a moment, or else its entries have no room elsewhere.
    Not(u32, Option<Holder>),
    /// This segment has more live bytes than was planned for; its count is right now.
    Miscounted(u32),
}

impl<'a, G: Ground> Appender<'a, G> {
    /// Appends a record that is longer than a segment to consecutive segments of the cache file.
    pub(in crate::file) fn append_run(
        &self,
        queue: u32,
        draft: &Draft<'_>,
        now_ms: u64,
    ) -> Result<Appended<'a, G>, OpError> {
        let head = draft.head;
        let segments = head.bytes().div_ceil(self.area.geometry.segment_bytes());
        let segments = u32::try_from(segments).map_err(|_| OpError::Full)?;
        if segments > self.area.geometry.longest_run() {
            return Err(OpError::Full);
        }
        // A run belongs to one of two queues: it has no open segment that could be of a class.
        let queue = if queue == MAIN { MAIN } else { SMALL };
        let segment = Recycler::lock(self.area, self.owner)?.open_run(queue, segments, now_ms)?;
        let appended = self.begin_record(segment, 0, head, draft.checksum);
        let entry = self.area.entry(segment);
        entry.raise_expiry(draft.expires_ms);
        entry.set_used(head.bytes());
        crash::point("run.reserved");
        appended.fill(draft);
        Ok(appended)
    }
}

impl<G: Ground> Recycler<'_, G> {
    /// Empties neighbouring segments, and makes them one run that the recycling owner appends to.
    ///
    /// While there is a way to keep every live record, that way is taken: some of them are moved.
    fn open_run(&self, queue: u32, segments: u32, now_ms: u64) -> Result<u32, OpError> {
        // Where nothing can be recycled, there is a window without it, or none.
        let _ = self.make_free(RESERVED_SEGMENTS as usize, now_ms);
        self.revoke_ready();
        let segment_bytes = self.geometry.segment_bytes();
        let (mut refused, mut are_lanes_open) = (Vec::new(), true);
        // An emptied segment may cost another one, so that they do not come to an end by themselves.
        let mut sparse_left = self.geometry.numbers.segments;
        let (mut hindrance, mut wait) = (None, Wait::default());
        let began = self.ground.now();
        loop {
            self.note_progress();
            let uses = self.uses(&refused, now_ms);
            let keep_all = |reserved| plan::keep_all(&uses, segments, reserved, segment_bytes);
            let plan = keep_all(RESERVED_SEGMENTS);
            if plan.is_none() && sparse_left > 0 && !mutant::is_on("a-run-spends-the-reserve") {
                sparse_left -= 1;
                if !self.recycle_sparse(&mut refused, now_ms) {
                    sparse_left = 0;
                }
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
            let (window, emptied) = if let Some(plan) = plan.or_else(|| keep_all(0)) {
                let emptied = self.carry_out(&plan, now_ms)?;
                (plan.window, emptied)
            } else if let Some(window) = plan::lose_least(&uses, segments, segment_bytes) {
                let emptied = self.empty_window(&window, Cause::Room, now_ms)?;
                (window, emptied)
            } else {
                // What others use for a moment is free soon; values that are read in place are not waited for.
                wait.again(&self.ground, hindrance.take().ok_or(OpError::Full)?)?;
                refused.clear();
                continue;
            };
            match emptied {
                Emptied::Done => {
                    if let Some(first) = self.join(queue, &window, now_ms) {
                        return Ok(first);
                    }
                    wait.again(&self.ground, Holder::Running)?;
                }
                Emptied::Not(segment, holder) => {
                    hindrance = holder.or(hindrance);
                    refused.push(segment);
                }
                Emptied::Miscounted(segment) => {
                    if self.ground.now().saturating_sub(began) >= LONGEST_WAIT {
                        refused.push(segment);
                    }
                }
            }
        }
    }

    /// Empties one segment of which little is live, so that more are free; says whether there was one.
    fn recycle_sparse(&self, refused: &mut Vec<u32>, now_ms: u64) -> bool {
        let mut survey = self.survey(now_ms);
        for segment in refused.iter() {
            survey.avoid(*segment);
        }
        let Some(choice) = self.sparse_victim(&survey) else {
            return false;
        };
        let mut reserve = Reserve::default();
        let recycled = self.recycle(choice, 0, &mut reserve, now_ms);
        self.publish(&reserve);
        if !matches!(recycled, Ok(Recycled::Emptied | Recycled::Miscounted(_))) {
            refused.push(choice.segment);
        }
        true
    }

    fn carry_out(&self, plan: &Plan, now_ms: u64) -> Result<Emptied, OpError> {
        for planned in &plan.moves {
            if let Some(holder) = self.move_run(*planned, now_ms)? {
                return Ok(Emptied::Not(planned.head, Some(holder)));
            }
        }
        self.empty_window(&plan.window, Cause::Sparse, now_ms)
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
                Ok(Recycled::Emptied) => continue,
                Ok(Recycled::Renewed | Recycled::NoRoom) => {
                    emptied = Ok(Emptied::Not(segment, None));
                }
                Ok(Recycled::InUse) => {
                    emptied = Ok(Emptied::Not(segment, Some(Holder::Running)));
                }
                Ok(Recycled::Miscounted(_)) => emptied = Ok(Emptied::Miscounted(segment)),
                Err(OpError::Busy(holder)) => emptied = Ok(Emptied::Not(segment, Some(holder))),
                Err(stop) => emptied = Err(stop),
            }
            break;
        }
        self.publish(&reserve);
        emptied
    }

    /// Makes free segments a run that the recycling owner appends to; `None`: somebody else has one of them.
    fn join(&self, queue: u32, window: &Range<u32>, now_ms: u64) -> Option<u32> {
        let (first, segments) = (window.start, window.end - window.start);
        let sequence = self.next_sequence();
        let state = State { kind: SegmentKind::Sealed, queue, run: segments, sequence };
        self.begin_run(first, state, now_ms).then_some(first)
    }

    /// Makes segments a run that the recycling owner appends to, unless somebody else has one of them.
    fn begin_run(&self, first: u32, state: State, now_ms: u64) -> bool {
        for segment in first..first + state.run {
            if self.take_free(segment).is_none() {
                (first..segment).for_each(|taken| self.entry(taken).set_state(State::FREE));
                self.appender().set_hazard(None);
                return false;
            }
        }
        for segment in first..first + state.run {
            self.appender().begin_segment(segment, now_ms);
        }
        crash::point("run.begun");
        for segment in first + 1..first + state.run {
            let run = segment - first;
            self.entry(segment).set_state(State { kind: SegmentKind::Member, run, ..State::FREE });
        }
        crash::point("run.members");
        // Until it is published it looks dead: whoever chooses what to recycle sees this.
        let is_held = !mutant::is_on("a-run-in-the-making-is-not-held");
        self.appender().set_hazard(is_held.then_some(first));
        self.entry(first).set_state(state);
        crash::point("run.joined");
        true
    }

    /// Moves the record of a run to free segments; says what is in the way.
    fn move_run(&self, planned: Move, now_ms: u64) -> Result<Option<Holder>, OpError> {
        let Some(state) = self.begin_recycling(planned.head) else {
            return Ok(Some(Holder::Running));
        };
        let moved = self.move_candidate(planned, state, now_ms);
        match moved {
            Ok(true) => self.free_recycled(planned.head),
            Ok(false) | Err(_) => self.end_recycling(planned.head, state),
        }
        match moved {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(Holder::Running)),
            Err(OpError::Busy(holder)) => Ok(Some(holder)),
            Err(stop) => Err(stop),
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
        let appended = self.appender().begin_record(to, 0, record.head, checksum);
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
