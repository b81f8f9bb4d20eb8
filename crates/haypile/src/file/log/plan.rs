//! Choosing the place of a record that is longer than a segment: a pure function over plain data.

use std::ops::Range;

/// The use of a segment (or of the segments of one long record) in a search for room for a long
/// record: free, records that can move, one long record, or in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Use {
    /// The segment is free, and can be taken as it is.
    Free,
    /// The segment has records, this many live bytes of them, that can be moved to any free
    /// segment.
    Records(u64),
    /// The segments hold one live record, which needs as many neighbouring segments elsewhere.
    Run,
    /// The segment is open, or a process reads or writes its content.
    Held,
}

/// A segment of the cache file, or the neighbouring segments that hold one record, and its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct Stretch {
    /// The number of neighbouring segments: 1, or more if one record takes several.
    pub(in crate::file) segments: u32,
    pub(in crate::file) usage: Use,
}

/// The neighbouring segments chosen for a record longer than a segment, and the destinations of the
/// long records that are in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::file) struct Plan {
    pub(in crate::file) window: Range<u32>,
    /// The moves of long records out of the chosen segments, which are done before the rest of
    /// these segments is emptied.
    pub(in crate::file) moves: Vec<Move>,
}

/// The move of one record that is longer than a segment to free segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct Move {
    pub(in crate::file) head: u32,
    /// The number of segments of the long record that moves.
    pub(in crate::file) segments: u32,
    /// The first of the free segments that the long record moves to.
    pub(in crate::file) to: u32,
}

/// Plans which `segments` neighbouring segments to empty for a long record, such that every live
/// record stays and `reserved` segments stay free. Of all choices, it takes the one that moves the
/// fewest bytes, and of several the first. `file` has all stretches in their order.
pub(in crate::file) fn keep_all(
    file: &[Stretch],
    segments: u32,
    reserved: u32,
    segment_bytes: u64,
) -> Option<Plan> {
    let gaps = gaps(file);
    let free: u32 = gaps.iter().map(Range::len).map(count).sum();
    let mut windows = windows(file, segments, segment_bytes);
    windows.sort_by_key(|window| window.moved_bytes);
    windows.iter().find_map(|window| {
        // What is left of a run at the end is free as well, once that has moved.
        let left = free - window.free;
        let needed = window.run_segments + copies(window.record_bytes, segment_bytes) + reserved;
        if left < needed {
            return None;
        }
        let range = window.start..window.start + segments;
        let moves = place(runs(file, window), &gaps, &(window.start..window.end))?;
        Some(Plan { window: range, moves })
    })
}

/// Returns the `segments` neighbouring segments, none of them in use, with the fewest live bytes to
/// evict for a long record; `None` if there are none.
pub(in crate::file) fn lose_least(
    file: &[Stretch],
    segments: u32,
    segment_bytes: u64,
) -> Option<Range<u32>> {
    let windows = windows(file, segments, segment_bytes);
    let window = windows.into_iter().min_by_key(|window| (window.moved_bytes, window.start))?;
    Some(window.start..window.start + segments)
}

/// Segments that copies of this many bytes take at most: each is filled by half before the next is
/// needed.
fn copies(bytes: u64, segment_bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(segment_bytes / 2)).unwrap_or(u32::MAX / 4)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than all segments")
}

/// Neighbouring stretches, and what is in them.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: u32,
    /// Behind the last stretch that reaches into it.
    end: u32,
    free: u32,
    run_segments: u32,
    record_bytes: u64,
    moved_bytes: u64,
}

/// Returns all windows of at least this many segments that begin with a stretch and have none that is held.
fn windows(file: &[Stretch], segments: u32, segment_bytes: u64) -> Vec<Window> {
    let mut found = Vec::new();
    let mut held = 0;
    let mut window =
        Window { start: 0, end: 0, free: 0, run_segments: 0, record_bytes: 0, moved_bytes: 0 };
    let mut coming = file.iter();
    for leaving in file {
        while window.end - window.start < segments {
            let Some(stretch) = coming.next() else {
                return found;
            };
            window.end += stretch.segments;
            match stretch.usage {
                Use::Free => window.free += stretch.segments,
                Use::Records(bytes) => window.record_bytes += bytes,
                Use::Run => window.run_segments += stretch.segments,
                Use::Held => held += 1,
            }
        }
        if held == 0 {
            let run_bytes = u64::from(window.run_segments) * segment_bytes;
            found.push(Window { moved_bytes: window.record_bytes + run_bytes, ..window });
        }
        window.start += leaving.segments;
        match leaving.usage {
            Use::Free => window.free -= leaving.segments,
            Use::Records(bytes) => window.record_bytes -= bytes,
            Use::Run => window.run_segments -= leaving.segments,
            Use::Held => held -= 1,
        }
    }
    found
}

