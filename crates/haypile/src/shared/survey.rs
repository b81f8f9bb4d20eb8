//! Looking at all segments, and choosing.

use super::area::Area;
use super::ground::Ground;
use super::segment::{HEADS, Kind, MAIN, State};
use crate::policy::segment::rules::{Queue, Rules, Sealed};

/// Small's share of the segments, as one of so many.
const SMALL_SHARE: u32 = 10;
/// Records of small move to main when they were used so often.
const THRESHOLD: u8 = 1;

/// What the segments are.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    pub(super) free: Vec<u32>,
    sealed: Vec<(u32, Sealed)>,
    small: u32,
    /// The one with the fewest live bytes, which are these.
    sparsest: Option<(u64, u32)>,
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
    /// Looks at all segments, but for those to avoid. Under the recycler's lock.
    pub(super) fn survey(&self, avoid: &[u32], now_ms: u64) -> Survey {
        let open: Vec<u32> = (0..HEADS).filter_map(|queue| self.open_for(queue)).collect();
        let epoch = self.epoch();
        let mut survey = Survey::default();
        for segment in 0..self.geometry.numbers.segments {
            let entry = self.entry(segment);
            let state = entry.state();
            match state.kind {
                _ if self.is_free(segment) => survey.free.push(segment),
                Kind::Member => {}
                _ if open.contains(&segment) => {
                    if state.queue != MAIN {
                        survey.small += 1;
                    }
                }
                _ => {
                    if state.queue != MAIN {
                        survey.small += state.run.max(1);
                    }
                    if avoid.contains(&segment) {
                        continue;
                    }
                    let is_dead = entry.epoch() != epoch
                        || entry.live().entries == 0
                        || entry.expires_ms() <= now_ms
                        || state.kind == Kind::Recycling;
                    let queue = queue_of(state);
                    survey
                        .sealed
                        .push((segment, Sealed { queue, opened: state.sequence, is_dead }));
                    if is_dead {
                        survey.sparsest = Some((0, segment));
                    } else if state.run <= 1 {
                        let this = (entry.live().bytes, segment);
                        survey.sparsest = Some(survey.sparsest.map_or(this, |it| it.min(this)));
                    }
                }
            }
        }
        survey
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
        if let Some((bytes, segment)) = survey.sparsest
            && bytes <= self.geometry.segment_bytes() / 2
        {
            return Some((segment, Cause::Sparse));
        }
        let sealed = survey.sealed.iter().copied();
        let victim = self.rules().choose_victim(sealed, survey.small)?;
        Some((victim, Cause::Room))
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
