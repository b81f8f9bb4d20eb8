//! Looking at all segments, and choosing.

use std::ops::Range;

use super::area::Area;
use super::ground::Ground;
use super::segment::{Kind, MAIN, State};
use crate::policy::segment::rules::{
    Queue, RESERVED_SEGMENTS, Rules, Sealed, Stretch, StretchState, cheapest_window,
};

/// Small's share of the segments, as one of so many.
const SMALL_SHARE: u32 = 10;
/// Records of small move to main when they were used so often.
const THRESHOLD: u8 = 1;

/// A sealed segment, or a run of them.
#[derive(Clone, Copy, Debug)]
struct Filled {
    segment: u32,
    /// How many segments it is.
    run: u32,
    sealed: Sealed,
    live_bytes: u64,
}

/// What the segments are. Live bytes change all the time: what was seen once is good enough to
/// choose by.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    pub(super) free: Vec<u32>,
    filled: Vec<Filled>,
    /// Segments of small, open ones included.
    small: u32,
}

impl Survey {
    /// Chooses another segment from now on: this one is in use.
    pub(super) fn avoid(&mut self, segment: u32) {
        self.filled.retain(|filled| filled.segment != segment);
    }
}

/// Why a segment is recycled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Little of it is of use: that little is kept, whatever it is.
    Sparse,
    /// Room is needed: what was used is kept.
    Room,
}

impl<G: Ground> Area<G> {
    /// Looks at all segments. Under the recycler's lock.
    pub(super) fn survey(&self, now_ms: u64) -> Survey {
        let open: Vec<u32> = self.open_segments().collect();
        let epoch = self.epoch();
        let segments = self.geometry.numbers.segments;
        let mut survey =
            Survey { filled: Vec::with_capacity(segments as usize), ..Survey::default() };
        for segment in 0..segments {
            let entry = self.entry(segment);
            let state = entry.state();
            let run = self.run_from(segment, state);
            match state.kind {
                Kind::Free => survey.free.push(segment),
                Kind::Member => {
                    if !self.is_in_run(segment, state) {
                        survey.free.push(segment);
                    }
                }
                Kind::Open | Kind::Sealed | Kind::Recycling => {
                    let queue = queue_of(state);
                    let is_open = open.contains(&segment);
                    if queue == Queue::Small {
                        survey.small += if is_open { 1 } else { run };
                    }
                    if is_open {
                        continue;
                    }
                    let live = entry.live();
                    let is_dead = entry.epoch() != epoch
                        || live.entries == 0
                        || entry.expires_ms() <= now_ms
                        || state.kind == Kind::Recycling;
                    let sealed = Sealed { queue, opened: state.sequence, is_dead };
                    survey.filled.push(Filled { segment, run, sealed, live_bytes: live.bytes });
                }
            }
        }
        survey
    }

    /// Sees again what is free, since a segment was recycled.
    pub(super) fn survey_recycled(&self, survey: &mut Survey, segment: u32) {
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

    /// Whether a member's head has a run that covers it.
    pub(super) fn is_in_run(&self, segment: u32, state: State) -> bool {
        let Some(head) = segment.checked_sub(state.run).filter(|_| state.run > 0) else {
            return false;
        };
        let head = self.entry(head).state();
        matches!(head.kind, Kind::Sealed | Kind::Recycling) && head.run > state.run
    }

    /// What to recycle next, and why.
    pub(super) fn victim(&self, survey: &Survey) -> Option<(u32, Cause)> {
        // What was overwritten and deleted leaves first: nothing that is of use has to, as long as it
        // fits half of the file.
        let bytes_of = |filled: &Filled| {
            let bytes = if filled.sealed.is_dead { 0 } else { filled.live_bytes };
            // A run has one record.
            (filled.sealed.is_dead || filled.run == 1).then_some(bytes)
        };
        let bytes = survey.filled.iter().filter_map(|it| Some((bytes_of(it)?, it.segment)));
        if let Some((bytes, segment)) = bytes.min()
            && bytes <= self.geometry.segment_bytes() / 2
        {
            return Some((segment, Cause::Sparse));
        }
        let sealed = survey.filled.iter().map(|filled| (filled.segment, filled.sealed));
        let victim = self.rules().choose_victim(sealed, survey.small)?;
        Some((victim, Cause::Room))
    }

    /// The window of so many segments that loses the fewest live bytes, without open and refused
    /// ones, and whether so little is in it that all of that can be kept.
    pub(super) fn window(&self, segments: u32, refused: &[u32]) -> Option<(Range<u32>, bool)> {
        let open: Vec<u32> = self.open_segments().collect();
        let epoch = self.epoch();
        let (mut starts, mut file) = (Vec::new(), Vec::new());
        let mut start = 0;
        while start < self.geometry.numbers.segments {
            let entry = self.entry(start);
            let stretch = if self.is_free(start) {
                Stretch { segments: 1, live_bytes: 0, state: StretchState::Free }
            } else {
                let state = entry.state();
                let segments =
                    if state.kind == Kind::Open { 1 } else { self.run_from(start, state) };
                let most_bytes = u64::from(segments) << self.geometry.numbers.segment_log2;
                let live_bytes =
                    if entry.epoch() == epoch { entry.live().bytes.min(most_bytes) } else { 0 };
                let is_held = open.contains(&start) || refused.contains(&start);
                let state = if is_held { StretchState::Held } else { StretchState::Sealed };
                Stretch { segments, live_bytes, state }
            };
            starts.push(start);
            start += stretch.segments;
            file.push(stretch);
        }
        // The reserve may be in use by now.
        let cheapest = |reserved| cheapest_window(&file, segments, reserved);
        let at = cheapest(RESERVED_SEGMENTS).or_else(|| cheapest(0))?;
        let window = starts[at]..starts[at] + segments;
        let (mut lost_bytes, mut free_outside) = (0, 0_u64);
        for (start, stretch) in starts.iter().zip(&file) {
            if window.contains(start) {
                lost_bytes += stretch.live_bytes;
            } else if stretch.state == StretchState::Free {
                free_outside += 1;
            }
        }
        // Copies fill half of a segment at least before they need the next, and one stays free.
        let room_bytes = free_outside.saturating_sub(1) * self.geometry.segment_bytes() / 2;
        Some((window, lost_bytes <= room_bytes))
    }

    /// How the simulator decides as well.
    pub(super) fn rules(&self) -> Rules {
        Rules {
            small_segments: self.geometry.numbers.segments / SMALL_SHARE,
            threshold: THRESHOLD,
            kept_bytes: self.geometry.segment_bytes() / 4 * 3,
        }
    }
}

/// The queue of a segment, whatever the TTL of its entries.
pub(super) fn queue_of(state: State) -> Queue {
    if state.queue == MAIN { Queue::Main } else { Queue::Small }
}
