//! Room for a record that is longer than a segment.

use haypile_policy::rules::file::RESERVED_SEGMENTS;

/// A file store's capacity divided by this number is the length of its longest record, unless a single segment is
/// longer.
pub(super) const LARGEST_PART: u64 = 8;

/// Consecutive segments of a file store in one state, for the search for room for a record that is longer than a
/// segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Number of consecutive segments in the stretch: 1, unless a single record fills more.
    pub(super) segments: u32,
    /// Number of live bytes that are lost if the segments of the stretch are reused; 0 if they are free.
    pub(super) live_bytes: u64,
    /// The state of the segments in the stretch: free, sealed or open.
    pub(super) state: StretchState,
}

/// The state of consecutive segments, which decides whether a record that is longer than a segment can take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StretchState {
    /// The stretch is free and can be taken as it is.
    Free,
    /// The stretch is sealed and can be recycled.
    Sealed,
    /// The stretch is open and cannot be taken.
    Open,
}

/// Finds the `segments` consecutive segments whose reuse loses the fewest live bytes, and returns the index of their
/// first stretch; `None` if none can be reused. A long record that reaches into them is lost as a whole.
/// [`RESERVED_SEGMENTS`] stay free. `file` has all stretches in their order.
///
/// A window that begins within a run is left out: one that begins where the run does costs no more.
pub(super) fn cheapest_window(file: &[Stretch], segments: u32) -> Option<usize> {
    let free_segments = |stretch: &Stretch| match stretch.state {
        StretchState::Free => stretch.segments,
        StretchState::Sealed | StretchState::Open => 0,
    };
    let all_free: u32 = file.iter().map(free_segments).sum();
    let mut cheapest: Option<(u64, usize)> = None;
    let (mut end, mut width, mut cost_bytes, mut free, mut open) = (0, 0, 0, 0, 0);
    for (first, leaving) in file.iter().enumerate() {
        while let Some(stretch) = file.get(end).filter(|_| width < segments) {
            end += 1;
            width += stretch.segments;
            cost_bytes += stretch.live_bytes;
            free += free_segments(stretch);
            open += u32::from(stretch.state == StretchState::Open);
        }
        if width < segments {
            break;
        }
        // What a run at the end has beyond the window becomes free.
        let stays_free = all_free - free + (width - segments);
        let is_cheaper = cheapest.is_none_or(|(cost, _)| cost_bytes < cost);
        if open == 0 && stays_free >= RESERVED_SEGMENTS && is_cheaper {
            cheapest = Some((cost_bytes, first));
        }
        width -= leaving.segments;
        cost_bytes -= leaving.live_bytes;
        free -= free_segments(leaving);
        open -= u32::from(leaving.state == StretchState::Open);
    }
    cheapest.map(|(_, first)| first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stretch() -> impl Strategy<Value = Stretch> {
        let sealed = (1..4_u32, 0..50_u64).prop_map(|(segments, live_bytes)| Stretch {
            segments,
            live_bytes,
            state: StretchState::Sealed,
        });
        let other = prop_oneof![Just(StretchState::Free), Just(StretchState::Open)];
        let other = other.prop_map(|state| Stretch { segments: 1, live_bytes: 0, state });
        prop_oneof![3 => sealed, 1 => other]
    }

    /// The cost of a window, if it can be taken.
    fn cost(file: &[Stretch], first: u32, segments: u32) -> Option<u64> {
        let all_free = file.iter().filter(|stretch| stretch.state == StretchState::Free).count();
        let (mut at, mut freed, mut cost) = (0, u32::try_from(all_free).unwrap(), 0);
        for stretch in file {
            let reaches_in = at < first + segments && at + stretch.segments > first;
            at += stretch.segments;
            match stretch.state {
                StretchState::Open if reaches_in => return None,
                StretchState::Sealed if reaches_in => {
                    freed += stretch.segments;
                    cost += stretch.live_bytes;
                }
                _ => {}
            }
        }
        (at >= first + segments && freed >= segments + RESERVED_SEGMENTS).then_some(cost)
    }

    proptest! {
        #[test]
        fn no_window_is_cheaper(
            file in prop::collection::vec(stretch(), 0..20),
            segments in 1..6_u32,
        ) {
            let first = |at: usize| file[..at].iter().map(|stretch| stretch.segments).sum();
            let costs = (0..file.len()).map(|at| (cost(&file, first(at), segments), at));
            let cheapest = costs.filter(|(cost, _)| cost.is_some()).min().map(|(_, at)| at);
            prop_assert_eq!(cheapest_window(&file, segments), cheapest);
        }
    }
}
