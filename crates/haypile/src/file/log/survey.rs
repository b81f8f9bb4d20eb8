//! Surveys of all segments, and the choice of the one to recycle.

use haypile_policy::rules::file::{Queue, Rules, Sealed};

use crate::file::area::pins::PinCounts;
use crate::file::format::segment::{Live, MAIN, SegmentKind, State};
use crate::file::log::hazards::Hazards;
use crate::file::log::lane::Lanes;
use crate::file::log::plan::{Stretch, Use};
use crate::file::log::recycler::Recycler;
use crate::file::platform::ground::Ground;
use crate::mutant;

/// Small's share of the segments, as one of this number.
const SMALL_SHARE: u32 = 10;
/// Records of small move to main when they were used this often.
const THRESHOLD: u8 = 1;

/// A sealed segment, or a run of them.
#[derive(Clone, Copy, Debug)]
struct Filled {
    segment: u32,
    /// The number of segments.
    run: u32,
    sealed: Sealed,
    live_bytes: u64,
}

/// A snapshot of the states of all segments of the cache file; counts of live bytes may be out of
/// date, which is good enough for choosing a segment to recycle.
#[derive(Clone, Debug, Default)]
pub(in crate::file) struct Survey {
    pub(in crate::file) free: Vec<u32>,
    /// The numbers of the segments that processes which seem to be dead had taken to write into.
    pub(in crate::file) abandoned: Vec<u32>,
    filled: Vec<Filled>,
    /// The number of segments in the small queue; open ones count by their used part.
    small: u32,
    /// The live bytes of segments that are not runs, and the segments of live runs, without those that are read in
    /// place.
    live_bytes: u64,
    live_runs: u32,
    /// The number of segments that are read in place.
    pinned: u32,
}

impl Survey {
    /// Removes a segment that is in use from this snapshot, so that it is not chosen to be
    /// recycled.
    pub(in crate::file) fn avoid(&mut self, segment: u32) {
        self.filled.retain(|filled| filled.segment != segment);
    }

    /// Corrects the live bytes of a segment in this snapshot, so that the segment no longer counts
    /// as having no live entries.
    pub(in crate::file) fn recount(&mut self, segment: u32, live_bytes: u64) {
        let filled = self.filled.iter_mut().find(|filled| filled.segment == segment);
        let Some(filled) = filled else { return };
        let counted = if filled.sealed.is_dead { 0 } else { filled.live_bytes };
        if filled.run == 1 {
            self.live_bytes = (self.live_bytes + live_bytes).saturating_sub(counted);
        } else if filled.sealed.is_dead {
            self.live_runs += filled.run;
        }
        filled.sealed.is_dead = false;
        filled.live_bytes = live_bytes;
    }

    /// Stops treating segments in this snapshot as having no live entries, because too many counts
    /// are wrong to verify all of them at once.
    pub(in crate::file) fn distrust(&mut self) {
        for filled in &mut self.filled {
            filled.sealed.is_dead = false;
        }
    }
}

/// A segment chosen to be recycled (emptied), or the first of several that hold one record, with
/// the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct Choice {
    pub(in crate::file) segment: u32,
    pub(in crate::file) cause: Cause,
    /// The largest number of live bytes with which emptying the chosen segment is still worthwhile;
    /// the count at the time of the choice may have been wrong.
    pub(in crate::file) most_bytes: u64,
}

impl Choice {
    /// Returns the choice of this segment for recycling (emptying), however many live bytes it has.
    pub(in crate::file) fn of(segment: u32, cause: Cause) -> Self {
        Self { segment, cause, most_bytes: u64::MAX }
    }
}

/// The reason why a segment of the cache file is recycled (emptied): few of its bytes are live,
/// none is, or room for new records is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Cause {
    /// Few bytes of the segment are live: they are kept, whatever they are.
    Sparse,
    /// Room is needed: records that were used are kept.
    Room,
    /// No record of the segment is live.
    Dead,
}

/// Returns the eviction queue (small or main) of a segment with this state; segments for entries
/// with a TTL belong to the small queue.
pub(in crate::file) fn queue_of(state: State) -> Queue {
    if state.queue == MAIN { Queue::Main } else { Queue::Small }
}

