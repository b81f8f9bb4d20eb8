//! Looking at all segments, and choosing.

use super::area::Area;
use super::ground::Ground;
use super::segment::{HEADS, Kind, MAIN, State};

/// Free segments that are kept for what recycling keeps.
pub(super) const RESERVE: usize = 2;
/// Small's share of the segments, as one of so many.
const SMALL_SHARE: u32 = 10;

/// What the segments are.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    pub(super) free: Vec<u32>,
    small: u32,
    oldest_small: Option<(u64, u32)>,
    oldest_main: Option<(u64, u32)>,
    /// Nothing of it is of use any more.
    useless: Option<u32>,
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
                Kind::Free => survey.free.push(segment),
                Kind::Member if !self.is_in_run(segment, state) => survey.free.push(segment),
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
                    let is_useless = entry.epoch() != epoch
                        || entry.live().entries == 0
                        || entry.expires_ms() <= now_ms
                        || state.kind == Kind::Recycling;
                    if is_useless {
                        survey.useless.get_or_insert(segment);
                    }
                    if state.run <= 1 {
                        let this = (entry.live().bytes, segment);
                        survey.sparsest = Some(survey.sparsest.map_or(this, |it| it.min(this)));
                    }
                    let oldest = if state.queue == MAIN {
                        &mut survey.oldest_main
                    } else {
                        &mut survey.oldest_small
                    };
                    let this = (state.sequence, segment);
                    *oldest = Some(oldest.map_or(this, |oldest| oldest.min(this)));
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
        if let Some(segment) = survey.useless {
            return Some((segment, Cause::Sparse));
        }
        // What was overwritten and deleted leaves first: nothing that is of use has to, as long as it
        // fits half of the file.
        if let Some((bytes, segment)) = survey.sparsest
            && bytes <= self.geometry.segment_bytes() / 2
        {
            return Some((segment, Cause::Sparse));
        }
        let is_small_too_large = survey.small > self.geometry.numbers.segments / SMALL_SHARE;
        let (first, second) = if is_small_too_large {
            (survey.oldest_small, survey.oldest_main)
        } else {
            (survey.oldest_main, survey.oldest_small)
        };
        first.or(second).map(|(_, segment)| (segment, Cause::Room))
    }
}
