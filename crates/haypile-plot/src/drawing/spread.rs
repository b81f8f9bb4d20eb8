//! Puts labels near where they belong, without overlaps.

/// Labels that touch and so move as one.
struct LabelBlock {
    count: usize,
    /// Sum of the starts of the block that its labels ask for.
    starts: f64,
    start: f64,
}

/// Returns positions along one axis for labels, as close as possible to `wanted` (ascending), that are `gap` apart and
/// between `low` and `high`; closer than `gap` if there is no room.
pub fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let gap = gap.min((high - low) / number(wanted.len().saturating_sub(1).max(1)));
    let mut blocks: Vec<LabelBlock> = Vec::with_capacity(wanted.len());
    for &want in wanted {
        let mut block = LabelBlock { count: 1, starts: want, start: want.clamp(low, high) };
        while let Some(above) =
            blocks.pop_if(|above| above.start + number(above.count) * gap > block.start)
        {
            let starts = above.starts + block.starts - number(block.count * above.count) * gap;
            let count = above.count + block.count;
            let last_start = (high - number(count - 1) * gap).max(low);
            block = LabelBlock {
                count,
                starts,
                start: (starts / number(count)).clamp(low, last_start),
            };
        }
        blocks.push(block);
    }
    let places = |block: &LabelBlock| {
        let start = block.start;
        (0..block.count).map(move |at| start + number(at) * gap)
    };
    blocks.iter().flat_map(places).collect()
}

fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_that_do_not_touch_stay() {
        assert_eq!(spread(&[1.0, 5.0, 9.0], 2.0, 0.0, 10.0), [1.0, 5.0, 9.0]);
    }

    #[test]
    fn labels_that_touch_move_apart_around_their_middle() {
        assert_eq!(spread(&[5.0, 5.0, 5.0], 2.0, 0.0, 10.0), [3.0, 5.0, 7.0]);
        assert_eq!(spread(&[9.0, 10.0], 2.0, 0.0, 10.0), [8.0, 10.0]);
    }

    #[test]
    fn no_labels_are_no_places() {
        assert!(spread(&[], 2.0, 0.0, 10.0).is_empty());
    }

    proptest! {
        #[test]
        fn places_are_in_order_apart_and_inside(
            mut wanted in prop::collection::vec(-50.0..150.0f64, 1..30),
            gap in 0.1..20.0f64,
        ) {
            wanted.sort_by(f64::total_cmp);
            let places = spread(&wanted, gap, 0.0, 100.0);
            prop_assert_eq!(places.len(), wanted.len());
            let least = gap.min(100.0 / number(wanted.len().saturating_sub(1).max(1)));
            for pair in places.windows(2) {
                prop_assert!(pair[1] - pair[0] >= least - 1e-9, "{:?}", places);
            }
            prop_assert!(places.iter().all(|place| (-1e-9..=100.0 + 1e-9).contains(place)));
        }
    }
}