impl<G: Ground> Recycler<'_, G> {
    /// Returns the rules by which the recycler chooses segments to empty and records to keep (such
    /// as the size of the small queue); the simulator follows them as well.
    pub(in crate::file) fn rules(&self) -> Rules {
        Rules {
            small_segments: self.geometry.numbers.segments / SMALL_SHARE,
            threshold: THRESHOLD,
            kept_bytes: self.geometry.segment_bytes() / 4 * 3,
        }
    }

    /// Returns a snapshot of the states of all segments of the cache file, for choosing a segment
    /// to recycle.
    pub(in crate::file) fn survey(&self, now_ms: u64) -> Survey {
        let open: Vec<u32> = Lanes::of(self).open_segments().collect();
        // What a process writes at this moment has no live bytes yet, and is not dead.
        let hazards = Hazards::of(self).segments();
        let pinned = PinCounts::of(self).pinned();
        let epoch = self.epoch();
        let segments = self.geometry.numbers.segments;
        let mut open_small_bytes = 0;
        let mut survey =
            Survey { filled: Vec::with_capacity(segments as usize), ..Survey::default() };
        for (segment, live) in (0..segments).zip(self.live_sums()) {
            let entry = self.entry(segment);
            let state = entry.state();
            match state.kind {
                SegmentKind::Free => survey.free.push(segment),
                SegmentKind::Ready => {}
                SegmentKind::Taken => {
                    if !hazards.contains(&segment) {
                        survey.abandoned.push(segment);
                    }
                }
                SegmentKind::Member => {
                    if !self.is_in_run(segment, state) {
                        survey.free.push(segment);
                    }
                }
                SegmentKind::Open | SegmentKind::Sealed | SegmentKind::Recycling => {
                    let queue = queue_of(state);
                    let run = self.run_from(segment, state);
                    let is_open = state.kind == SegmentKind::Open && open.contains(&segment);
                    if queue == Queue::Small {
                        if is_open {
                            open_small_bytes += entry.used().min(self.geometry.segment_bytes());
                        } else {
                            survey.small += run;
                        }
                    }
                    if pinned.binary_search(&segment).is_ok() {
                        survey.pinned += run;
                        continue;
                    }
                    let live = Live::decode(live);
                    let is_dead =
                        entry.epoch() != epoch || live.entries == 0 || entry.expires_ms() <= now_ms;
                    if !is_dead && run > 1 {
                        survey.live_runs += run;
                    } else if !is_dead {
                        survey.live_bytes += live.bytes.min(self.geometry.segment_bytes());
                    }
                    if is_open || hazards.contains(&segment) {
                        continue;
                    }
                    let sealed = Sealed { queue, opened: state.sequence, is_dead };
                    survey.filled.push(Filled { segment, run, sealed, live_bytes: live.bytes });
                }
            }
        }
        let open_small = open_small_bytes.div_ceil(self.geometry.segment_bytes());
        survey.small += u32::try_from(open_small).unwrap_or(segments);
        survey
    }

    /// Updates a snapshot of the states of all segments after one segment was recycled (emptied).
    pub(in crate::file) fn survey_recycled(&self, survey: &mut Survey, segment: u32) {
        let Some(at) = survey.filled.iter().position(|filled| filled.segment == segment) else {
            return;
        };
        let Filled { run, sealed, .. } = survey.filled.swap_remove(at);
        if sealed.queue == Queue::Small {
            survey.small -= run;
        }
        survey.free.extend(segment..segment + run);
        // What was kept of it may have gone to a free one.
        survey.free.retain(|segment| self.is_free(*segment));
    }

    /// Returns the segment to recycle (to empty) next, and why; `None` if no segment can be
    /// recycled. Segments with few live bytes come first only if `has_room` says that their live
    /// records fit elsewhere.
    pub(in crate::file) fn victim(&self, survey: &Survey, has_room: bool) -> Option<Choice> {
        let sparse = self.sparse_victim(survey).filter(|_| has_room);
        sparse.or_else(|| {
            let sealed = survey.filled.iter().map(|filled| (filled.segment, filled.sealed));
            let victim = self.rules().choose_victim(sealed, survey.small)?;
            let mut filled = survey.filled.iter();
            let is_dead = filled.any(|it| it.segment == victim && it.sealed.is_dead);
            Some(Choice::of(victim, if is_dead { Cause::Dead } else { Cause::Room }))
        })
    }

    /// Returns the segment with the fewest live bytes, to be recycled (emptied), if emptying it
    /// frees enough room. Space of overwritten and deleted entries is reclaimed first, and alone
    /// while all live entries fit in half of the file.
    pub(in crate::file) fn sparse_victim(&self, survey: &Survey) -> Option<Choice> {
        let bytes_of = |filled: &Filled| {
            let bytes = if filled.sealed.is_dead { 0 } else { filled.live_bytes };
            // A run has one record.
            (filled.sealed.is_dead || filled.run == 1).then_some(bytes)
        };
        let bytes = survey.filled.iter().filter_map(|it| Some((bytes_of(it)?, it.segment)));
        let (bytes, segment) = bytes.min()?;
        let segment_bytes = self.geometry.segment_bytes();
        let fits_half = self.fits_half(survey) && !mutant::is_on("half-of-the-file-may-leave");
        let most_bytes = if fits_half { segment_bytes - 1 } else { segment_bytes / 2 };
        let choice = Choice { segment, cause: Cause::Sparse, most_bytes };
        (bytes <= most_bytes).then_some(choice)
    }

    /// Returns whether all live entries that can be moved would fit half of the segments that they can be moved to.
    fn fits_half(&self, survey: &Survey) -> bool {
        let others = survey.live_bytes.div_ceil(self.geometry.segment_bytes());
        let segments = self.geometry.numbers.segments.saturating_sub(survey.pinned);
        others + u64::from(survey.live_runs) <= u64::from(segments / 2)
    }

    /// Returns the use of each segment of the cache file (free, records that can move, in use), for
    /// placing a record that is longer than a segment. Segments in `refused` count as in use.
    pub(in crate::file) fn uses(&self, refused: &[u32], now_ms: u64) -> Vec<Stretch> {
        let held: Vec<u32> = Lanes::of(self)
            .open_segments()
            .chain(Hazards::of(self).segments())
            .chain(PinCounts::of(self).pinned())
            .chain(refused.iter().copied())
            .collect();
        let epoch = self.epoch();
        let mut uses = Vec::new();
        let mut start = 0;
        while start < self.geometry.numbers.segments {
            let (entry, state) = (self.entry(start), self.entry(start).state());
            let segments =
                if state.kind == SegmentKind::Open { 1 } else { self.run_from(start, state) };
            let live = self.live_of(start);
            let is_live = entry.epoch() == epoch && live.entries > 0 && entry.expires_ms() > now_ms;
            let stretch = if self.is_free(start) {
                Stretch { segments: 1, usage: Use::Free }
            } else if held.contains(&start) {
                Stretch { segments, usage: Use::Held }
            } else if segments > 1 && is_live {
                Stretch { segments, usage: Use::Run }
            } else {
                let bytes = if is_live { live.bytes.min(self.geometry.segment_bytes()) } else { 0 };
                Stretch { segments, usage: Use::Records(bytes) }
            };
            start += stretch.segments;
            uses.push(stretch);
        }
        uses
    }
}