/// Neighbouring free segments.
fn gaps(file: &[Stretch]) -> Vec<Range<u32>> {
    let mut gaps: Vec<Range<u32>> = Vec::new();
    let mut start = 0;
    for stretch in file {
        let end = start + stretch.segments;
        if stretch.usage == Use::Free {
            match gaps.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => gaps.push(start..end),
            }
        }
        start = end;
    }
    gaps
}

/// Returns the live runs of a window: their heads and lengths.
fn runs(file: &[Stretch], window: &Window) -> Vec<(u32, u32)> {
    let mut runs = Vec::new();
    let mut start = 0;
    for stretch in file {
        if (window.start..window.end).contains(&start) && stretch.usage == Use::Run {
            runs.push((start, stretch.segments));
        }
        start += stretch.segments;
    }
    runs
}

/// Gives each run a place in the smallest gap that takes it, the longest first.
fn place(mut runs: Vec<(u32, u32)>, gaps: &[Range<u32>], window: &Range<u32>) -> Option<Vec<Move>> {
    runs.sort_by_key(|(_, segments)| std::cmp::Reverse(*segments));
    // A gap that reaches into the window is two, or one, or none.
    let mut gaps: Vec<Range<u32>> = gaps
        .iter()
        .flat_map(|gap| [gap.start..gap.end.min(window.start), gap.start.max(window.end)..gap.end])
        .filter(|gap| !gap.is_empty())
        .collect();
    let mut moves = Vec::with_capacity(runs.len());
    for (head, segments) in runs {
        let fitting = gaps.iter_mut().filter(|gap| gap.len() >= segments as usize);
        let gap = fitting.min_by_key(|gap| Range::len(gap))?;
        moves.push(Move { head, segments, to: gap.start });
        gap.start += segments;
    }
    Some(moves)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SEGMENT_BYTES: u64 = 64 << 10;

    fn of(text: &str) -> Vec<Stretch> {
        text.split(' ')
            .map(|part| match part.split_at(1) {
                (".", _) => Stretch { segments: 1, usage: Use::Free },
                ("#", _) => Stretch { segments: 1, usage: Use::Held },
                ("r", segments) => {
                    Stretch { segments: segments.parse().expect("a number"), usage: Use::Run }
                }
                (_, percent) => {
                    let percent: u64 = percent.parse().expect("a number");
                    Stretch { segments: 1, usage: Use::Records(SEGMENT_BYTES * percent / 100) }
                }
            })
            .collect()
    }

    fn plan(text: &str, segments: u32) -> Option<(u32, Vec<(u32, u32)>)> {
        let plan = keep_all(&of(text), segments, 1, SEGMENT_BYTES)?;
        let moves = plan.moves.iter().map(|it| (it.head, it.to)).collect();
        Some((plan.window.start, moves))
    }

    #[test]
    fn a_window_that_is_free_is_taken_and_others_are_emptied() {
        assert_eq!(plan("r3 . . . .", 3), Some((3, vec![])));
        assert_eq!(plan("r3 . . .", 3), None, "one has to stay free");
        assert_eq!(plan("# p10 p10 # .", 2), None, "what they hold needs a segment");
        assert_eq!(plan("# p10 p10 . # .", 2), Some((1, vec![])));
        assert_eq!(plan("p50 r2 . # . . .", 4), None, "a run, copies and the reserve");
        assert_eq!(plan("p50 r2 . # . . # . .", 4), Some((0, vec![(1, 5)])), "past what is held");
        assert_eq!(plan(". r2 . . # . . .", 4), Some((0, vec![(1, 6)])));
        assert_eq!(plan("r2 # r2 # r2", 2), None);
        assert_eq!(lose_least(&of("r2 # p90 p90 # r2"), 2, SEGMENT_BYTES), Some(3..5));
        assert_eq!(lose_least(&of("# #"), 1, SEGMENT_BYTES), None);
    }

    /// Runs, free segments and sealed ones at random, of which at most half is live together with
    /// what is to come.
    fn half_full() -> impl Strategy<Value = (Vec<Stretch>, u32)> {
        (12..200_u32, any::<prop::sample::Index>(), 0..100_u32).prop_flat_map(|(all, of, mix)| {
            let longest = all / 8;
            let segments = u32::try_from(of.index(longest as usize)).expect("few") + 1;
            let run = 1..=longest.max(2);
            let stretch = (0..100_u32, run, 0..100_u64);
            prop::collection::vec(stretch, all as usize).prop_map(move |stretches| {
                let (mut file, mut used, mut live) = (Vec::new(), 0, 0);
                for (kind, run, percent) in stretches {
                    let bytes = SEGMENT_BYTES * percent / 100;
                    let (stretch, weight) = if kind < mix && run > 1 {
                        (Stretch { segments: run, usage: Use::Run }, u64::from(run) * SEGMENT_BYTES)
                    } else if kind % 3 == 0 {
                        (Stretch { segments: 1, usage: Use::Records(bytes) }, bytes)
                    } else {
                        (Stretch { segments: 1, usage: Use::Free }, 0)
                    };
                    let most = u64::from(all / 2 - segments) * SEGMENT_BYTES;
                    if used + stretch.segments <= all && live + weight <= most {
                        file.push(stretch);
                        (used, live) = (used + stretch.segments, live + weight);
                    }
                }
                let free = Stretch { segments: 1, usage: Use::Free };
                file.extend(std::iter::repeat_n(free, (all - used) as usize));
                (file, segments)
            })
        })
    }

    /// Live runs as far apart from each other as they can be.
    fn scattered() -> impl Strategy<Value = (Vec<Stretch>, u32)> {
        (12..500_u32, any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_flat_map(
            |(all, of, most)| {
                let longest = all.div_ceil(8) as usize;
                let number = |index: prop::sample::Index, of: usize| {
                    u32::try_from(index.index(of)).expect("few") + 1
                };
                let (segments, most) = (number(of, longest), number(most, longest));
                let runs = prop::collection::vec(1..=most, all as usize);
                let nudges = prop::collection::vec(any::<prop::sample::Index>(), all as usize);
                (runs, nudges).prop_map(move |(mut runs, nudges)| {
                    let mut live = segments;
                    runs.retain(|run| {
                        let fits = live + run <= all / 2;
                        live += if fits { *run } else { 0 };
                        fits
                    });
                    let (gaps, free) = (runs.len() + 1, (all - live + segments) as usize);
                    let mut lengths: Vec<usize> =
                        (0..gaps).map(|gap| free / gaps + usize::from(gap < free % gaps)).collect();
                    for pair in nudges[..gaps / 2].windows(2) {
                        let [from, to] = [pair[0].index(gaps), pair[1].index(gaps)];
                        if lengths[from] > 0 {
                            lengths[from] -= 1;
                            lengths[to] += 1;
                        }
                    }
                    let mut file = Vec::new();
                    let mut runs = runs.into_iter();
                    for length in lengths {
                        let free = Stretch { segments: 1, usage: Use::Free };
                        file.extend(std::iter::repeat_n(free, length));
                        let run = |segments| Stretch { segments, usage: Use::Run };
                        file.extend(runs.next().map(run));
                    }
                    (file, segments)
                })
            },
        )
    }

    proptest! {
        #[test]
        fn there_is_a_plan_where_half_of_the_file_is_live(
            (file, segments) in scattered(),
        ) {
            let plan = |reserved| keep_all(&file, segments, reserved, SEGMENT_BYTES);
            prop_assert!(plan(2).or_else(|| plan(0)).is_some(), "{segments} in {file:?}");
        }

        #[test]
        fn what_a_plan_moves_has_room_and_the_window_is_empty_then(
            (file, segments) in half_full(),
        ) {
            let Some(plan) = keep_all(&file, segments, 2, SEGMENT_BYTES) else { return Ok(()) };
            let mut uses = Vec::new();
            for stretch in &file {
                uses.extend(std::iter::repeat_n(stretch.usage, stretch.segments as usize));
            }
            let length = |head: u32| {
                let mut start = 0;
                let found = file.iter().find(|stretch| {
                    start += stretch.segments;
                    start > head
                });
                found.expect("a stretch").segments
            };
            for &Move { head, segments, to } in &plan.moves {
                prop_assert_eq!(uses[head as usize], Use::Run);
                prop_assert_eq!(length(head), segments);
                for number in 0..segments {
                    uses[(head + number) as usize] = Use::Free;
                    let target = &mut uses[(to + number) as usize];
                    prop_assert_eq!(*target, Use::Free);
                    prop_assert!(!plan.window.contains(&(to + number)));
                    *target = Use::Held;
                }
            }
            let window = &uses[plan.window.start as usize..plan.window.end as usize];
            prop_assert!(window.iter().all(|it| matches!(it, Use::Free | Use::Records(_))));
        }
    }
}
